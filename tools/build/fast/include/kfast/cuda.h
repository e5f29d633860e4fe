// Streams, device guards, properties and error checks of c10::cuda and at::cuda, over the bridge.
#pragma once

#include <kfast/tensor_call.h>

#include <cuda_runtime_api.h>
#if KFAST_USES_CUBLAS
#include <cublas_v2.h>
#endif

#pragma GCC visibility push(hidden)

namespace c10 {
namespace cuda {
inline namespace kfast_api {

class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream, int64_t id) : stream_(stream), id_(id) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  DeviceIndex device_index() const { return static_cast<DeviceIndex>(id_ & 0xff); }
  Device device() const { return Device(kCUDA, device_index()); }
  int64_t id() const { return id_ >> 8; }
  int64_t packed() const { return id_; }
  bool operator==(const CUDAStream& o) const noexcept { return id_ == o.id_; }
  bool operator!=(const CUDAStream& o) const noexcept { return id_ != o.id_; }
  void synchronize() const {
    kf_cuda_check(cudaStreamSynchronize(stream_), __FILE__, __func__, __LINE__, true);
  }
  bool query() const {
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    kf_cuda_check(state, __FILE__, __func__, __LINE__, true);
    return true;
  }

 private:
  cudaStream_t stream_;
  int64_t id_;
};

inline CUDAStream stream_of_kind(int kind, bool high_priority, DeviceIndex device) {
  int64_t id = 0;
  void* raw = kf_cuda_stream(device, kind, high_priority, &id);
  return CUDAStream(static_cast<cudaStream_t>(raw), id);
}
inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) { return stream_of_kind(0, false, device); }
inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) { return stream_of_kind(1, false, device); }
inline CUDAStream getStreamFromPool(bool high_priority = false, DeviceIndex device = -1) {
  return stream_of_kind(2, high_priority, device);
}
inline void setCurrentCUDAStream(CUDAStream stream) { kf_cuda_set_stream(stream.packed()); }
inline DeviceIndex device_count() noexcept { return static_cast<DeviceIndex>(kf_cuda_device_count()); }
inline DeviceIndex current_device() { return static_cast<DeviceIndex>(kf_cuda_current_device()); }
inline void set_device(DeviceIndex device) { kf_cuda_exchange_device(device); }
inline void device_synchronize() { kf_cuda_check(cudaDeviceSynchronize(), __FILE__, __func__, __LINE__, true); }

// Sets the device, and on the way out the one that was current before.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) set_device(*device);
  }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> index) {
    if (index) set_index(*index);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;
  ~OptionalCUDAGuard() { reset(); }
  void set_device(Device device) {
    TORCH_CHECK(device.is_cuda(), "Expected a CUDA device, but got ", device);
    set_index(device.index());
  }
  void set_index(DeviceIndex index) {
    // An index of -1 is the current device.
    const int32_t old = index < 0 ? kf_cuda_current_device() : kf_cuda_exchange_device(index);
    if (!original_) original_ = old;
    current_ = index < 0 ? old : index;
  }
  std::optional<Device> original_device() const {
    return original_ ? std::optional<Device>(Device(kCUDA, static_cast<DeviceIndex>(*original_))) : std::nullopt;
  }
  std::optional<Device> current_device() const {
    return original_ ? std::optional<Device>(Device(kCUDA, static_cast<DeviceIndex>(current_))) : std::nullopt;
  }
  void reset() {
    if (original_) kf_cuda_exchange_device(*original_);
    original_.reset();
  }

 private:
  std::optional<int32_t> original_;
  int32_t current_ = 0;
};
class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex index) { guard_.set_index(index); }
  explicit CUDAGuard(Device device) { guard_.set_device(device); }
  void set_device(Device device) { guard_.set_device(device); }
  void reset_device(Device device) { guard_.set_device(device); }
  void set_index(DeviceIndex index) { guard_.set_index(index); }
  Device original_device() const { return *guard_.original_device(); }
  Device current_device() const { return *guard_.current_device(); }

 private:
  OptionalCUDAGuard guard_;
};
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream)
      : device_(stream.device_index()), old_(getCurrentCUDAStream(stream.device_index())), now_(stream) {
    setCurrentCUDAStream(stream);
  }
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  ~CUDAStreamGuard() { setCurrentCUDAStream(old_); }
  CUDAStream original_stream() const { return old_; }
  CUDAStream current_stream() const { return now_; }

 private:
  CUDAGuard device_;
  CUDAStream old_;
  CUDAStream now_;
};
}  // namespace kfast_api
}  // namespace cuda
}  // namespace c10

namespace at {
inline namespace kfast_api {
// For a device of any kind; the CPU needs no guarding.
class OptionalDeviceGuard : public c10::cuda::OptionalCUDAGuard {
 public:
  explicit OptionalDeviceGuard(std::optional<Device> d) : OptionalCUDAGuard(d && d->is_cuda() ? d : std::nullopt) {}
};
class DeviceGuard : public OptionalDeviceGuard {
 public:
  explicit DeviceGuard(Device d) : OptionalDeviceGuard(std::optional<Device>(d)) {}
};
}  // namespace kfast_api
namespace cuda {
using namespace c10::cuda;
using c10::cuda::CUDAGuard;
using c10::cuda::OptionalCUDAGuard;
inline namespace kfast_api {
inline const cudaDeviceProp* getDeviceProperties(DeviceIndex device) {
  return static_cast<const cudaDeviceProp*>(kf_cuda_properties(device));
}
inline const cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(-1); }
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }
inline bool is_available() { return kf_cuda_device_count() > 0; }
#if KFAST_USES_CUBLAS
inline cublasHandle_t getCurrentCUDABlasHandle() { return static_cast<cublasHandle_t>(kf_cuda_blas_handle()); }
#endif
template <class T>
constexpr T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
}  // namespace kfast_api
}  // namespace cuda
template <class T>
constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
}  // namespace at

#define C10_CUDA_CHECK(expression)                                                                                 \
  do {                                                                                                             \
    const cudaError_t kfast_error = expression;                                                                    \
    if (kfast_error != cudaSuccess) {                                                                              \
      kf_cuda_check(static_cast<int32_t>(kfast_error), __FILE__, __func__, static_cast<int32_t>(__LINE__), true);  \
    }                                                                                                              \
  } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#if KFAST_USES_CUBLAS
#define TORCH_CUDABLAS_CHECK(expression)                                                                        \
  do {                                                                                                          \
    const cublasStatus_t kfast_status = expression;                                                             \
    TORCH_CHECK(kfast_status == CUBLAS_STATUS_SUCCESS, "CUDA error: ", cublasGetStatusName(kfast_status),       \
                " when calling `" #expression "`");                                                             \
  } while (0)
#endif
#define C10_CUDA_CHECK_WARN(expression)                                                                   \
  do {                                                                                                    \
    const cudaError_t kfast_error = expression;                                                           \
    if (kfast_error != cudaSuccess) {                                                                     \
      static_cast<void>(cudaGetLastError());                                                              \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(kfast_error));                                      \
    }                                                                                                     \
  } while (0)
#define C10_CUDA_ERROR_HANDLED(expression) expression
#define C10_CUDA_IGNORE_ERROR(expression)                       \
  do {                                                          \
    if ((expression) != cudaSuccess) static_cast<void>(cudaGetLastError()); \
  } while (0)
#define C10_CUDA_CLEAR_ERROR() static_cast<void>(cudaGetLastError())

#pragma GCC visibility pop
