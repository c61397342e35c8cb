/* Writes down what a process has its files do, in order: LD_PRELOAD this, DISK_LOG the file, DISK_LOG_OF the folder.
   A record: when it began (CLOCK_MONOTONIC), kind, length of the path, offset, length of the data; then path and data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct __attribute__((packed)) head { double at; uint8_t kind; uint16_t path; uint64_t offset; uint32_t data; };

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static int out = -1;
static const char *of;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("DISK_LOG");
    of = getenv("DISK_LOG_OF");
    if (file && of) out = REAL(open)(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int is_ours(const char *path) { return out >= 0 && !strncmp(path, of, strlen(of)); }

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = out < 0 ? -1 : readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return is_ours(path);
}

static void note(double at, char kind, const char *path, uint64_t offset, const void *data, size_t size) {
    struct head head = {at, kind, strlen(path), offset, size};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)data, size}};
    if (REAL(writev)(out, parts, 3) < 0) abort();
}

#define NOTED(type, condition, call, kind, path, offset, data, size)      \
    if (!(condition)) return call;                                        \
    pthread_mutex_lock(&one);                                             \
    double at = now();                                                    \
    type done = call;                                                     \
    if (done >= 0) note(at, kind, path, offset, data, size);              \
    pthread_mutex_unlock(&one);                                           \
    return done

#define WRITER(name, offset_type)                                                       \
    ssize_t name(int fd, const void *data, size_t size, offset_type offset) {           \
        char path[PATH_MAX];                                                            \
        NOTED(ssize_t, path_of(fd, path), REAL(name)(fd, data, size, offset), 'W', path, offset, data, done); \
    }
WRITER(pwrite, off_t)
WRITER(pwrite64, off64_t)

ssize_t write(int fd, const void *data, size_t size) {
    char path[PATH_MAX];
    NOTED(ssize_t, path_of(fd, path), REAL(write)(fd, data, size), 'W', path, lseek(fd, 0, SEEK_CUR) - done, data, done);
}

#define SYNCER(name)                                                                    \
    int name(int fd) {                                                                  \
        char path[PATH_MAX];                                                            \
        NOTED(int, path_of(fd, path), REAL(name)(fd), 'S', path, 0, "", 0);             \
    }
SYNCER(fsync)
SYNCER(fdatasync)

#define CUTTER(name, offset_type)                                                       \
    int name(int fd, offset_type size) {                                                \
        char path[PATH_MAX];                                                            \
        NOTED(int, path_of(fd, path), REAL(name)(fd, size), 'T', path, size, "", 0);    \
    }
CUTTER(ftruncate, off_t)
CUTTER(ftruncate64, off64_t)

/* Where its open made a file, or emptied one: an offset of 1 says that it was there. */
static int opened(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    struct stat before;
    int was = !stat(path, &before);
    NOTED(int, is_ours(path) && (was ? flags & O_TRUNC : flags & O_CREAT), real(path, flags, mode), 'C', path, was, "", 0);
}

#define OPENER(name)                                                                    \
    int name(const char *path, int flags, ...) {                                        \
        va_list rest;                                                                   \
        va_start(rest, flags);                                                          \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                       \
        va_end(rest);                                                                   \
        return opened(REAL(name), path, flags, mode);                                   \
    }
OPENER(open)
OPENER(open64)

int unlink(const char *path) {
    NOTED(int, is_ours(path), REAL(unlink)(path), 'U', path, 0, "", 0);
}

int rename(const char *from, const char *to) {
    NOTED(int, is_ours(to), REAL(rename)(from, to), 'R', from, 0, to, strlen(to));
}
