/* program: whole-device work with layouts. Exactly three kinds of operation: copy, compute
 * (product, kernel, sum, cast) and repeat. No tile calls, no addresses.
 *
 * In:   built by the planner through program_add_*, or read from its text form.
 * Out:  values (matrix shape, element format, layout, owners) and operations in program order; the
 *       geometry of every shard (program_shard, program_offset): the only place where layouts are
 *       turned into numbers.
 *
 * Values are `batch` matrices of `rows` x `cols`. Leading axes that share one right operand are
 * flattened into rows.
 *
 * Layout. Each of the three axes is cut into `parts` balanced whole blocks of `grain` elements (the
 * first parts take the remainder, one block each; no part is empty). A part's storage is its box
 * with rows and cols rounded up to `pad` (padding is zero), in one of the orders (kernels 1.2-1.5):
 *   ROW_MAJOR     [batch][row][col]
 *   AMP_LEFT      [col / m][batch][row][col % m]                       m = 32 bytes of elements
 *   AMP_BATCHED   [batch][col / m][row][col % m]          one AMP_LEFT matrix per batch index
 *   COEFF         [batch][col / 16][row / m][col % 16][row % m]        rows are K, cols are C
 *   COEFF_T       [batch][row / 16][col / m][row % 16][col % m]        rows are C, cols are K
 * The storage of a part may be cut into `windows` balanced runs of `window_grain` bytes: shards. Or
 * its box is cut into window_rows x window_cols sub-boxes (whole col pads; window number =
 * col * window_rows + row), each with a storage of its own. A
 * value with partials > 1 holds that many summands of every element, one per partial index. A value
 * with replicas > 1 holds every shard on that many tiles.
 * Owner of (batch, row, col, partial, window, replica) = base + sum of index * stride: a logical
 * tile. Two shards may have one owner.
 *
 * Invariants (program_verify): defined before use; owners below n_tiles; the operands of a compute
 * are where the output needs them: a product's output grid (batch, row, col, partial) reads left
 * shards (batch, row; cols cut by partial) and right shards (batch; K cut by partial; C by col) on
 * the same tile; sums read partials of the same parts; kernels read shards with the same window.
 * Ownership: one arena. Threads: reading on any. Errors: GError 800..849. Facts: compiler 1.1, 3.1,
 * 3.2; kernels 1.
 */
#ifndef IPU_PROGRAM_H
#define IPU_PROGRAM_H

#include "base/base.h"

#define PROGRAM_NONE UINT32_MAX

enum program_format { PROGRAM_F16, PROGRAM_F32, PROGRAM_F8_F143, PROGRAM_F8_F152, PROGRAM_U32 };
enum program_order {
    PROGRAM_ROW_MAJOR,
    PROGRAM_AMP_LEFT,
    PROGRAM_AMP_BATCHED,
    PROGRAM_COEFF,
    PROGRAM_COEFF_T,
    PROGRAM_N_ORDERS
};
enum program_memory { PROGRAM_ANY, PROGRAM_STANDARD, PROGRAM_INTERLEAVED };

enum program_axis {
    PROGRAM_BATCH,
    PROGRAM_ROWS,
    PROGRAM_COLS,
    PROGRAM_PARTIAL,
    PROGRAM_WINDOW,
    PROGRAM_REPLICA,
    PROGRAM_N_AXES
};

struct program_layout {
    uint8_t format;                    /* enum program_format */
    int8_t exponent;                   /* of an F8 format: value = stored * 2^exponent */
    uint8_t order;                     /* enum program_order */
    uint8_t memory;                    /* enum program_memory */
    uint32_t count[PROGRAM_N_AXES];    /* parts, partials, windows, replicas; all at least 1 */
    uint32_t grain[3];                 /* elements, batch rows cols */
    uint32_t pad[3];                   /* elements; pad[0] = 1 */
    uint32_t window_grain;             /* bytes, a multiple of 8; linear windows */
    uint32_t window_rows, window_cols; /* 0, 0: linear; else their product is the window count */
    uint32_t base;
    uint32_t stride[PROGRAM_N_AXES];
    uint32_t wrap; /* row part i lies where part i % wrap would (passes over the rows); 0 = no wrap */
};
/* What an index adds to the owner. */
static inline uint32_t program_owner_step(const struct program_layout *l, uint32_t axis,
                                          uint32_t index) {
    return (axis == PROGRAM_ROWS && l->wrap ? index % l->wrap : index) * l->stride[axis];
}

enum program_role { PROGRAM_LOCAL, PROGRAM_INPUT, PROGRAM_PARAMETER, PROGRAM_OUTPUT };

/* The host tensor that an INPUT, PARAMETER or OUTPUT is: element (b, r, c) of the value is element
 * offset + b*step[0] + r*step[1] + c*step[2] of the row-major tensor. */
struct program_tensor {
    const char *name;
    uint32_t n_dims, shape[6];
    uint64_t offset, step[3];
    uint32_t bound; /* of indices: every element must be less; 0 = no bound */
};

struct program_value {
    const char *name;
    uint32_t batch, rows, cols;
    uint32_t sequence; /* 0, or the number of blocks of a value that a repeat iterates over */
    uint8_t role;      /* enum program_role */
    struct program_layout layout;
    struct program_tensor tensor; /* role other than LOCAL; with a sequence, step_sequence apart */
    uint64_t step_sequence;
    /* The value's shards are windows of the storage of this value's shards on the same tiles
     * (homes that lie in the buffer into which the rest is gathered); PROGRAM_NONE otherwise. */
    uint32_t inside;
    /* With parts > 0 they are that value's row parts from first_part on, whole, and a join makes the
     * value of them. */
    uint32_t first_part, parts;
};

/* Where the elements of a copy come from: each destination axis is split into outer and inner
 * digits (inner extent `inner`), source coordinate a = offset[a] + sum over axes d of outer_d *
 * outer_to[d][a] + inner_d * inner_to[d][a]. The batch axis may have a third digit: with low > 0 its
 * inner digit is inner_0 * low + low digit, which goes to low_to (heads that begin inside a panel). */
struct program_map {
    uint32_t inner[3];
    int32_t outer_to[3][3], inner_to[3][3], offset[3];
    uint32_t low;
    int32_t low_to[3];
};
struct program_map program_map_identity(void);

/* The same by numbers: element (b, r, c) of a value has number (b * rows + r) * cols + c. The
 * destination's number is split into digits of these extents, the last one fastest; the source's
 * number is offset + sum of digit * step. With cut_end the copy covers only the destination
 * elements whose digit `cut` lies in [cut_from, cut_end), counted from cut_from. */
enum { PROGRAM_VIEW_DIGITS = 8 };
struct program_view {
    uint32_t n; /* digits; 0: the copy goes by its map */
    uint32_t extent[PROGRAM_VIEW_DIGITS], step[PROGRAM_VIEW_DIGITS], offset;
    uint32_t cut, cut_from, cut_end; /* cut_end 0: all elements */
};

enum program_op_kind { PROGRAM_COPY, PROGRAM_COMPUTE, PROGRAM_REPEAT };
enum program_compute { PROGRAM_PRODUCT, PROGRAM_KERNEL, PROGRAM_SUM, PROGRAM_CAST };
enum program_kernel {
#define PROGRAM_KERNEL(name, text, min, max) PROGRAM_KERNEL_##name,
#include "program/program_kernel.def"
#undef PROGRAM_KERNEL
    PROGRAM_N_KERNELS
};
enum program_epilogue { /* of a sum, applied in this order; BIAS and RESIDUAL take an input each */
                        PROGRAM_EPILOGUE_BIAS = 1,
                        PROGRAM_EPILOGUE_GELU = 2,
                        PROGRAM_EPILOGUE_RESIDUAL = 4,
};

enum { PROGRAM_MAX_INPUTS = 8 };
struct program_op {
    uint8_t kind;          /* enum program_op_kind */
    uint8_t compute;       /* enum program_compute */
    uint8_t kernel;        /* enum program_kernel */
    uint8_t epilogue;      /* SUM: set of enum program_epilogue */
    const char *operation; /* graph operation: provenance */
    const char *reason;    /* "operator", "copy", "gather", "reduction", "cast" */
    uint32_t output;       /* PROGRAM_NONE for a repeat */
    /* Product: left, right. Sum: partials, bias, residual as far as asked for. Copy: source and, at
     * will, a value of 32 equal elements on every tile that fills the destination's last column. */
    uint32_t n_inputs, inputs[PROGRAM_MAX_INPUTS];
    float real;             /* KERNEL: epsilon or scale */
    struct program_map map; /* COPY */
    struct program_view view; /* COPY, in place of the map: n > 0 */
    bool more;                /* COPY: to further elements of the output of an earlier copy */
    uint32_t repeat;        /* REPEAT: index into repeats */
};

/* Arguments of the body are values of their own. Carried: starts as `initial`, becomes `yield` at
 * the end of an iteration, all with one layout; after the loop `argument` holds the result. */
struct program_carried {
    uint32_t initial, argument, yield;
};
struct program_iterated {
    uint32_t sequence, argument; /* argument: one block of the sequence */
};
struct program_repeat {
    uint32_t count;
    uint32_t n_carried, n_iterated;
    struct program_carried *carried;
    struct program_iterated *iterated;
    uint32_t n_ops, *ops; /* body, in order; no repeats inside */
};

/* A value that holds (part of) a tensor of the graph as the graph means it, under the rule of
 * program_tensor. Nothing is computed from it: diagnostics compare it with the reference. */
struct program_result {
    uint32_t value; /* one summand an element */
    struct program_tensor tensor;
};

struct program {
    struct arena *arena;
    const char *name;
    uint32_t n_tiles;
    uint32_t n_values;
    struct program_value *values;
    uint32_t n_ops;
    struct program_op *ops; /* all, bodies included */
    uint32_t n_main, *main; /* order of the top level */
    uint32_t n_repeats;
    struct program_repeat *repeats;
    uint32_t n_results;
    struct program_result *results; /* in the order in which the values are made */
    uint32_t cap_values, cap_ops, cap_repeats, cap_results; /* builder's */
};

struct program *program_new(const char *name, uint32_t n_tiles);
void program_free(struct program *p);
uint32_t program_add_value(struct program *p, const struct program_value *v);
/* Appends to the top level (repeat == PROGRAM_NONE) or to a repeat's body. */
uint32_t program_add_op(struct program *p, const struct program_op *op, uint32_t repeat);
uint32_t program_add_repeat(struct program *p, const struct program_repeat *r);
void program_add_result(struct program *p, const struct program_result *r);

/* --- Geometry --- */

/* One part with its storage, and one window of it. */
struct program_shard {
    uint32_t index[PROGRAM_N_AXES];
    uint32_t start[3], end[3]; /* box, elements, logical; of the sub-box if windows are boxes */
    uint32_t extent[3];        /* of the storage: end - start rounded up to pad */
    uint32_t part_bytes;       /* whole storage of that box */
    uint32_t window, bytes;    /* this shard: [window, window + bytes) of the storage */
    uint32_t tile;
};
/* Number of shards of a value: product of count. Shard number = mixed radix of the indices in the
 * order of enum program_axis, replica fastest. */
uint32_t program_n_shards(const struct program_value *v);
void program_shard_at(const struct program_value *v, uint32_t number, struct program_shard *ret);
uint32_t program_shard_number(const struct program_value *v, const uint32_t *index);
/* Indices of part and box window that hold coordinate y (linear windows: 0). */
void program_find(const struct program_value *v, const uint32_t y[3],
                  uint32_t ret_index[PROGRAM_N_AXES]);
/* Balanced split: start of part i when `extent` is cut into n parts of whole grains. */
uint32_t program_part_start(uint32_t extent, uint32_t grain, uint32_t n, uint32_t i);
/* The part of an axis that holds coordinate x. */
uint32_t program_part_of(uint32_t extent, uint32_t grain, uint32_t n, uint32_t x);
/* Byte offset in the part's storage of the element at (b, r, c) relative to the box. */
uint32_t program_offset(const struct program_layout *l, const struct program_shard *s,
                        const uint32_t at[3]);
/* The storage as a nest of digits, outermost first: digit i runs over coordinate `axis` in steps of
 * `step` elements, `extent` times, `stride` bytes apart. The last digit is contiguous. */
struct program_digit {
    uint32_t axis, step, extent, stride;
};
enum { PROGRAM_MAX_DIGITS = 5 };
uint32_t program_digits(const struct program_layout *l, const struct program_shard *s,
                        struct program_digit ret[PROGRAM_MAX_DIGITS]);
uint32_t program_format_bytes(uint32_t format);
/* Elements in 32 bytes: the K group of a product. */
static inline uint32_t program_micro(uint32_t format) {
    return 32 / program_format_bytes(format);
}
/* Sum of shard bytes on the fullest tile, and which it is. */
uint64_t program_value_tile_bytes(const struct program_value *v, uint32_t n_tiles);
uint64_t program_value_fullest(const struct program_value *v, uint32_t n_tiles, uint32_t *ret_tile);

/* --- Forms --- */

void program_print(const struct program *p, GString *out);
struct program *program_parse(const char *text, const char *file_name, GError **error);
bool program_verify(const struct program *p, GError **error);

#endif
