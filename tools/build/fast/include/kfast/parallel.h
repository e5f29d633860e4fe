// at::parallel_for and its kin: OpenMP where the source is compiled with it, else one thread, as torch's own does.
#pragma once

#include <kfast/error.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>
#ifdef _OPENMP
#include <omp.h>
#endif

#pragma GCC visibility push(hidden)

namespace at {
inline namespace kfast_api {

inline int get_num_threads() { return kf_threads(0); }
inline int get_thread_num() { return kf_threads(1); }
inline bool in_parallel_region() { return kf_threads(2) != 0; }
inline int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }

namespace internal {
constexpr int64_t GRAIN_SIZE = 32768;

// Marks a thread as number `id` of a parallel region.
struct RegionMark {
  explicit RegionMark(int64_t id) : old(kf_swap_thread(static_cast<int32_t>(id), true)) {}
  ~RegionMark() { kf_swap_thread(old >> 1, (old & 1) != 0); }
  int32_t old;
};

template <class F>
void run(int64_t begin, int64_t end, int64_t grain, bool parallel, const F& f) {
#ifdef _OPENMP
  if (parallel) {
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
    std::exception_ptr error;
#pragma omp parallel
    {
      int64_t threads = omp_get_num_threads();
      if (grain > 0) threads = std::min(threads, divup(end - begin, grain));
      const int64_t id = omp_get_thread_num(), chunk = divup(end - begin, threads), from = begin + id * chunk;
      if (from < end) {
        try {
          RegionMark mark(id);
          f(from, std::min(end, from + chunk));
        } catch (...) {
          if (!failed.test_and_set()) error = std::current_exception();
        }
      }
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#endif
  static_cast<void>(grain);
  static_cast<void>(parallel);
  RegionMark mark(0);
  f(begin, end);
}
inline bool worth_it(int64_t count, int64_t grain) {
#ifdef _OPENMP
  thread_local const bool ready = (kf_threads(3), true);
  return ready && count > grain && count > 1 && !in_parallel_region() && get_num_threads() > 1;
#else
  return static_cast<void>(count), static_cast<void>(grain), false;
#endif
}
}  // namespace internal

template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  if (begin < end) internal::run(begin, end, grain, internal::worth_it(end - begin, grain), f);
}

template <class T, class F, class SF>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain, const T ident, const F& f, const SF& combine) {
  TORCH_CHECK(grain >= 0);
  if (begin >= end) return ident;
  const bool parallel = internal::worth_it(end - begin, grain);
  std::vector<T> results(parallel ? static_cast<size_t>(get_num_threads()) : 1, ident);
  internal::run(begin, end, grain, parallel, [&](int64_t from, int64_t to) {
    results[static_cast<size_t>(parallel ? get_thread_num() : 0)] = f(from, to, ident);
  });
  if (!parallel) return results[0];
  T out = ident;
  for (const T& part : results) out = combine(out, part);
  return out;
}

}  // namespace kfast_api
}  // namespace at

#pragma GCC visibility pop
