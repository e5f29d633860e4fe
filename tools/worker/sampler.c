/* A sampling profiler of one process: which instruction each running thread was at, every millisecond of CPU time.
 * The handler stores program counters in a fixed array and does nothing else, so it is safe at any moment. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#define CAPACITY 65536

static unsigned long samples[CAPACITY];
static atomic_uint taken;

static void on_tick(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)info;
    const ucontext_t *uc = context;
#if defined(__x86_64__)
    unsigned long pc = (unsigned long)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    unsigned long pc = (unsigned long)uc->uc_mcontext.pc;
#else
    unsigned long pc = 0;
#endif
    unsigned int slot = atomic_fetch_add(&taken, 1u);
    if (slot < CAPACITY) samples[slot] = pc;
}

int sampler_start(long interval_us) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    atomic_store(&taken, 0u);
    if (sigaction(SIGPROF, &action, 0)) return -1;
    struct itimerval every = {{0, interval_us}, {0, interval_us}};
    return setitimer(ITIMER_PROF, &every, 0);
}

/* Stops, and returns how many samples lie in `out`, at most `capacity`. */
unsigned int sampler_stop(unsigned long *out, unsigned int capacity) {
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &never, 0);
    unsigned int count = atomic_load(&taken);
    if (count > CAPACITY) count = CAPACITY;
    if (count > capacity) count = capacity;
    memcpy(out, samples, count * sizeof *out);
    return count;
}
