/* Guard bands round, and poison in, the blocks that PyTorch's CPU allocator takes (posix_memalign).
 *
 * Preloaded into the nursery, so that every worker has it. Off, it passes calls on. On, each block gets a band of known
 * bytes before and behind it (the one behind begins at the very byte after the asked size), is filled with poison, and on
 * free is checked, poisoned again and kept for a while, so that a late write is seen. A report is a hint: code in the same
 * process could forge it. Known blocks stay known when the guard is switched off, and strange ones are passed on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { FRONT = 1024, BACK = 4096, BUCKETS = 1 << 16, KEPT_BLOCKS = 256 };
static const size_t KEPT_BYTES = (size_t)256 << 20;
static const unsigned char CANARY = 0xA5;

struct block {
    struct block *next; /* in its bucket, or in the queue of freed blocks */
    unsigned char *base, *user;
    size_t front, size;
    unsigned char poison;
};

/* `offset` is of the first damaged byte, from the start of the block: negative before it, >= size behind it. */
struct report {
    uint64_t damaged, watched, size;
    int64_t offset;
    uint64_t after_free;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int on;
static atomic_size_t live;
static unsigned char poison_byte;
static int poisoning;
static struct block *buckets[BUCKETS];
static struct block *oldest, *newest;
static size_t kept_blocks, kept_bytes;
static struct report settled; /* of blocks that are gone */

static size_t bucket_of(const void *p) { return ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15ull >> 48; }

/* The first byte in [p, p + n) that is not `value`, or n. Compares by the library's fast routines. */
static size_t first_other(const unsigned char *p, size_t n, unsigned char value) {
    if (n == 0 || (p[0] == value && memcmp(p, p + 1, n - 1) == 0)) return n;
    size_t i = 0;
    while (p[i] == value) i++;
    return i;
}

static int find_damage(const struct block *b, int freed, int64_t *offset, int *after_free) {
    size_t at = first_other(b->base, b->front, CANARY);
    *after_free = 0;
    if (at < b->front) {
        *offset = (int64_t)at - (int64_t)b->front;
        return 1;
    }
    if ((at = first_other(b->user + b->size, BACK, CANARY)) < BACK) {
        *offset = (int64_t)(b->size + at);
        return 1;
    }
    if (freed && (at = first_other(b->user, b->size, b->poison)) < b->size) {
        *offset = (int64_t)at;
        *after_free = 1;
        return 1;
    }
    return 0;
}

static void add_damage(struct report *r, const struct block *b, int freed) {
    int64_t offset;
    int after_free;
    if (!find_damage(b, freed, &offset, &after_free)) return;
    if (r->damaged++ == 0) {
        r->size = b->size;
        r->offset = offset;
    }
    r->after_free += (uint64_t)after_free;
}

static void release_oldest(void) {
    struct block *b = oldest;
    add_damage(&settled, b, 1);
    oldest = b->next;
    if (!oldest) newest = NULL;
    kept_blocks--;
    kept_bytes -= b->size;
    __libc_free(b->base);
    __libc_free(b);
}

static void *guarded(size_t alignment, size_t size) {
    size_t front = FRONT > alignment ? FRONT : alignment;
    if (size > SIZE_MAX - front - BACK) return NULL;
    struct block *b = __libc_malloc(sizeof *b);
    unsigned char *base = b ? __libc_memalign(alignment, front + size + BACK) : NULL;
    if (!base) {
        __libc_free(b);
        return NULL;
    }
    *b = (struct block){.base = base, .user = base + front, .front = front, .size = size};
    memset(base, CANARY, front);
    memset(b->user + size, CANARY, BACK);
    pthread_mutex_lock(&lock);
    b->poison = poison_byte;
    int fill = poisoning;
    struct block **place = &buckets[bucket_of(b->user)];
    b->next = *place;
    *place = b;
    atomic_fetch_add(&live, 1);
    pthread_mutex_unlock(&lock);
    if (fill) memset(b->user, b->poison, size);
    return b->user;
}

/* Take a block of ours out of the table; NULL for a strange one. */
static struct block *forget(const void *p) {
    for (struct block **at = &buckets[bucket_of(p)]; *at; at = &(*at)->next)
        if ((*at)->user == p) {
            struct block *b = *at;
            *at = b->next;
            atomic_fetch_sub(&live, 1);
            return b;
        }
    return NULL;
}

static size_t size_of(const void *p, int *ours) {
    size_t size = 0;
    *ours = 0;
    if (atomic_load_explicit(&live, memory_order_relaxed) == 0) return 0;
    pthread_mutex_lock(&lock);
    for (struct block *b = buckets[bucket_of(p)]; b; b = b->next)
        if (b->user == p) {
            size = b->size;
            *ours = 1;
        }
    pthread_mutex_unlock(&lock);
    return size;
}

void free(void *p) {
    int saved = errno;
    if (!p || atomic_load_explicit(&live, memory_order_relaxed) == 0) {
        __libc_free(p);
    } else {
        pthread_mutex_lock(&lock);
        struct block *b = forget(p);
        if (b) {
            struct report before = settled;
            add_damage(&settled, b, 0);
            if (settled.damaged != before.damaged || b->size > KEPT_BYTES || !atomic_load(&on)) {
                __libc_free(b->base);
                __libc_free(b);
            } else {
                memset(b->user, b->poison, b->size);
                b->next = NULL;
                if (newest) newest->next = b;
                else oldest = b;
                newest = b;
                kept_blocks++;
                kept_bytes += b->size;
                while (kept_blocks > KEPT_BLOCKS || kept_bytes > KEPT_BYTES) release_oldest();
            }
        }
        pthread_mutex_unlock(&lock);
        if (!b) __libc_free(p);
    }
    errno = saved;
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1))) return EINVAL;
    int saved = errno;
    int guard = size > 0 && atomic_load_explicit(&on, memory_order_relaxed);
    void *p = guard ? guarded(alignment, size) : __libc_memalign(alignment, size);
    errno = saved;
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

void *realloc(void *p, size_t size) {
    int ours = 0;
    size_t old = p ? size_of(p, &ours) : 0;
    if (!ours) return __libc_realloc(p, size);
    if (size == 0) {
        free(p);
        return NULL;
    }
    void *moved = __libc_malloc(size);
    if (!moved) return NULL;
    memcpy(moved, p, old < size ? old : size);
    free(p);
    return moved;
}

/* The next library's own answer cannot be asked for one of our inner pointers. */
extern void *dlsym(void *, const char *);
size_t malloc_usable_size(void *p) {
    static size_t (*next)(void *);
    int ours = 0;
    size_t size = p ? size_of(p, &ours) : 0;
    if (ours || !p) return size;
    if (!next) next = (size_t (*)(void *))dlsym((void *)-1l /* RTLD_NEXT */, "malloc_usable_size");
    return next(p);
}

/* poison_kind: 0 none, 1 all bytes 0xFF (a NaN in every float type), 2 all bytes 0x7F (huge, and NaN in fp16). */
void guard_enable(unsigned char poison_kind) {
    pthread_mutex_lock(&lock);
    while (oldest) release_oldest();
    memset(&settled, 0, sizeof settled);
    poisoning = poison_kind != 0;
    poison_byte = poison_kind == 2 ? 0x7F : 0xFF;
    atomic_store(&on, 1);
    pthread_mutex_unlock(&lock);
}

void guard_disable(void) {
    pthread_mutex_lock(&lock);
    atomic_store(&on, 0);
    while (oldest) release_oldest();
    pthread_mutex_unlock(&lock);
}

/* Damage since guard_enable, in blocks that live, that were freed of late, and that are gone. */
void guard_check(struct report *r) {
    pthread_mutex_lock(&lock);
    *r = settled;
    uint64_t watched = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next, watched++) add_damage(r, b, 0);
    for (struct block *b = oldest; b; b = b->next, watched++) add_damage(r, b, 1);
    r->watched = watched;
    pthread_mutex_unlock(&lock);
}
