/* container: sealed SQLite files: packages, profiles, exchange and placement problems.
 *
 * A container is an SQLite database with an application id, a schema version, a table `seal` and a
 * table `chunk` for large arrays. Everything is built in memory in one transaction; the finished
 * image gets a checksum of the whole file in its seal and is written by file_write_atomic: the old
 * file or the new one, never half. A reader checks the seal before SQLite sees a byte, so a file that
 * was cut or changed in any place is refused; what the tables then say is still not trusted.
 *
 *   seal(value BLOB)                      16 bytes mark, 8 bytes checksum (over the file, these 0)
 *   chunk(array TEXT, number INTEGER, bytes INTEGER, checksum INTEGER, data BLOB)
 *                                         zstd frames of at most 4 MiB raw each, numbered from 0
 */
#ifndef IPU_BASE_CONTAINER_H
#define IPU_BASE_CONTAINER_H

#include "base/base.h"

#include <sqlite3.h>

enum { CONTAINER_CHUNK_BYTES = 4 << 20 };

struct container {
    sqlite3 *db;
    char *path;      /* for messages */
    uint8_t *bytes;  /* reading: the file */
    size_t n_bytes;
};

/* New in memory, ready for statements; `schema` is the SQL of its tables. */
struct container *container_new(const char *path, uint32_t application_id, uint32_t version,
                                const char *schema);
/* Seals and writes; the container stays open. ret_bytes may be NULL. */
bool container_write(struct container *c, uint64_t *ret_bytes, GError **error);
/* `what` names the kind of file in messages: "package", "profile". */
bool container_read(const char *path, const char *what, uint32_t application_id,
                    uint32_t version, struct container **ret, GError **error);
bool container_read_bytes(const uint8_t *bytes, size_t n, const char *path, const char *what,
                          uint32_t application_id, uint32_t version, struct container **ret,
                          GError **error);
void container_free(struct container *c); /* NULL is allowed */

/* Runs one statement: `format` has one letter per argument: i = int64_t, s = const char * (NULL is
 * SQL NULL). Writing only: a failure is a bug. */
void container_exec(struct container *c, const char *sql, const char *format, ...);

void container_array_put(struct container *c, const char *name, const void *data, uint64_t bytes);
/* Copies into the arena; the size must be a multiple of element_bytes and, when n_expected is not
 * UINT64_MAX, n_expected elements. */
bool container_array_get(struct container *c, const char *name, uint32_t element_bytes,
                         uint64_t n_expected, struct arena *a, void *ret_data, uint64_t *ret_n,
                         GError **error);
/* The same into the caller's `bytes` bytes: the array must have exactly this size. */
bool container_array_read(struct container *c, const char *name, void *data, uint64_t bytes,
                          GError **error);
bool container_array_has(struct container *c, const char *name);
/* Prepares a query; NULL with an error naming the file. */
sqlite3_stmt *container_query(struct container *c, const char *sql, GError **error);
/* True with a row, false at the end or with *error set. */
bool container_step(struct container *c, sqlite3_stmt *s, GError **error);

uint64_t container_checksum(const uint8_t *bytes, size_t n);

#endif
