// Memory that runs out, on purpose: loaded before the C library (LD_PRELOAD), this refuses allocations of MEMORY_BYTES and more as long as
// the file MEMORY_FILE exists.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static size_t least;
static const char *file;

__attribute__((constructor)) static void begin(void) {
    file = getenv("MEMORY_FILE");
    const char *bytes = getenv("MEMORY_BYTES");
    least = file && bytes ? strtoull(bytes, NULL, 10) : 0;
}

static int is_refused(size_t bytes) {
    if (!least || bytes < least || access(file, F_OK)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes) { return is_refused(bytes) ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes) { return is_refused(count * bytes) ? NULL : __libc_calloc(count, bytes); }

void *realloc(void *old, size_t bytes) { return is_refused(bytes) ? NULL : __libc_realloc(old, bytes); }

void *aligned_alloc(size_t align, size_t bytes) { return is_refused(bytes) ? NULL : __libc_memalign(align, bytes); }

int posix_memalign(void **at, size_t align, size_t bytes) {
    if (is_refused(bytes)) return ENOMEM;
    *at = __libc_memalign(align, bytes);
    return *at ? 0 : ENOMEM;
}
