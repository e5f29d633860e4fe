// What the judge does to whole tensors, in one pass at the speed of memory: the sums behind an error report, for which
// PyTorch's operators need a dozen passes and copies in fp64, and swapping a part of two tensors' elements.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 7;  // largest |c - o|, largest |o|, sums of (c - o)^2, c - o, o^2, usable, unsound

__device__ double as_double(float v) { return v; }
__device__ double as_double(double v) { return v; }
__device__ double as_double(__half v) { return __half2float(v); }
__device__ double as_double(__nv_bfloat16 v) { return __bfloat162float(v); }

struct Row {
    double v[kColumns] = {0, 0, 0, 0, 0, 0, 0};

    __device__ void merge(int column, double other) {
        v[column] = column < 2 ? fmax(v[column], other) : v[column] + other;
    }

    __device__ void add(double c, double o) {
        if (isfinite(c) && isfinite(o)) {
            const double d = c - o;
            v[0] = fmax(v[0], fabs(d));
            v[1] = fmax(v[1], fabs(o));
            v[2] += d * d;
            v[3] += d;
            v[4] += o * o;
            v[5] += 1.0;
        } else if (!(c == o || (isnan(c) && isnan(o)))) {
            v[6] += 1.0;
        }
    }
};

template <class C, class O>
__global__ void __launch_bounds__(kThreads) reduce(const C* c, const O* o, size_t n, double* out) {
    Row row;
    const size_t step = static_cast<size_t>(gridDim.x) * kThreads;
    size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    for (; i + 3 * step < n; i += 4 * step) {
        C x[4];
        O y[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            x[k] = c[i + k * step];
            y[k] = o[i + k * step];
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) row.add(as_double(x[k]), as_double(y[k]));
    }
    for (; i < n; i += step) row.add(as_double(c[i]), as_double(o[i]));

    __shared__ double part[kThreads / 32][kColumns];
    for (int column = 0; column < kColumns; ++column)
        for (int offset = 16; offset > 0; offset /= 2)
            row.merge(column, __shfl_down_sync(~0u, row.v[column], offset));
    if (threadIdx.x % 32 == 0)
        for (int column = 0; column < kColumns; ++column) part[threadIdx.x / 32][column] = row.v[column];
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < kThreads / 32; ++warp)
            for (int column = 0; column < kColumns; ++column) row.merge(column, part[warp][column]);
        for (int column = 0; column < kColumns; ++column) out[blockIdx.x * kColumns + column] = row.v[column];
    }
}

template <class C>
int launch(const void* c, const void* o, bool doubled, size_t n, double* out, int blocks, cudaStream_t stream) {
    if (doubled)
        reduce<<<blocks, kThreads, 0, stream>>>(static_cast<const C*>(c), static_cast<const double*>(o), n, out);
    else
        reduce<<<blocks, kThreads, 0, stream>>>(static_cast<const C*>(c), static_cast<const C*>(o), n, out);
    return static_cast<int>(cudaGetLastError());
}

// a[i] against b[i - by], for each `stride`th element, the ends joined: every element is in one pair.
template <class W>
__global__ void __launch_bounds__(kThreads) swap(W* a, W* b, size_t n, size_t stride, size_t by) {
    const size_t step = static_cast<size_t>(gridDim.x) * kThreads;
    for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const size_t j = i >= by ? i - by : i + n - by;
        const W kept = a[i * stride];
        a[i * stride] = b[j * stride];
        b[j * stride] = kept;
    }
}

template <class W>
int launch_swap(void* a, void* b, size_t n, size_t stride, size_t by, cudaStream_t stream) {
    const size_t blocks = (n + kThreads - 1) / kThreads;
    swap<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), kThreads, 0, stream>>>(
        static_cast<W*>(a), static_cast<W*>(b), n, stride, by);
    return static_cast<int>(cudaGetLastError());
}

}  // namespace

// Swaps a[i * stride] and b[(i - by) mod n * stride] for i < n, elements of `size` bytes, by < n. The two may not overlap.
// Returns a cudaError_t.
extern "C" int swap_elements(void* a, void* b, int size, unsigned long long n, unsigned long long stride,
                             unsigned long long by, cudaStream_t stream) {
    switch (size) {
        case 1: return launch_swap<unsigned char>(a, b, n, stride, by, stream);
        case 2: return launch_swap<unsigned short>(a, b, n, stride, by, stream);
        case 4: return launch_swap<unsigned>(a, b, n, stride, by, stream);
        case 8: return launch_swap<unsigned long long>(a, b, n, stride, by, stream);
        default: return static_cast<int>(cudaErrorInvalidValue);
    }
}

// `type` of `c`: 0 fp32, 1 fp64, 2 fp16, 3 bf16. `o` is fp64 where `doubled`, else of the same type. `out` takes one row a
// block. Returns a cudaError_t.
extern "C" int reduce_errors(const void* c, int type, const void* o, int doubled, unsigned long long n, double* out,
                             int blocks, cudaStream_t stream) {
    switch (type) {
        case 0: return launch<float>(c, o, doubled != 0, n, out, blocks, stream);
        case 1: return launch<double>(c, o, doubled != 0, n, out, blocks, stream);
        case 2: return launch<__half>(c, o, doubled != 0, n, out, blocks, stream);
        case 3: return launch<__nv_bfloat16>(c, o, doubled != 0, n, out, blocks, stream);
        default: return static_cast<int>(cudaErrorInvalidValue);
    }
}
