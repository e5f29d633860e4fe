// Typed views of a tensor's memory: TensorAccessor for host code, packed accessors that are passed to kernels by value.
#pragma once

#include <kfast/types.h>

#ifdef __CUDACC__
#define KFAST_HOST_DEVICE __host__ __device__
#else
#define KFAST_HOST_DEVICE
#endif

namespace at {
using namespace c10;
inline namespace kfast_api {

template <class T>
struct DefaultPtrTraits {
  typedef T* PtrType;
};
#ifdef __CUDACC__
template <class T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};
#endif

template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
class TensorAccessorBase {
 public:
  typedef typename P<T>::PtrType PtrType;
  KFAST_HOST_DEVICE TensorAccessorBase(PtrType data, const I* sizes, const I* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  ArrayRef<I> sizes() const { return ArrayRef<I>(sizes_, N); }
  ArrayRef<I> strides() const { return ArrayRef<I>(strides_, N); }
  KFAST_HOST_DEVICE I size(I i) const { return sizes_[i]; }
  KFAST_HOST_DEVICE I stride(I i) const { return strides_[i]; }
  KFAST_HOST_DEVICE PtrType data() { return data_; }
  KFAST_HOST_DEVICE const PtrType data() const { return data_; }

 protected:
  PtrType data_;
  const I* sizes_;
  const I* strides_;
};

template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
class TensorAccessor : public TensorAccessorBase<T, N, P, I> {
 public:
  using TensorAccessorBase<T, N, P, I>::TensorAccessorBase;
  KFAST_HOST_DEVICE TensorAccessor<T, N - 1, P, I> operator[](I i) {
    return TensorAccessor<T, N - 1, P, I>(this->data_ + this->strides_[0] * i, this->sizes_ + 1, this->strides_ + 1);
  }
  KFAST_HOST_DEVICE const TensorAccessor<T, N - 1, P, I> operator[](I i) const {
    return TensorAccessor<T, N - 1, P, I>(this->data_ + this->strides_[0] * i, this->sizes_ + 1, this->strides_ + 1);
  }
};
template <class T, template <class U> class P, class I>
class TensorAccessor<T, 1, P, I> : public TensorAccessorBase<T, 1, P, I> {
 public:
  using TensorAccessorBase<T, 1, P, I>::TensorAccessorBase;
  KFAST_HOST_DEVICE T& operator[](I i) { return this->data_[this->strides_[0] * i]; }
  KFAST_HOST_DEVICE const T& operator[](I i) const { return this->data_[this->strides_[0] * i]; }
};

template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
class GenericPackedTensorAccessorBase {
 public:
  typedef typename P<T>::PtrType PtrType;
  GenericPackedTensorAccessorBase(PtrType data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t i = 0; i < N; ++i) {
      sizes_[i] = static_cast<I>(sizes[i]);
      strides_[i] = static_cast<I>(strides[i]);
    }
  }
  KFAST_HOST_DEVICE I size(I i) const { return sizes_[i]; }
  KFAST_HOST_DEVICE I stride(I i) const { return strides_[i]; }
  KFAST_HOST_DEVICE PtrType data() { return data_; }
  KFAST_HOST_DEVICE const PtrType data() const { return data_; }

 protected:
  PtrType data_;
  I sizes_[N];
  I strides_[N];
};

template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
class GenericPackedTensorAccessor : public GenericPackedTensorAccessorBase<T, N, P, I> {
 public:
  using GenericPackedTensorAccessorBase<T, N, P, I>::GenericPackedTensorAccessorBase;
#ifdef __CUDACC__
  __device__ TensorAccessor<T, N - 1, P, I> operator[](I i) {
    return TensorAccessor<T, N - 1, P, I>(this->data_ + this->strides_[0] * i, this->sizes_ + 1, this->strides_ + 1);
  }
  __device__ const TensorAccessor<T, N - 1, P, I> operator[](I i) const {
    return TensorAccessor<T, N - 1, P, I>(this->data_ + this->strides_[0] * i, this->sizes_ + 1, this->strides_ + 1);
  }
#endif
};
template <class T, template <class U> class P, class I>
class GenericPackedTensorAccessor<T, 1, P, I> : public GenericPackedTensorAccessorBase<T, 1, P, I> {
 public:
  using GenericPackedTensorAccessorBase<T, 1, P, I>::GenericPackedTensorAccessorBase;
#ifdef __CUDACC__
  __device__ T& operator[](I i) { return this->data_[this->strides_[0] * i]; }
  __device__ const T& operator[](I i) const { return this->data_[this->strides_[0] * i]; }
#endif
};

template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;

}  // namespace kfast_api
}  // namespace at
