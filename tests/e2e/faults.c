// Faults of the disk, on purpose: loaded before the C library (LD_PRELOAD), this fails the n-th operation that changes something under a
// folder, or ends the process before or after it.
//
// FAULT_DIR: the folder. FAULT_AT: the number of the operation, from 1; 0 only counts. FAULT_COUNT: a file for the number of operations.
// FAULT_MODE: eio, enospc (it fails so), short (half of a write, then enospc), lies (a sync does nothing), before, after (the process is
// killed).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long count;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_under(const char *path) {
    const char *dir = getenv("FAULT_DIR");
    return dir && path && strncmp(path, dir, strlen(dir)) == 0;
}

static int fd_is_under(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_under(path);
}

static int at_is_under(int fd, const char *path) {
    return path && path[0] == '/' ? is_under(path) : fd != AT_FDCWD && fd_is_under(fd);
}

// Counts an operation. Returns the mode if it is the one that fails.
static const char *due(int counts) {
    const char *at = getenv("FAULT_AT"), *mode = getenv("FAULT_MODE");
    if (!counts || !at) return NULL;
    long number = atomic_fetch_add(&count, 1) + 1;
    return mode && number == atol(at) ? mode : NULL;
}

static void end(void) { kill(getpid(), SIGKILL); pause(); }

static int failed(const char *mode) {
    errno = strcmp(mode, "eio") == 0 ? EIO : ENOSPC;
    return -1;
}

__attribute__((destructor)) static void tell(void) {
    const char *file = getenv("FAULT_COUNT");
    if (!file) return;
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&count));
    unsetenv("FAULT_AT");
    int fd = REAL(open)(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && REAL(write)(fd, text, length)) close(fd);
}

// An operation without a length: `is` says whether it counts.
#define OPERATION(result, name, parameters, arguments, is)                                 \
    result name parameters {                                                               \
        const char *mode = due(is);                                                        \
        if (!mode) return REAL(name) arguments;                                            \
        if (strcmp(mode, "before") == 0) end();                                            \
        if (strcmp(mode, "after") == 0) { REAL(name) arguments; end(); }                   \
        if (strcmp(mode, "lies") == 0) {                                                   \
            return strstr(#name, "sync") ? 0 : REAL(name) arguments;                       \
        }                                                                                  \
        return failed(mode);                                                               \
    }

OPERATION(int, fsync, (int fd), (fd), fd_is_under(fd))
OPERATION(int, fdatasync, (int fd), (fd), fd_is_under(fd))
OPERATION(int, msync, (void *at, size_t length, int flags), (at, length, flags), 1)
OPERATION(int, rename, (const char *from, const char *to), (from, to), is_under(to))
OPERATION(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), at_is_under(b, to))
OPERATION(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), at_is_under(b, to))
OPERATION(int, link, (const char *from, const char *to), (from, to), is_under(to))
OPERATION(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), at_is_under(b, to))
OPERATION(int, unlink, (const char *path), (path), is_under(path))
OPERATION(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), at_is_under(fd, path))
OPERATION(int, rmdir, (const char *path), (path), is_under(path))
OPERATION(int, mkdir, (const char *path, mode_t mode_of), (path, mode_of), is_under(path))
OPERATION(int, ftruncate, (int fd, off_t length), (fd, length), fd_is_under(fd))
OPERATION(int, ftruncate64, (int fd, off64_t length), (fd, length), fd_is_under(fd))
OPERATION(int, fallocate, (int fd, int flags, off_t at, off_t length), (fd, flags, at, length), fd_is_under(fd))
OPERATION(int, fallocate64, (int fd, int flags, off64_t at, off64_t length), (fd, flags, at, length), fd_is_under(fd))

// posix_fallocate returns the error.
int posix_fallocate64(int fd, off64_t at, off64_t length) {
    const char *mode = due(fd_is_under(fd));
    if (!mode || strcmp(mode, "lies") == 0) return REAL(posix_fallocate64)(fd, at, length);
    if (strcmp(mode, "before") == 0) end();
    if (strcmp(mode, "after") == 0) { REAL(posix_fallocate64)(fd, at, length); end(); }
    failed(mode);
    return errno;
}

int posix_fallocate(int fd, off_t at, off_t length) { return posix_fallocate64(fd, at, length); }

ssize_t write(int fd, const void *bytes, size_t length) {
    const char *mode = due(fd_is_under(fd));
    if (!mode || strcmp(mode, "lies") == 0) return REAL(write)(fd, bytes, length);
    if (strcmp(mode, "before") == 0) end();
    if (strcmp(mode, "after") == 0) { REAL(write)(fd, bytes, length); end(); }
    if (strcmp(mode, "short") == 0 && length > 1) REAL(write)(fd, bytes, length / 2);
    return failed(mode);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    const char *mode = due(fd_is_under(fd));
    if (!mode || strcmp(mode, "lies") == 0) return REAL(pwrite64)(fd, bytes, length, at);
    if (strcmp(mode, "before") == 0) end();
    if (strcmp(mode, "after") == 0) { REAL(pwrite64)(fd, bytes, length, at); end(); }
    if (strcmp(mode, "short") == 0 && length > 1) REAL(pwrite64)(fd, bytes, length / 2, at);
    return failed(mode);
}

// Opening counts if it makes a file, and fails then.
#define OPENING(name, parameters, arguments, is)                                           \
    int name parameters {                                                                  \
        mode_t mode_of = 0;                                                                \
        if (flags & (O_CREAT | O_TMPFILE)) {                                               \
            va_list rest;                                                                  \
            va_start(rest, flags);                                                         \
            mode_of = va_arg(rest, mode_t);                                                \
            va_end(rest);                                                                  \
        }                                                                                  \
        const char *mode = due((flags & O_CREAT) && is);                                   \
        if (!mode || strcmp(mode, "lies") == 0) return REAL(name) arguments;               \
        if (strcmp(mode, "before") == 0) end();                                            \
        if (strcmp(mode, "after") == 0) { REAL(name) arguments; end(); }                   \
        return failed(mode);                                                               \
    }

OPENING(open, (const char *path, int flags, ...), (path, flags, mode_of), is_under(path))
OPENING(open64, (const char *path, int flags, ...), (path, flags, mode_of), is_under(path))
OPENING(openat, (int fd, const char *path, int flags, ...), (fd, path, flags, mode_of), at_is_under(fd, path))
OPENING(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode_of), at_is_under(fd, path))
