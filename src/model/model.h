/* model: tensors in files.
 *
 * In:   a safetensors file: u64 little-endian header size, a JSON header {name: {dtype, shape,
 *       data_offsets}}, raw little-endian data. (ONNX is not read yet.)
 * Out:  its tensors by name, data mapped read-only; and the writer of the same format.
 * Limits: header at most 100 MiB, at most MODEL_MAX_DIMS axes, every byte of the data in exactly one
 *       tensor (no overlap, no gap, nothing behind the last), size equal to shape times element size,
 *       no name twice; anything else is refused with the tensor's name.
 * Ownership: a file owns the memory of its tensors until tensor_file_free.
 * Errors: diag.def 700..749. Threads: a file may be read from several threads.
 */
#ifndef IPU_MODEL_H
#define IPU_MODEL_H

#include "base/base.h"

enum { MODEL_MAX_DIMS = 8 };

/* DTYPE(NAME, "safetensors name", bytes) */
#define MODEL_DTYPES(DTYPE)                                                                       \
    DTYPE(BOOL, "BOOL", 1)                                                                        \
    DTYPE(U8, "U8", 1)                                                                            \
    DTYPE(I8, "I8", 1)                                                                            \
    DTYPE(F8_E5M2, "F8_E5M2", 1)                                                                  \
    DTYPE(F8_E4M3, "F8_E4M3", 1)                                                                  \
    DTYPE(I16, "I16", 2)                                                                          \
    DTYPE(U16, "U16", 2)                                                                          \
    DTYPE(F16, "F16", 2)                                                                          \
    DTYPE(BF16, "BF16", 2)                                                                        \
    DTYPE(I32, "I32", 4)                                                                          \
    DTYPE(U32, "U32", 4)                                                                          \
    DTYPE(F32, "F32", 4)                                                                          \
    DTYPE(F64, "F64", 8)                                                                          \
    DTYPE(I64, "I64", 8)                                                                          \
    DTYPE(U64, "U64", 8)

enum model_dtype {
#define DTYPE(name, text, bytes) MODEL_##name,
    MODEL_DTYPES(DTYPE)
#undef DTYPE
};

const char *model_dtype_name(enum model_dtype dtype);
uint32_t model_dtype_bytes(enum model_dtype dtype);

struct model_tensor {
    const char *name;
    enum model_dtype dtype;
    uint32_t n_dims;
    uint64_t shape[MODEL_MAX_DIMS];
    const void *data; /* little-endian, row-major, not necessarily aligned */
    uint64_t bytes;
};

struct tensor_file;
bool tensor_file_open(const char *path, struct tensor_file **ret, GError **error);
void tensor_file_free(struct tensor_file *f);
/* In order of their data. */
uint32_t tensor_file_count(const struct tensor_file *f);
const struct model_tensor *tensor_file_get(const struct tensor_file *f, uint32_t i);
/* NULL when there is no such tensor. */
const struct model_tensor *tensor_file_find(const struct tensor_file *f, const char *name);
const char *tensor_file_path(const struct tensor_file *f);

/* Writes all tensors, in the given order, atomically. */
bool tensor_file_write(const char *path, const struct model_tensor *tensors, uint32_t n,
                       GError **error);

/* "[2, 3]" of a shape, for messages; g_free'd by the caller. */
char *model_shape_text(const uint64_t *shape, uint32_t n_dims);

#endif
