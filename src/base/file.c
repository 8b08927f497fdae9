/* Files: whole-file reads with a limit, atomic writes (temporary name, fsync, rename). */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

G_DEFINE_QUARK(ipu-stack-diag-quark, diag)

static bool read_fd(int fd, const char *path, size_t size, uint8_t *data, GError **error) {
    size_t got = 0;
    while (got < size) {
        const ssize_t n = read(fd, data + got, size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            diag_set(error, FILE_READ, path, n < 0 ? g_strerror(errno) : "file became shorter");
            return false;
        }
        got += (size_t)n;
    }
    return true;
}

bool file_read(const char *path, size_t max_bytes, uint8_t **ret_data, size_t *ret_size,
               GError **error) {
    const uint64_t limit = max_bytes != 0 ? max_bytes : UINT64_C(4) << 30;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        diag_set(error, FILE_OPEN, path, g_strerror(errno));
        return false;
    }
    struct stat st;
    uint8_t *data = NULL;
    bool ok = false;
    if (fstat(fd, &st) != 0) {
        diag_set(error, FILE_READ, path, g_strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        diag_set(error, FILE_NOT_REGULAR, path);
    } else if ((uint64_t)st.st_size > limit) {
        diag_set(error, FILE_TOO_BIG, path, (uint64_t)st.st_size, limit);
    } else {
        data = g_malloc((size_t)st.st_size + 1);
        ok = read_fd(fd, path, (size_t)st.st_size, data, error);
    }
    close(fd);
    if (!ok) {
        g_free(data);
        return false;
    }
    data[st.st_size] = 0; /* text readers may rely on a NUL behind the data */
    *ret_data = data;
    *ret_size = (size_t)st.st_size;
    return true;
}

static bool write_all(int fd, const uint8_t *data, size_t size) {
    size_t put = 0;
    while (put < size) {
        const ssize_t n = write(fd, data + put, size - put);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        put += (size_t)n;
    }
    return fsync(fd) == 0;
}

/* Renaming would replace a device or a pipe, or a link instead of its target. */
static bool replaceable(const char *path, GError **error) {
    struct stat st;
    if (lstat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) return true;
    if (S_ISLNK(st.st_mode)) diag_set(error, FILE_LINK, path);
    else diag_set(error, FILE_NOT_REGULAR, path);
    return false;
}

bool file_write_atomic(const char *path, const void *data, size_t size, GError **error) {
    if (!replaceable(path, error)) return false;
    char *temp = g_strdup_printf("%s.tmp.%ld", path, (long)getpid());
    const int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && write_all(fd, data, size);
    int saved = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        saved = errno;
    }
    if (ok && rename(temp, path) != 0) {
        ok = false;
        saved = errno;
    }
    if (!ok) {
        diag_set(error, FILE_WRITE, path, g_strerror(saved));
        if (fd >= 0) unlink(temp);
    }
    g_free(temp);
    return ok;
}
