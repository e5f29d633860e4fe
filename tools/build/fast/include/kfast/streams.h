// Output to iostreams, for sources that print.
#pragma once

#include <kfast/tensor_call.h>

#include <ostream>

#define KFAST_PRINT(type)                                                 \
  inline std::ostream& operator<<(std::ostream& out, const type& value) { \
    std::string text;                                                     \
    append(text, value);                                                  \
    return out << text;                                                   \
  }
namespace c10 {
inline namespace kfast_api {
KFAST_PRINT(ScalarType)
KFAST_PRINT(DeviceType)
KFAST_PRINT(Layout)
KFAST_PRINT(MemoryFormat)
KFAST_PRINT(Device)
KFAST_PRINT(Scalar)
template <class T>
KFAST_PRINT(ArrayRef<T>)
}  // namespace kfast_api
}  // namespace c10
namespace caffe2 {
inline namespace kfast_api {
KFAST_PRINT(TypeMeta)
}
}  // namespace caffe2
namespace at {
inline namespace kfast_api {
KFAST_PRINT(Tensor)
}
}  // namespace at
#undef KFAST_PRINT
