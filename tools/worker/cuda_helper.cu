// What the worker needs of the device beyond PyTorch, with no PyTorch header: an allocator with poisoned memory and guard
// bands, a kernel that fills every multiprocessor's shared memory with NaN, and L2 housekeeping.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t kGuard = 4096;
constexpr unsigned char kCanary = 0xFF;

struct Block {
    char* base;
    size_t size;
    bool captured;  // a graph may go on using it after it is freed
};

struct OutOfMemory : std::exception {
    explicit OutOfMemory(size_t bytes) {
        size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        std::snprintf(text, sizeof text, "CUDA out of memory: %zu bytes asked for, %zu of %zu are free", bytes, free, total);
    }
    const char* what() const noexcept override { return text; }
    char text[160];
};

std::mutex lock;
std::unordered_map<void*, Block> live;
std::vector<Block> waiting;  // freed while a graph was captured, when nothing can be freed
cudaStream_t last_captured = nullptr;
int poison_byte = 0xFF;

bool capturing(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return stream != nullptr && cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

// What the caching allocator does too: memory may be asked for while this thread captures a graph.
class Relaxed {
  public:
    Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
    ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }

  private:
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
};

void mark(char* base, size_t bytes, cudaStream_t stream) {
    cudaMemsetAsync(base, kCanary, kGuard, stream);
    cudaMemsetAsync(base + kGuard, poison_byte, bytes, stream);
    cudaMemsetAsync(base + kGuard + bytes, kCanary, kGuard, stream);
}

struct Damage {
    unsigned long long blocks;
    unsigned long long size;
    long long offset;
};
Damage* damage = nullptr;  // managed by hand: one device allocation, read after a synchronise

__device__ void note(Damage* out, size_t size, long long offset) {
    if (atomicAdd(&out->blocks, 1ULL) == 0ULL) {
        out->size = size;
        out->offset = offset;
    }
}

__global__ void check_guards(const unsigned char* base, size_t size, Damage* out) {
    __shared__ long long first;
    if (threadIdx.x == 0) first = INT64_MAX;
    __syncthreads();
    for (size_t i = threadIdx.x; i < kGuard; i += blockDim.x) {
        if (base[i] != kCanary) atomicMin(&first, static_cast<long long>(i) - static_cast<long long>(kGuard));
        if (base[kGuard + size + i] != kCanary) atomicMin(&first, static_cast<long long>(size + i));
    }
    __syncthreads();
    if (threadIdx.x == 0 && first != INT64_MAX) note(out, size, first);
}

__global__ void fill_shared(float value) {
    extern __shared__ float tile[];
    unsigned int bytes;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    volatile float* out = tile;
    for (unsigned int i = threadIdx.x; i < bytes / sizeof(float); i += blockDim.x) out[i] = value;
}

}  // namespace

extern "C" {

void* guarded_alloc(ssize_t size, int device, cudaStream_t stream) {
    (void)device;
    static cudaStream_t own = nullptr;
    char* base = nullptr;
    const size_t bytes = static_cast<size_t>(size);
    const bool captured = capturing(stream);
    Relaxed relaxed;
    if (cudaMalloc(&base, bytes + 2 * kGuard) != cudaSuccess) {
        cudaGetLastError();
        throw OutOfMemory(bytes);  // PyTorch would hand a null pointer on to kernels
    }
    if (captured) {
        // Now, and at each replay: a graph that reads what it has not written reads poison every time.
        last_captured = stream;
        if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        mark(base, bytes, own);
        cudaStreamSynchronize(own);
        cudaMemsetAsync(base + kGuard, poison_byte, bytes, stream);
    } else {
        mark(base, bytes, stream);
    }
    std::lock_guard<std::mutex> hold(lock);
    live[base + kGuard] = {base, bytes, captured};
    return base + kGuard;
}

void guarded_free(void* pointer, ssize_t size, int device, cudaStream_t stream) {
    (void)size;
    (void)device;
    std::vector<Block> blocks;
    {
        std::lock_guard<std::mutex> hold(lock);
        auto found = live.find(pointer);
        if (found == live.end() || found->second.captured) return;  // those stay, fenced, as long as the process
        waiting.push_back(found->second);
        live.erase(found);
        if (capturing(stream) || capturing(last_captured)) return;
        blocks.swap(waiting);
    }
    if (damage == nullptr && cudaMalloc(&damage, sizeof(Damage)) == cudaSuccess) cudaMemset(damage, 0, sizeof(Damage));
    for (auto& each : blocks)
        check_guards<<<1, 256, 0, stream>>>(reinterpret_cast<unsigned char*>(each.base), each.size, damage);
    cudaStreamSynchronize(stream);
    for (auto& each : blocks) cudaFree(each.base);
}

void guarded_poison(int byte) { poison_byte = byte; }

// Checks every live block too and reports all damage since the last call: blocks, size of the first, offset in it.
int guarded_damage(unsigned long long* blocks, unsigned long long* size, long long* offset) {
    if (damage == nullptr) {
        if (cudaMalloc(&damage, sizeof(Damage)) != cudaSuccess) return -1;
        cudaMemset(damage, 0, sizeof(Damage));
    }
    {
        std::lock_guard<std::mutex> hold(lock);
        for (auto& entry : live)
            check_guards<<<1, 256>>>(reinterpret_cast<unsigned char*>(entry.second.base), entry.second.size, damage);
    }
    Damage found{};
    if (cudaMemcpy(&found, damage, sizeof found, cudaMemcpyDeviceToHost) != cudaSuccess) return -1;
    cudaMemset(damage, 0, sizeof(Damage));
    *blocks = found.blocks;
    *size = found.size;
    *offset = found.offset;
    return 0;
}

// Fills the whole of shared memory on every multiprocessor with `value`, on `stream`.
int poison_shared(float value, cudaStream_t stream) {
    static int largest = 0, multiprocessors = 0;
    if (largest == 0) {
        int device = 0;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&largest, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        cudaFuncSetAttribute(fill_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, largest);
    }
    fill_shared<<<multiprocessors, 1024, largest, stream>>>(value);
    return static_cast<int>(cudaGetLastError());
}
}
