/* package: .ipuexe files, the only thing that passes from compiling to running.
 *
 * In/out: struct package, a plain description of everything a device and its host need: segments of
 *       every tile, bindings of named tensors to SRAM, parameter values, steps with provenance,
 *       predicted cycles, symbols and source lines, the owners of every address.
 * File: a sealed SQLite database (container.h): application id, schema version, documented tables
 *       (package_file.c), large arrays as zstd chunks of at most 4 MiB. The same package gives
 *       the same bytes.
 * Shapes: tables in CSR form by tile: first[t] .. first[t+1]. Tiles are logical numbers. Addresses
 *       are byte addresses in SRAM, sizes bytes, cycles tile cycles.
 * Invariants: package_check, run before writing and after reading: everything a reader indexes with
 *       is in range, segments of a tile are inside SRAM, disjoint and ascending, slices inside their
 *       tensors and SRAM, chunks complete.
 * Ownership: struct package owns one arena with everything in it; package_free frees all.
 * Errors: GError, diag.def 1000..1049; every refusal names the file and what is wrong.
 * Threads: a package may be read by many threads. Facts: runtime 5.
 */
#ifndef IPU_PACKAGE_H
#define IPU_PACKAGE_H

#include "base/base.h"
#include "lower/tile_graph.h"

enum { PACKAGE_SCHEMA = 3, PACKAGE_APPLICATION_ID = 0x69707578 /* "ipux" */ };
enum { PACKAGE_MAX_DIMS = 6, PACKAGE_SLICE_DIMS = TG_SLICE_DIMS };

enum package_segment_kind {
    PACKAGE_SEGMENT_CODE,    /* linked runtime and kernels */
    PACKAGE_SEGMENT_PROGRAM, /* generated program of the tile */
    PACKAGE_SEGMENT_ROWS,    /* exchange rows of the tile */
    PACKAGE_SEGMENT_ZERO,    /* no data: zeros */
};
struct package_segment {
    uint32_t address, bytes;
    uint32_t offset; /* into `image`; 0 for ZERO. Equal contents share it */
    uint32_t kind;
};

/* How a box of a tensor lies on a tile: element (i0, i1, ..) of the box at tensor_offset +
 * sum i_j * tensor_step[j] (elements) lies at byte address + sum i_j * mem_step[j]. */
struct package_slice {
    uint32_t tile, address;
    uint64_t tensor_offset;
    uint32_t n_dims;
    uint32_t count[PACKAGE_SLICE_DIMS];
    uint64_t tensor_step[PACKAGE_SLICE_DIMS];
    uint32_t mem_step[PACKAGE_SLICE_DIMS];
    uint32_t step; /* RESULT: complete behind this step (tile_graph.h); else 0 */
};

struct package_binding {
    const char *name;
    uint32_t kind;   /* enum tg_binding_kind */
    uint32_t format; /* enum tg_format */
    int32_t scale;
    uint32_t n_dims;
    uint32_t shape[PACKAGE_MAX_DIMS];
    uint32_t bound; /* U32: rows of the smallest table that the indices read; else 0 */
    uint32_t first_slice, end_slice;
    /* PARAMETER only: values in row-major order as stored (format), or NULL when left out. */
    const uint8_t *data;
    uint64_t data_bytes; /* always elements x format size */
};

struct package_step {
    uint32_t kind;       /* enum tg_step_kind */
    uint32_t operation, reason; /* names */
    uint32_t count;      /* REPEAT_BEGIN: iterations */
    uint32_t horizon;    /* EXCHANGE: slots */
    uint32_t transfers, messages;     /* EXCHANGE: as asked for; after cutting long ones */
    uint32_t endpoint_bound, bound;   /* EXCHANGE: slots; words of the busiest end, proven */
    uint32_t row_bytes_max, row_bytes_tile; /* EXCHANGE: the worst tile's row */
    uint64_t words;      /* EXCHANGE: words delivered, every recipient counted */
};

/* One interval of a tile's program; it ends where the next begins, or at end_pc. */
struct package_mark {
    uint32_t step;
    uint32_t pc;
    uint32_t kernel; /* name of the kernel of the step on this tile (the first), or TG_NONE */
    uint32_t calls;  /* COMPUTE: kernel calls; EXCHANGE: 1 active, 0 takes no part; REPEAT_BEGIN, in
                      * sampled programs: iterations before the last, which this interval is */
    uint32_t predicted_start, predicted_end;
    uint32_t send_words, receive_words; /* EXCHANGE */
};

struct package_symbol {
    const char *name;
    uint32_t address, bytes;
};
struct package_line {
    uint32_t address, line;
    uint32_t file; /* name */
};

/* Who owns an address range of a tile during which steps: fault reports. */
struct package_owner {
    uint32_t address, bytes;  /* with all blocks */
    uint32_t tail_bytes;      /* declared access tail behind it */
    uint32_t name;
    uint32_t first_step, last_step;
};

struct package_meta {
    const char *target;      /* "ipu21" */
    const char *compiler;    /* name and version */
    const char *workload;    /* or "" */
    const char *isa_version; /* isa table version */
    const char *plan;        /* chosen grids, one operation per line; text for people */
    uint32_t n_tiles;
    uint32_t n_active_tiles; /* with at least one kernel call or transfer */
    uint32_t entry;          /* where a tile starts */
    bool samples;            /* the program samples cycles (runtime 4.8) */
    uint64_t cycles_predicted, exchange_cycles_predicted;
    uint32_t peak_tile_bytes, peak_tile; /* SRAM: code, support, rows, live data at the peak */
    uint32_t row_bytes_max, program_bytes_max;
};

struct package {
    struct arena *arena;
    struct package_meta meta;
    uint32_t n_names;
    const char **names;
    uint64_t image_bytes;
    uint8_t *image;          /* contents of all segments */
    uint32_t *first_segment; /* [n_tiles + 1] */
    struct package_segment *segments;
    uint32_t n_bindings;
    struct package_binding *bindings;
    uint32_t n_slices;
    struct package_slice *slices;
    uint32_t n_steps;
    struct package_step *steps;
    uint32_t *first_mark; /* [n_tiles + 1] */
    struct package_mark *marks;
    uint32_t *end_pc;     /* [n_tiles] */
    uint32_t *sample_address; /* [n_tiles], with meta.samples */
    uint32_t n_symbols, n_lines;
    struct package_symbol *symbols; /* ascending by address */
    struct package_line *lines;     /* ascending by address */
    uint32_t *first_owner; /* [n_tiles + 1] */
    struct package_owner *owners;
    uint64_t file_bytes;   /* of the file read or written, else 0 */
};

struct package *package_new(void); /* empty, with an arena */
void package_free(struct package *p);
/* Every rule of the invariants; `path` names the package in the message. */
bool package_check(const struct package *p, const char *path, GError **error);

struct package_write_options {
    bool no_parameters; /* leave parameter values out */
};
/* Fills p->file_bytes. */
bool package_write(struct package *p, const char *path, const struct package_write_options *o,
                   GError **error);
struct package *package_read(const char *path, GError **error);
/* The bytes of a file, for tests and fuzzing; `path` names it in messages. */
struct package *package_read_bytes(const uint8_t *bytes, size_t n, const char *path,
                                   GError **error);

/* Bytes of an element of a format. */
uint32_t package_format_bytes(uint32_t format);
const char *package_format_name(uint32_t format);
uint64_t package_binding_elements(const struct package_binding *b);
/* False when stored values are no indices below the bound; names the first. */
bool package_indices_check(const struct package_binding *b, const void *data, GError **error);
/* NULL when there is none. Results have names of their own kind: _find looks at the others. */
struct package_binding *package_binding_find(const struct package *p, const char *name);
struct package_binding *package_result_find(const struct package *p, const char *name);

/* "symbol+0x10 (file.S:12)" for code, "program of step 3 (operation)" and the like; appended. */
void package_symbolize(const struct package *p, uint32_t tile, uint32_t pc, GString *out);
/* The step whose program holds pc; TG_NONE when none does. */
uint32_t package_step_of_pc(const struct package *p, uint32_t tile, uint32_t pc);
/* Owners of an address: those live at `step`, then who owned it last, then who comes; appended. "nothing"
 * (or the kind of a segment) when there is none, and which allocation ends how many bytes before. */
void package_owner_print(const struct package *p, uint32_t tile, uint32_t address, uint32_t step,
                         GString *out);
void package_print(const struct package *p, GString *out);
void package_json(const struct package *p, GString *out);
/* The figures of an exchange step as members of an open JSON object: `,"transfers":5, ...`. */
void package_phase_json(const struct package_step *s, GString *out);

#endif
