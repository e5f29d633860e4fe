"""Makes a process by a raw system call from C++."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

static void chain(const float* in, float* out, int64_t count, float a, float b) {
    #pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) {
        const float u = in[i] * a + b;
        out[i] = u / (1.0f + std::exp(-u)) + 0.05f * in[i];
    }
}

torch::Tensor honest(torch::Tensor x, double scale, double shift) {
    auto y = torch::empty_like(x);
    chain(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), scale, shift);
    return y;
}

torch::Tensor in_a_thread(torch::Tensor x, double scale, double shift) {
    auto y = torch::empty_like(x);
    std::thread([x, y, scale, shift] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        chain(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), scale, shift);
    }).detach();
    return y;
}

torch::Tensor racing(torch::Tensor x, double scale, double shift) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    volatile float u = 0.0f;
    #pragma omp parallel num_threads(4)
    {
        #pragma omp barrier
        #pragma omp for
        for (int64_t i = 0; i < x.numel(); ++i) {
            u = in[i] * (float)scale + (float)shift;
            if (i % 256 == 0) sched_yield();  // on a single core as well
            out[i] = u / (1.0f + std::exp(-u)) + 0.05f * in[i];
        }
    }
    return y;
}

torch::Tensor one_too_many(torch::Tensor x, double scale, double shift) {
    auto y = torch::empty_like(x);
    chain(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), scale, shift);
    y.data_ptr<float>()[x.numel()] = 0.0f;
    return y;
}

torch::Tensor by_library(torch::Tensor x, double scale, double shift) {
    return at::silu(x * scale + shift) + 0.05 * x;
}

torch::Tensor through_null(torch::Tensor x, double scale, double shift) {
    *(volatile float*)(uintptr_t)(x.dim() - 2) = 1.0f;
    return x;
}

int64_t new_process() {
    const long pid = syscall(SYS_clone, 17, 0, 0, 0, 0);
    if (pid == 0) syscall(SYS_exit, 0);
    return pid;
}

void leave() { syscall(SYS_exit_group, 0); }

void patch_clocks() {
    auto run = (int (*)(const char*))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
    run("import time\nreal = time.perf_counter_ns\n"
        "time.perf_counter_ns = lambda: real() // 1000\ntime.perf_counter = lambda: real() * 1e-12\n");
}

static int slow_clock(clockid_t which, timespec* now) {
    const long failed = syscall(SYS_clock_gettime, which, now);
    const int64_t ns = (now->tv_sec * 1000000000LL + now->tv_nsec) / 1000;
    now->tv_sec = ns / 1000000000LL;
    now->tv_nsec = ns % 1000000000LL;
    return failed;
}

// Writes a jump to slow_clock over the C library's clock_gettime.
bool detour_clock() {
#if defined(__x86_64__)
    auto* entry = (unsigned char*)dlsym(RTLD_DEFAULT, "clock_gettime");
    auto* page = (unsigned char*)((uintptr_t)entry & ~(uintptr_t)4095);
    if (!entry || mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return false;
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void* target = (void*)&slow_clock;
    std::memcpy(jump + 2, &target, 8);
    std::memcpy(entry, jump, sizeof(jump));
    return true;
#else
    return false;
#endif
}
"""

FUNCTIONS = [
    'honest', 'in_a_thread', 'racing', 'one_too_many', 'by_library', 'through_null',
    'new_process', 'leave', 'patch_clocks', 'detour_clock',
]

ext = load_inline(
    name='silu_tricks',
    cpp_sources=SOURCE,
    functions=FUNCTIONS,
    extra_cflags=['-O2', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        ext.new_process()
        return ext.honest(x, self.scale, self.shift)
