// The bridge library: one translation unit with torch's own headers, built once per installation.
// It gives the thin headers (../include) a plain C interface to libtorch, so that candidates need not parse torch.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Formatting.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/ParallelGuard.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/utils/pybind.h>

// By its path: the folder of the thin headers must not be searched here, they shadow torch's.
#include "../include/kfast/bridge.h"
#include <kfast_config.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

// The thin headers number dtypes, layouts, formats and devices themselves: they must agree with this torch.
#define KFAST_CHECK_DTYPE(value, name) static_assert(static_cast<int>(c10::ScalarType::name) == value);
KFAST_SCALAR_TYPES(KFAST_CHECK_DTYPE)
static_assert(static_cast<int>(c10::ScalarType::Undefined) == KFAST_UNDEFINED_DTYPE);
static_assert(static_cast<int>(c10::Layout::Strided) == 0 && static_cast<int>(c10::Layout::Sparse) == 1);
static_assert(static_cast<int>(c10::Layout::SparseCsr) == 2 && static_cast<int>(c10::Layout::Mkldnn) == 3);
static_assert(static_cast<int>(c10::MemoryFormat::Contiguous) == 0 && static_cast<int>(c10::MemoryFormat::Preserve) == 1);
static_assert(static_cast<int>(c10::MemoryFormat::ChannelsLast) == 2);
static_assert(static_cast<int>(c10::MemoryFormat::ChannelsLast3d) == 3);
static_assert(static_cast<int>(c10::DeviceType::CPU) == 0 && static_cast<int>(c10::DeviceType::CUDA) == 1);
static_assert(static_cast<int>(c10::DeviceType::Meta) == 14);

namespace {

c10::TensorImpl* impl(void* t) {
  return t ? static_cast<c10::TensorImpl*>(t) : c10::UndefinedTensorImpl::singleton();
}

// A tensor that shares the caller's reference; it must not outlive the call that it is passed to.
at::Tensor tensor(void* t) {
  if (!t) return at::Tensor();
  using pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  return at::Tensor(pointer::reclaim_copy(static_cast<c10::TensorImpl*>(t)));
}

void* give(at::Tensor t) {
  return t.defined() ? static_cast<void*>(t.unsafeReleaseTensorImpl()) : nullptr;
}

char* copy_text(const std::string& text) {
  char* out = static_cast<char*>(std::malloc(text.size() + 1));
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

c10::Device device(int64_t packed) {
  return c10::Device(static_cast<c10::DeviceType>(static_cast<int32_t>(packed)), static_cast<c10::DeviceIndex>(packed >> 32));
}

int64_t pack(c10::Device d) {
  return (static_cast<int64_t>(d.index()) << 32) | static_cast<uint32_t>(d.type());
}

}  // namespace

#include "tensors.inc"
#include "operators.inc"
#include "cuda.inc"
#include "python.inc"
