/* Test-only evaluator of tile graphs: every storage is a host buffer that starts poisoned (F16
 * NaN), the host's tensors are written by the bindings, transfers and kernel calls run in program
 * order by their documented semantics. Proves lowering without device, placement or schedule. */
#ifndef IPU_TEST_TILE_GRAPH_RUN_H
#define IPU_TEST_TILE_GRAPH_RUN_H

#include "lower/lower.h"
#include "numeric/num_format.h"
#include "numeric/num_kernel.h"

#include <math.h>
#include <string.h>

struct tgr {
    const struct tile_graph *g;
    uint8_t **storage; /* [alloc] roots only */
    uint32_t iteration;
};

static struct tgr *tgr_new(const struct tile_graph *g) {
    struct tgr *r = g_new0(struct tgr, 1);
    r->g = g;
    r->storage = g_new0(uint8_t *, g->allocs.n);
    for (uint32_t i = 0; i < g->allocs.n; i++) {
        if (g->allocs.alias[i] != TG_NONE) continue;
        const size_t bytes = (size_t)g->allocs.bytes[i] * g->allocs.blocks[i];
        r->storage[i] = g_malloc(bytes);
        for (size_t k = 0; k + 1 < bytes; k += 2) memcpy(r->storage[i] + k, &(uint16_t){0x7e00}, 2);
    }
    return r;
}

static void tgr_free(struct tgr *r) {
    for (uint32_t i = 0; i < r->g->allocs.n; i++) g_free(r->storage[i]);
    g_free(r->storage);
    g_free(r);
}

static uint8_t *tgr_block(const struct tgr *r, uint32_t alloc, uint32_t offset, uint32_t block) {
    const struct tg_allocs *a = &r->g->allocs;
    uint64_t at = offset;
    if (a->blocks[alloc] > 1) at += (uint64_t)block * a->bytes[alloc];
    while (a->alias[alloc] != TG_NONE) {
        at += a->alias_offset[alloc];
        alloc = a->alias[alloc];
    }
    return r->storage[alloc] + at;
}
static uint8_t *tgr_at(const struct tgr *r, struct tg_ref ref) {
    return tgr_block(r, ref.alloc, ref.offset, r->iteration);
}

typedef void tgr_element(void *context, uint8_t *at, uint64_t element, uint32_t format);

static void tgr_walk(const struct tgr *r, const struct tg_binding *b, tgr_element *f,
                     void *context) {
    for (uint32_t k = b->first_slice; k < b->end_slice; k++) {
        const struct tg_slice *s = &r->g->slices[k];
        uint32_t i[TG_SLICE_DIMS] = {0};
        for (bool more = true; more;) {
            uint64_t element = s->tensor_offset;
            uint32_t mem = s->mem_offset;
            for (uint32_t d = 0; d < s->n_dims; d++) {
                element += i[d] * s->tensor_step[d];
                mem += i[d] * s->mem_step[d];
            }
            f(context, tgr_block(r, s->alloc, mem, s->block), element, b->format);
            uint32_t d = s->n_dims;
            for (more = false; d-- > 0 && !more;) {
                more = ++i[d] < s->count[d];
                if (!more) i[d] = 0;
            }
        }
    }
}

/* Tensors are FP32 arrays; the format of the binding rounds. */
struct tgr_tensor {
    float *data;
    int32_t scale;
};
static void tgr_put(void *context, uint8_t *at, uint64_t element, uint32_t format) {
    const struct tgr_tensor *t = context;
    if (format == TG_F8_F143) {
        *at = num_f8_from_f32(t->data[element], NUM_F143, t->scale);
        return;
    }
    if (format == TG_U32) {
        memcpy(at, &(uint32_t){(uint32_t)t->data[element]}, 4);
        return;
    }
    g_assert_cmpuint(format, ==, TG_F16);
    const uint16_t h = num_f16_from_f32(t->data[element]);
    memcpy(at, &h, 2);
}
static void tgr_get(void *context, uint8_t *at, uint64_t element, uint32_t format) {
    g_assert_cmpuint(format, ==, TG_F16);
    uint16_t h;
    memcpy(&h, at, 2);
    ((struct tgr_tensor *)context)->data[element] = num_f16_to_f32(h);
}

/* Zeros to all padding of what the host writes; before tgr_write. */
static void tgr_clear(struct tgr *r) {
    const struct tg_allocs *a = &r->g->allocs;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; (a->flags[i] & TG_ZEROED) && k < a->blocks[i]; k++)
            memset(tgr_block(r, i, 0, k), 0, a->bytes[i]);
}
static void tgr_write(struct tgr *r, const struct tg_binding *b, const float *tensor) {
    struct tgr_tensor t = {(float *)tensor, b->scale};
    tgr_walk(r, b, tgr_put, &t);
}
static void tgr_read(const struct tgr *r, const struct tg_binding *b, float *tensor) {
    struct tgr_tensor t = {tensor, b->scale};
    tgr_walk(r, b, tgr_get, &t);
}

static float tgr_f16(const uint8_t *p, size_t i) {
    uint16_t h;
    memcpy(&h, p + 2 * i, 2);
    return num_f16_to_f32(h);
}
static void tgr_set(uint8_t *p, size_t i, float v) {
    const uint16_t h = num_f16_from_f32(v);
    memcpy(p + 2 * i, &h, 2);
}
static float tgr_gelu(float x) {
    return 0.5f * x * (1 + tanhf(0.7978846f * (x + 0.044715f * x * x * x)));
}

static void tgr_gemm(const struct kernel_spec *s, uint8_t *const *o) {
    const uint32_t rows = s->p[0], inner = s->p[1], columns = s->p[2];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            const size_t out = ((size_t)c / 16 * rows + r) * 16 + c % 16;
            float sum = s->p[3] ? tgr_f16(o[0], out) : 0;
            for (uint32_t k = 0; k < inner; k++) {
                const size_t w = (size_t)c / 16 * inner * 16 + k / 16 * 256 + c % 16 * 16 + k % 16;
                sum += tgr_f16(o[1], ((size_t)k / 16 * rows + r) * 16 + k % 16) * tgr_f16(o[2], w);
            }
            tgr_set(o[0], out, sum);
        }
}

static void tgr_gemm_f8(const struct kernel_spec *s, uint8_t *const *o) {
    const uint32_t rows = s->p[0], inner = s->p[1], columns = s->p[2];
    const int32_t scale = (int32_t)s->p[5];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            double sum = 0;
            for (uint32_t k = 0; k < inner; k++) {
                const size_t a = ((size_t)k / 32 * rows + r) * 32 + k % 32;
                const size_t w = (size_t)c / 16 * inner * 16 + k / 32 * 512 + c % 16 * 32 + k % 32;
                sum += num_f8_to_f64(o[1][a], NUM_F143, 0) * num_f8_to_f64(o[2][w], NUM_F143, 0);
            }
            tgr_set(o[0], ((size_t)c / 16 * rows + r) * 16 + c % 16, (float)ldexp(sum, scale));
        }
}

/* The matrices of a batch follow each other in every operand. */
static void tgr_batch(const struct kernel_spec *s, uint8_t *const *o) {
    const bool f8 = s->kernel == KERNEL_GEMM_F8;
    const size_t rows = s->p[0], inner = s->p[1], columns = s->p[2], bytes = f8 ? 1 : 2;
    for (uint32_t b = 0; b < MAX(s->p[f8 ? 7 : 5], 1); b++) {
        uint8_t *const one[3] = {o[0] + b * 2 * rows * columns, o[1] + b * bytes * rows * inner,
                                 o[2] + b * bytes * inner * columns};
        if (f8) tgr_gemm_f8(s, one);
        else tgr_gemm(s, one);
    }
}

static void tgr_panels(const struct kernel_spec *s, uint8_t *const *o) {
    const uint32_t partials = s->p[0], rows = s->p[1], columns = s->p[2], epilogue = s->p[3];
    const size_t run = (size_t)rows * columns;
    uint32_t next = 2;
    const uint8_t *remotes = partials > 1 ? o[next++] : NULL;
    const uint8_t *residual = epilogue & KERNEL_EPILOGUE_RESIDUAL ? o[next++] : NULL;
    const uint8_t *bias = epilogue & KERNEL_EPILOGUE_BIAS ? o[next++] : NULL;
    g_assert_cmpuint(epilogue & KERNEL_EPILOGUE_F8, ==, 0);
    for (size_t e = 0; e < run; e++) {
        float v = tgr_f16(o[1], e);
        for (uint32_t k = 0; k + 1 < partials; k++) v += tgr_f16(remotes, k * run + e);
        if (residual) v += tgr_f16(residual, e);
        if (bias) v += tgr_f16(bias, e / 16 / rows * 16 + e % 16);
        tgr_set(o[0], e, epilogue & KERNEL_EPILOGUE_GELU ? tgr_gelu(v) : v);
    }
}

static void tgr_norm(const struct kernel_spec *s, uint8_t *const *o) {
    const uint32_t rows = s->p[0], columns = s->p[1];
    g_assert_cmpuint(s->p[2], ==, 1);
    for (uint32_t r = 0; r < rows; r++) {
        double mean = 0, square = 0;
        for (uint32_t c = 0; c < columns; c++)
            mean += tgr_f16(o[1], ((size_t)c / 16 * rows + r) * 16 + c % 16);
        mean /= columns;
        for (uint32_t c = 0; c < columns; c++) {
            const double d = tgr_f16(o[1], ((size_t)c / 16 * rows + r) * 16 + c % 16) - mean;
            square += d * d;
        }
        const double root = 1 / sqrt(square / columns + 1e-6);
        for (uint32_t c = 0; c < columns; c++) {
            const size_t e = ((size_t)c / 16 * rows + r) * 16 + c % 16;
            tgr_set(o[0], e,
                    (float)((tgr_f16(o[1], e) - mean) * root * (double)tgr_f16(o[2], c) +
                            (double)tgr_f16(o[3], c)));
        }
    }
}

static void tgr_cast_panels(const struct kernel_spec *s, uint8_t *const *o) {
    const uint32_t rows = s->p[0], columns = s->p[1];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++)
            o[0][((size_t)c / 32 * rows + r) * 32 + c % 32] =
                num_f8_from_f32(tgr_f16(o[1], ((size_t)c / 16 * rows + r) * 16 + c % 16), NUM_F143,
                                (int32_t)s->p[2]);
}

static size_t tgr_panel(uint32_t rows, uint32_t r, uint32_t c) {
    return ((size_t)c / 16 * rows + r) * 16 + c % 16;
}

static void tgr_row_max(const struct kernel_spec *s, uint8_t *const *o) {
    for (uint32_t r = 0; r < s->p[0]; r++) {
        float most = -65504;
        for (uint32_t c = 0; c < s->p[2]; c++)
            most = fmaxf(most, tgr_f16(o[1], tgr_panel(s->p[0], r, c)));
        tgr_set(o[0], 2 * r, most);
        tgr_set(o[0], 2 * r + 1, most);
    }
}

static void tgr_exp(const struct kernel_spec *s, uint8_t *const *o) {
    const float scale = num_f16_to_f32((uint16_t)s->p[3]);
    for (uint32_t r = 0; r < s->p[0]; r++)
        for (uint32_t c = 0; c < s->p[1]; c++) {
            const size_t e = tgr_panel(s->p[0], r, c);
            const float x = scale * (tgr_f16(o[1], e) - tgr_f16(o[2], 2 * r));
            const float y = c < s->p[2] ? num_f16_to_f32(num_f16_from_f32(expf(x))) : 0;
            if (s->p[4])
                o[0][((size_t)c / 32 * s->p[0] + r) * 32 + c % 32] =
                    num_f8_from_f32(y, NUM_F143, (int32_t)s->p[5]);
            else tgr_set(o[0], e, y);
        }
}

static void tgr_normalise(const struct kernel_spec *s, uint8_t *const *o) {
    for (uint32_t r = 0; r < s->p[0]; r++) {
        const float sum = tgr_f16(o[1], tgr_panel(s->p[0], r, s->p[2]));
        for (uint32_t c = 0; c < s->p[1]; c++) {
            const size_t e = tgr_panel(s->p[0], r, c);
            tgr_set(o[0], e, tgr_f16(o[1], e) / sum);
        }
    }
}

/* Kernels without a reading of their own here: the C twin. */
static void tgr_twin(const struct kernel_spec *s, uint8_t *const *o) {
    void *op[KERNEL_MAX_OPERANDS];
    for (uint32_t i = 0; i < KERNEL_MAX_OPERANDS; i++) op[i] = o[i];
    switch (s->kernel) {
#define TWIN(kernel, function)                                                                     \
    case KERNEL_##kernel:                                                                          \
        function(s->p, op);                                                                        \
        break;
#include "cli/kernel_twin.def"
#undef TWIN
    default:
        g_error("kernel %s has no twin", kernel_name(s->kernel));
    }
}

static void tgr_call(const struct tgr *r, uint32_t call) {
    const struct tile_graph *g = r->g;
    const struct kernel_spec *s = &g->specs[g->calls.spec[call]];
    uint8_t *o[KERNEL_MAX_OPERANDS] = {0};
    for (uint32_t i = g->calls.first_operand[call]; i < g->calls.first_operand[call + 1]; i++)
        o[i - g->calls.first_operand[call]] = tgr_at(r, g->calls.operand[i]);
    switch (s->kernel) {
    case KERNEL_GEMM_F16:
    case KERNEL_GEMM_F8:
        tgr_batch(s, o);
        break;
    case KERNEL_ROW_MAX:
        tgr_row_max(s, o);
        break;
    case KERNEL_EXP_PANELS:
        tgr_exp(s, o);
        break;
    case KERNEL_NORMALISE_PANELS:
        tgr_normalise(s, o);
        break;
    case KERNEL_REDUCE_PANELS:
        tgr_panels(s, o);
        break;
    case KERNEL_NORM_F16:
        tgr_norm(s, o);
        break;
    case KERNEL_CAST_PANELS:
        tgr_cast_panels(s, o);
        break;
    case KERNEL_REDUCE_F16:
        for (uint32_t e = 0; e < s->p[1]; e++) {
            float sum = tgr_f16(o[1], e);
            for (uint32_t k = 0; k + 1 < s->p[0]; k++)
                sum += tgr_f16(o[2], (size_t)k * s->p[1] + e);
            tgr_set(o[0], e, sum);
        }
        break;
    case KERNEL_GELU_F16:
        for (uint32_t e = 0; e < s->p[0]; e++) tgr_set(o[0], e, tgr_gelu(tgr_f16(o[1], e)));
        break;
    case KERNEL_COPY_U64:
        memmove(o[0], o[1], s->p[0]);
        break;
    case KERNEL_COPY_STRIDED:
        for (uint32_t i = 0; i < s->p[4]; i++)
            for (uint32_t k = 0; k < s->p[0]; k++)
                memmove(o[0] + (size_t)i * s->p[6] + (size_t)k * s->p[3],
                        o[1] + (size_t)i * s->p[5] + (size_t)k * s->p[2], s->p[1]);
        break;
    case KERNEL_FILL_U64:
        memset(o[0], 0, s->p[0]);
        break;
    default:
        tgr_twin(s, o);
    }
}

/* All sources are read before any destination is written: lowering may not depend on order. */
static void tgr_exchange(const struct tgr *r, const struct tg_step *s) {
    const struct tg_transfers *t = &r->g->transfers;
    uint8_t **data = g_new(uint8_t *, s->end - s->first);
    for (uint32_t x = s->first; x < s->end; x++)
        data[x - s->first] = g_memdup2(tgr_at(r, t->source[x]), 4 * (size_t)t->words[x]);
    for (uint32_t x = s->first; x < s->end; x++) {
        for (uint32_t k = t->first_recipient[x]; k < t->first_recipient[x + 1]; k++)
            memcpy(tgr_at(r, t->recipient[k]), data[x - s->first], 4 * (size_t)t->words[x]);
        g_free(data[x - s->first]);
    }
    g_free(data);
}

static void tgr_run(struct tgr *r) {
    uint32_t begin = 0;
    for (uint32_t i = 0; i < r->g->n_steps; i++) {
        const struct tg_step *s = &r->g->steps[i];
        if (s->kind == TG_EXCHANGE) tgr_exchange(r, s);
        if (s->kind == TG_COMPUTE)
            for (uint32_t c = s->first; c < s->end; c++) tgr_call(r, c);
        if (s->kind == TG_REPEAT_BEGIN) begin = i, r->iteration = 0;
        if (s->kind == TG_REPEAT_END) {
            if (++r->iteration < r->g->steps[begin].count) i = begin;
            else r->iteration = 0;
        }
    }
}

static const struct tg_binding *tgr_binding(const struct tile_graph *g, const char *name,
                                            uint32_t kind) {
    for (uint32_t i = 0; i < g->n_bindings; i++)
        if (strcmp(g->bindings[i].name, name) == 0 && g->bindings[i].kind == kind)
            return &g->bindings[i];
    g_error("no binding for %s", name);
}

#endif
