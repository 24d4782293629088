// Faults of the disk, on purpose: `faults COMMAND [ARGUMENT]...` traces a command, and fails its n-th operation that changes something
// under a folder, or kills the command before or after it. It sees system calls (ptrace), as some libraries make them without the C library.
//
// FAULT_DIR: the folder. FAULT_AT: the number of the operation, from 1; 0 only counts. FAULT_COUNT: a file for the number of operations.
// FAULT_MODE: eio, enospc (it fails so), short (half of a write, then enospc), lies (a sync does nothing), before, after (the command is
// killed). FAULT_TRACE: a file to record all operations to, of which `power_loss.py` makes what a loss of power leaves; FAULT_TRACE.data has
// the bytes that were written, or that a synced file had.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <elf.h>
#include <unistd.h>

enum kind { OPEN, MKDIR, UNLINK, RENAME, LINK, WRITE, LENGTH, ALLOCATE, SYNC, SYNC_MAP, WRITE_OUT, UNKNOWN, DUMPABLE };
enum { NO = -1 };

// A system call: which arguments are the folder's descriptor (or the file's) and the path; the same of a second name; the flags, the
// offset, or the length of a file.
static const struct rule {
    long number;
    enum kind kind;
    int fd, path, fd2, path2, more;
} RULES[] = {
#ifdef SYS_open
    {SYS_open, OPEN, NO, 0, NO, NO, 1},
    {SYS_creat, OPEN, NO, 0, NO, NO, NO},
    {SYS_mkdir, MKDIR, NO, 0, NO, NO, NO},
    {SYS_unlink, UNLINK, NO, 0, NO, NO, NO},
    {SYS_rmdir, UNLINK, NO, 0, NO, NO, NO},
    {SYS_rename, RENAME, NO, 0, NO, 1, NO},
    {SYS_link, LINK, NO, 0, NO, 1, NO},
    {SYS_symlink, UNKNOWN, NO, 1, NO, NO, NO},
#endif
#ifdef SYS_renameat
    {SYS_renameat, RENAME, 0, 1, 2, 3, NO},
#endif
    {SYS_openat, OPEN, 0, 1, NO, NO, 2},
    {SYS_mkdirat, MKDIR, 0, 1, NO, NO, NO},
    {SYS_unlinkat, UNLINK, 0, 1, NO, NO, NO},
    {SYS_renameat2, RENAME, 0, 1, 2, 3, 4},
    {SYS_linkat, LINK, 0, 1, 2, 3, NO},
    {SYS_symlinkat, UNKNOWN, 1, 2, NO, NO, NO},
    {SYS_openat2, UNKNOWN, 0, 1, NO, NO, NO},
    {SYS_truncate, UNKNOWN, NO, 0, NO, NO, NO},
    {SYS_write, WRITE, 0, NO, NO, NO, NO},
    {SYS_writev, WRITE, 0, NO, NO, NO, NO},
    {SYS_pwrite64, WRITE, 0, NO, NO, NO, 3},
    {SYS_pwritev, WRITE, 0, NO, NO, NO, 3},
    {SYS_pwritev2, UNKNOWN, 0, NO, NO, NO, NO},
    {SYS_sendfile, WRITE, 0, NO, NO, NO, NO},
    {SYS_splice, UNKNOWN, 2, NO, NO, NO, NO},
    {SYS_copy_file_range, WRITE, 2, NO, NO, NO, NO},
    {SYS_ftruncate, LENGTH, 0, NO, NO, NO, 1},
    {SYS_fallocate, ALLOCATE, 0, NO, NO, NO, NO},
    {SYS_fsync, SYNC, 0, NO, NO, NO, NO},
    {SYS_fdatasync, SYNC, 0, NO, NO, NO, NO},
    {SYS_sync_file_range, WRITE_OUT, 0, NO, NO, NO, NO},
    {SYS_msync, SYNC_MAP, NO, NO, NO, NO, NO},
    {SYS_io_uring_enter, UNKNOWN, NO, NO, NO, NO, NO},
    {SYS_prctl, DUMPABLE, NO, NO, NO, NO, NO},
};
enum { COUNT = sizeof RULES / sizeof RULES[0] };

// A call that has begun and not ended.
static struct call {
    pid_t thread;
    const struct rule *rule;
    uint64_t arguments[6];
    char path[PATH_MAX], path2[PATH_MAX];
    const char *mode;
    int was_there;
    long ordinal, at, length;
} calls[256];

static long count;
static FILE *record, *data;

static void die(const char *what) {
    perror(what);
    _exit(99);
}

static int is_under(const char *path) {
    const char *dir = getenv("FAULT_DIR");
    return dir && path[0] && strncmp(path, dir, strlen(dir)) == 0;
}

static void read_link(pid_t thread, const char *format, int number, char *path) {
    char link[64];
    int head = snprintf(link, sizeof link, "/proc/%d/", thread);
    snprintf(link + head, sizeof link - head, format, number);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

// Returns the path of an argument, absolute.
static void read_path(pid_t thread, const uint64_t *arguments, int fd, int path, char *to) {
    to[0] = 0;
    if (path == NO) {
        if (fd != NO) read_link(thread, "fd/%d", (int)arguments[fd], to);
        return;
    }
    char given[PATH_MAX] = "";
    // A string may end before a page that is not there.
    for (size_t at = 0; at < sizeof given - 1; at++) {
        struct iovec own = {given + at, 1}, other = {(void *)(arguments[path] + at), 1};
        if (process_vm_readv(thread, &own, 1, &other, 1, 0) != 1) die("a path of the command");
        if (!given[at]) break;
    }
    if (given[0] == '/') {
        strcpy(to, given);
        return;
    }
    if (fd == NO || (int)arguments[fd] == AT_FDCWD) read_link(thread, "cwd", 0, to);
    else read_link(thread, "fd/%d", (int)arguments[fd], to);
    size_t length = strlen(to);
    snprintf(to + length, PATH_MAX - length, "/%s", given);
}

static int flags_of(const struct call *call) {
    return call->rule->more == NO ? O_CREAT | O_TRUNC | O_WRONLY : (int)call->arguments[call->rule->more];
}

static int counts(const struct call *call) {
    switch (call->rule->kind) {
    case DUMPABLE: return 0;
    case SYNC_MAP: return (call->arguments[2] & MS_SYNC) != 0;
    case OPEN: return (flags_of(call) & O_CREAT) && is_under(call->path);
    case RENAME: case LINK: return is_under(call->path2);
    case UNKNOWN: return !call->path[0] || is_under(call->path);
    default: return is_under(call->path);
    }
}

// Copies bytes of a file of the command to the data. Returns their place there.
static long keep(const struct call *call, int fd, long at, long length) {
    long place = ftell(data);
    char link[64], buffer[1 << 16];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", call->thread, fd);
    int file = open(link, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && length > 0) {
        ssize_t got = pread(file, buffer, length < (long)sizeof buffer ? length : (long)sizeof buffer, at);
        if (got <= 0) break;
        fwrite(buffer, 1, got, data);
        at += got;
        length -= got;
    }
    close(file);
    return place;
}

static void note(const char *kind, const struct call *call, long number, long place, long length) {
    fprintf(record, "%s\t%s\t%s\t%ld\t%ld\t%ld\n", kind, call->path, call->path2, number, place, length);
}

static long position(const struct call *call, int fd) {
    char path[64];
    long at = 0;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", call->thread, fd);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "pos: %ld", &at) != 1) at = 0;
        fclose(file);
    }
    return at;
}

// Records a call that succeeded.
static void note_end(const struct call *call, long result) {
    const struct rule *rule = call->rule;
    switch (rule->kind) {
    case OPEN:
        if (!call->was_there) note("create", call, 0, 0, 0);
        else if (flags_of(call) & O_TRUNC) note("length", call, 0, 0, 0);
        break;
    case MKDIR: note("mkdir", call, 0, 0, 0); break;
    case UNLINK: note("unlink", call, 0, 0, 0); break;
    case RENAME: note("rename", call, rule->more == NO ? 0 : (long)call->arguments[rule->more], 0, 0); break;
    case LINK: note("link", call, 0, 0, 0); break;
    case WRITE: {
        int fd = (int)call->arguments[rule->fd];
        // A range is copied to where the file is, unless the call says where.
        if (rule->number == SYS_copy_file_range && call->arguments[3]) note("unknown", call, rule->number, 0, 0);
        long at = rule->more == NO ? position(call, fd) - result : (long)call->arguments[rule->more];
        note("write", call, at, keep(call, fd, at, result), result);
        break;
    }
    case LENGTH: note("length", call, (long)call->arguments[rule->more], 0, 0); break;
    case ALLOCATE:
        if (call->arguments[1] == 0) note("allocate", call, (long)(call->arguments[2] + call->arguments[3]), 0, 0);
        break;
    case SYNC: note("sync", call, call->ordinal, call->at, call->length); break;
    // What these promise is left out: it is less than a sync.
    case SYNC_MAP: case WRITE_OUT: break;
    default: note("unknown", call, rule->number, 0, 0);
    }
}

#ifdef __x86_64__
#define RESULT rax
#define BYTES rdx
#else
#define RESULT regs[0]
#define BYTES regs[2]
#endif

static int registers(int request, pid_t thread, struct user_regs_struct *all) {
    struct iovec part = {all, sizeof *all};
    return ptrace(request, thread, NT_PRSTATUS, &part);
}

// Sets the result of a call; with `is_skipped`, the call is not made.
static void set_result(pid_t thread, long result, int is_skipped) {
    struct user_regs_struct all;
    if (registers(PTRACE_GETREGSET, thread, &all)) return;
    all.RESULT = result;
#ifdef __x86_64__
    if (is_skipped) all.orig_rax = -1;
#else
    int none = -1;
    struct iovec number = {&none, sizeof none};
    if (is_skipped && ptrace(PTRACE_SETREGSET, thread, NT_ARM_SYSTEM_CALL, &number)) die("skip a call");
#endif
    registers(PTRACE_SETREGSET, thread, &all);
}

// Sets the length of a write.
static void set_length(pid_t thread, uint64_t length) {
    struct user_regs_struct all;
    if (registers(PTRACE_GETREGSET, thread, &all)) return;
    all.BYTES = length;
    registers(PTRACE_SETREGSET, thread, &all);
}

// Sees a call begin. Returns how the thread goes on: until the call's end, or freely.
static int begin(pid_t thread, pid_t command) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return PTRACE_CONT;
    static struct call seen;
    memset(&seen, 0, offsetof(struct call, path));
    for (int i = 0; i < COUNT; i++) {
        if (RULES[i].number == (long)info.seccomp.nr) seen.rule = &RULES[i];
    }
    const struct rule *rule = seen.rule;
    if (!rule) return PTRACE_CONT;
    seen.thread = thread;
    for (int i = 0; i < 6; i++) seen.arguments[i] = info.seccomp.args[i];
    if (rule->kind == DUMPABLE) {
        // A command that keeps its memory from others would keep its paths from this program.
        if (seen.arguments[0] == PR_SET_DUMPABLE) set_result(thread, 0, 1);
        return PTRACE_CONT;
    }
    read_path(thread, seen.arguments, rule->fd, rule->path, seen.path);
    read_path(thread, seen.arguments, rule->fd2, rule->path2, seen.path2);
    if (!counts(&seen)) return PTRACE_CONT;
    seen.ordinal = ++count;
    const char *mode = getenv("FAULT_MODE");
    seen.mode = mode && count == atol(getenv("FAULT_AT")) ? mode : "";
    if (strcmp(seen.mode, "before") == 0) {
        kill(command, SIGKILL);
        return PTRACE_CONT;
    }
    int is_sync = rule->kind == SYNC || rule->kind == SYNC_MAP || rule->kind == WRITE_OUT;
    if (strcmp(seen.mode, "lies") == 0) {
        if (is_sync) set_result(thread, 0, 1);
        return PTRACE_CONT;
    }
    int is_halved = strcmp(seen.mode, "short") == 0 && (rule->number == SYS_write || rule->number == SYS_pwrite64);
    if (strcmp(seen.mode, "eio") == 0 || strcmp(seen.mode, "enospc") == 0 || (strcmp(seen.mode, "short") == 0 && !is_halved)) {
        set_result(thread, strcmp(seen.mode, "eio") == 0 ? -EIO : -ENOSPC, 1);
        return PTRACE_CONT;
    }
    if (is_halved) set_length(thread, seen.arguments[2] / 2);
    struct stat found;
    seen.was_there = rule->kind == OPEN && lstat(seen.path, &found) == 0;
    if (record && rule->kind == SYNC) {
        int fd = (int)seen.arguments[0];
        char link[64];
        snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, fd);
        seen.length = stat(link, &found) == 0 && S_ISREG(found.st_mode) ? found.st_size : -1;
        seen.at = keep(&seen, fd, 0, seen.length);
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].thread) continue;
        calls[i] = seen;
        return PTRACE_SYSCALL;
    }
    errno = EAGAIN;
    die("too many threads");
    return 0;
}

// Sees a call end.
static void end(pid_t thread, pid_t command) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct call *call = &calls[i];
        if (call->thread != thread) continue;
        if (record && !info.exit.is_error) note_end(call, (long)info.exit.rval);
        if (strcmp(call->mode, "after") == 0) kill(command, SIGKILL);
        if (strcmp(call->mode, "short") == 0) {
            // A program may count on the registers that it gave.
            set_length(thread, call->arguments[2]);
            set_result(thread, -ENOSPC, 0);
        }
        call->thread = 0;
    }
}

// Lets the command go on from stop to stop until it ends.
static void trace(pid_t command) {
    int status;
    pid_t thread;
    while ((thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (thread <= 0 || !WIFSTOPPED(status)) continue;
        int go = PTRACE_CONT, signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP) go = begin(thread, command);
        else if (signal == (SIGTRAP | 0x80)) end(thread, command);
        else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) go = PTRACE_LISTEN;
        if (event || signal == (SIGTRAP | 0x80)) signal = 0;
        ptrace(go, thread, 0, signal);
    }
}

// Asks the system to stop at the calls of the rules.
static void stop_at_calls(void) {
    struct sock_filter filter[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++) {
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RULES[i].number, COUNT - i, 0);
    }
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = {COUNT + 3, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) die("seccomp");
}

int main(int argc, char **argv) {
    pid_t command = getpid();
    int ready[2];
    char text = 0;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (argc < 2 || !getenv("FAULT_AT") || pipe2(ready, O_CLOEXEC)) die("usage: faults COMMAND, with FAULT_AT");
    // The command keeps the number of this process, so that signals and its end are its own; the child traces it.
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        setsid();
        close(0);
        const char *counted = getenv("FAULT_COUNT"), *traced = getenv("FAULT_TRACE");
        if (traced) {
            char path[PATH_MAX];
            snprintf(path, sizeof path, "%s.data", traced);
            record = fopen(traced, "we");
            data = fopen(path, "we");
            if (!record || !data) die(traced);
        }
        long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC
                       | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
        if (ptrace(PTRACE_SEIZE, command, 0, options)) die("ptrace");
        if (write(ready[1], &text, 1) != 1) die("pipe");
        close(ready[1]);
        trace(command);
        if (record && (fclose(record) || fclose(data))) die("the trace");
        FILE *file = counted ? fopen(counted, "w") : NULL;
        if (file) fprintf(file, "%ld\n", count);
        if (file && fclose(file)) die(counted);
        return 0;
    }
    // The child has seen nothing if it ended.
    close(ready[1]);
    if (read(ready[0], &text, 1) != 1) _exit(99);
    stop_at_calls();
    execvp(argv[1], argv + 1);
    die(argv[1]);
}
