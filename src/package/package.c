/* The package in memory: what must hold before anything indexes with it, and look-ups by name and
 * address. package_check is linear in the size of the package. */
#include "package/package.h"

#include "target/target.h"

#include <string.h>

enum { SRAM_BYTES_MAX = TARGET_SRAM_END - TARGET_SRAM_BASE };
static const uint64_t MAX_ELEMENTS = UINT64_C(1) << 36;

struct package *package_new(void) {
    struct arena *a = arena_new();
    struct package *p = arena_alloc(a, sizeof *p);
    p->arena = a;
    return p;
}

void package_free(struct package *p) {
    if (p != NULL) arena_free(p->arena);
}

uint32_t package_format_bytes(uint32_t format) {
    return format == TG_F32 || format == TG_U32 ? 4 : format == TG_F16 ? 2 : 1;
}

const char *package_format_name(uint32_t format) {
    static const char *const name[] = {
        [TG_F16] = "f16", [TG_F32] = "f32", [TG_F8_F143] = "f8f143", [TG_F8_F152] = "f8f152",
        [TG_U32] = "u32"};
    return format < ARRAY_LEN(name) ? name[format] : "?";
}

uint64_t package_binding_elements(const struct package_binding *b) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < b->n_dims; i++) n *= b->shape[i];
    return n;
}

bool package_indices_check(const struct package_binding *b, const void *data, GError **error) {
    const uint64_t n = b->bound != 0 ? package_binding_elements(b) : 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t v;
        memcpy(&v, (const uint8_t *)data + i * sizeof v, sizeof v);
        if (v < b->bound) continue;
        diag_set(error, PACKAGE_INDEX, b->name, v, i, b->bound);
        return false;
    }
    return true;
}

static struct package_binding *find(const struct package *p, const char *name, bool result) {
    for (uint32_t i = 0; i < p->n_bindings; i++)
        if ((p->bindings[i].kind == TG_BIND_RESULT) == result &&
            strcmp(p->bindings[i].name, name) == 0)
            return &p->bindings[i];
    return NULL;
}

struct package_binding *package_binding_find(const struct package *p, const char *name) {
    return find(p, name, false);
}

struct package_binding *package_result_find(const struct package *p, const char *name) {
    return find(p, name, true);
}

/* --- Checks: each returns NULL or what is wrong (g_free'd by package_check). --- */

static bool csr_ok(const uint32_t *first, uint32_t n_tiles, uint32_t n) {
    if (first == NULL || first[0] != 0 || first[n_tiles] != n) return false;
    for (uint32_t t = 0; t < n_tiles; t++)
        if (first[t] > first[t + 1] || first[t + 1] > n) return false;
    return true;
}

static bool in_sram(uint32_t address, uint64_t bytes) {
    return address >= TARGET_SRAM_BASE && address + bytes <= TARGET_SRAM_END;
}

static char *check_meta(const struct package *p) {
    const struct package_meta *m = &p->meta;
    if (m->n_tiles == 0 || m->n_tiles > TARGET_N_TILES)
        return g_strdup_printf("it is for %u tiles", m->n_tiles);
    if (m->target == NULL || strcmp(m->target, "ipu21") != 0)
        return g_strdup_printf("its target is not ipu21");
    if (m->compiler == NULL || m->workload == NULL || m->isa_version == NULL || m->plan == NULL)
        return g_strdup("a text of its description is missing");
    if (m->entry < TARGET_SRAM_BASE || m->entry >= TARGET_REGION1_BASE || m->entry % 4 != 0)
        return g_strdup_printf("its entry 0x%x is not executable", m->entry);
    for (uint32_t i = 0; i < p->n_names; i++)
        if (p->names[i] == NULL) return g_strdup_printf("name %u is missing", i);
    return NULL;
}

static char *check_segments(const struct package *p) {
    const uint32_t n_tiles = p->meta.n_tiles;
    if (!csr_ok(p->first_segment, n_tiles, p->first_segment[n_tiles]))
        return g_strdup("the segments are not ordered by tile");
    for (uint32_t t = 0; t < n_tiles; t++) {
        uint64_t end = TARGET_ENTRY_ADDRESS;
        for (uint32_t i = p->first_segment[t]; i < p->first_segment[t + 1]; i++) {
            const struct package_segment *s = &p->segments[i];
            if (s->kind > PACKAGE_SEGMENT_ZERO || s->address % 4 != 0 || s->address < end ||
                !in_sram(s->address, s->bytes))
                return g_strdup_printf("segment %u of tile %u at 0x%x with %u bytes",
                                       i - p->first_segment[t], t, s->address, s->bytes);
            if (s->kind != PACKAGE_SEGMENT_ZERO &&
                (uint64_t)s->offset + s->bytes > p->image_bytes)
                return g_strdup_printf("segment %u of tile %u lies outside the image",
                                       i - p->first_segment[t], t);
            end = (uint64_t)s->address + s->bytes;
        }
    }
    return NULL;
}

static char *check_slice(const struct package *p, const struct package_binding *b, uint32_t i,
                         uint64_t elements) {
    const struct package_slice *s = &p->slices[i];
    const uint32_t bytes = package_format_bytes(b->format);
    bool ok = s->tile < p->meta.n_tiles && s->n_dims <= PACKAGE_SLICE_DIMS &&
              s->address % bytes == 0 &&
              (b->kind == TG_BIND_RESULT ? s->step < p->n_steps : s->step == 0);
    uint64_t last = s->tensor_offset, end = (uint64_t)s->address + bytes;
    for (uint32_t d = 0; ok && d < s->n_dims; d++) {
        /* Bounded so that no product overflows. */
        ok = s->count[d] != 0 && s->count[d] <= SRAM_BYTES_MAX && s->mem_step[d] % bytes == 0 &&
             s->tensor_step[d] <= elements;
        if (ok) {
            last += (uint64_t)(s->count[d] - 1) * s->tensor_step[d];
            end += (uint64_t)(s->count[d] - 1) * s->mem_step[d];
        }
        ok = ok && last < elements && end <= TARGET_SRAM_END;
    }
    if (ok && last < elements && s->address >= TARGET_SRAM_BASE && end <= TARGET_SRAM_END)
        return NULL;
    return g_strdup_printf("slice %u of '%s' leaves its tensor or SRAM", i - b->first_slice,
                           b->name);
}

static char *check_binding(const struct package *p, const struct package_binding *b) {
    if (b->name == NULL || b->name[0] == 0) return g_strdup("a tensor has no name");
    if (find(p, b->name, b->kind == TG_BIND_RESULT) != b)
        return g_strdup_printf("two tensors are named '%s'", b->name);
    if (b->kind > TG_BIND_RESULT || b->format > TG_U32 || b->scale < -32 || b->scale > 31 ||
        b->n_dims > PACKAGE_MAX_DIMS || (b->bound != 0 && b->format != TG_U32))
        return g_strdup_printf("the description of tensor '%s'", b->name);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < b->n_dims; d++) {
        if (b->shape[d] == 0 || elements > MAX_ELEMENTS / b->shape[d])
            return g_strdup_printf("the shape of tensor '%s'", b->name);
        elements *= b->shape[d];
    }
    if (b->data_bytes != elements * package_format_bytes(b->format))
        return g_strdup_printf("the size of tensor '%s'", b->name);
    if (b->data != NULL && !package_indices_check(b, b->data, NULL))
        return g_strdup_printf("the values of tensor '%s'", b->name);
    if (b->first_slice > b->end_slice || b->end_slice > p->n_slices)
        return g_strdup_printf("the slices of tensor '%s'", b->name);
    for (uint32_t i = b->first_slice; i < b->end_slice; i++) {
        char *bad = check_slice(p, b, i, elements);
        if (bad != NULL) return bad;
    }
    return NULL;
}

static char *check_bindings(const struct package *p) {
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        char *bad = check_binding(p, &p->bindings[i]);
        if (bad != NULL) return bad;
    }
    return NULL;
}

static char *check_steps(const struct package *p) {
    bool inside = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct package_step *s = &p->steps[i];
        if (s->kind > TG_REPEAT_END || s->operation >= p->n_names || s->reason >= p->n_names)
            return g_strdup_printf("step %u", i);
        if (s->kind == TG_REPEAT_BEGIN || s->kind == TG_REPEAT_END) {
            if (inside == (s->kind == TG_REPEAT_BEGIN))
                return g_strdup_printf("the repeats do not nest at step %u", i);
            inside = !inside;
        }
    }
    return inside ? g_strdup("a repeat has no end") : NULL;
}

static char *check_marks(const struct package *p) {
    const uint32_t n_tiles = p->meta.n_tiles;
    if (!csr_ok(p->first_mark, n_tiles, p->first_mark[n_tiles]))
        return g_strdup("the marks are not ordered by tile");
    for (uint32_t t = 0; t < n_tiles; t++) {
        uint32_t pc = TARGET_SRAM_BASE, step = 0;
        for (uint32_t i = p->first_mark[t]; i < p->first_mark[t + 1]; i++) {
            const struct package_mark *m = &p->marks[i];
            if (m->step >= p->n_steps || m->step < step || m->pc < pc || m->pc % 4 != 0 ||
                m->pc >= TARGET_REGION1_BASE || (m->kernel != TG_NONE && m->kernel >= p->n_names))
                return g_strdup_printf("mark %u of tile %u", i - p->first_mark[t], t);
            pc = m->pc;
            step = m->step;
        }
        if (p->end_pc[t] < pc || p->end_pc[t] >= TARGET_REGION1_BASE || p->end_pc[t] % 4 != 0)
            return g_strdup_printf("the end of the program of tile %u", t);
        if (p->meta.samples &&
            (p->sample_address[t] % 4 != 0 ||
             !in_sram(p->sample_address[t], 4 * (p->first_mark[t + 1] - p->first_mark[t] + 1))))
            return g_strdup_printf("the sample buffer of tile %u", t);
    }
    return NULL;
}

static char *check_debug(const struct package *p) {
    const uint32_t n_tiles = p->meta.n_tiles;
    for (uint32_t i = 0; i < p->n_symbols; i++) {
        const struct package_symbol *s = &p->symbols[i];
        if (s->name == NULL || !in_sram(s->address, s->bytes) ||
            (i > 0 && s->address < p->symbols[i - 1].address))
            return g_strdup_printf("symbol %u", i);
    }
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].file >= p->n_names ||
            (i > 0 && p->lines[i].address < p->lines[i - 1].address))
            return g_strdup_printf("source line %u", i);
    if (!csr_ok(p->first_owner, n_tiles, p->first_owner[n_tiles]))
        return g_strdup("the owners are not ordered by tile");
    for (uint32_t i = 0; i < p->first_owner[n_tiles]; i++) {
        const struct package_owner *o = &p->owners[i];
        if (o->name >= p->n_names || !in_sram(o->address, (uint64_t)o->bytes + o->tail_bytes))
            return g_strdup_printf("owner %u", i);
    }
    return NULL;
}

bool package_check(const struct package *p, const char *path, GError **error) {
    static char *(*const checks[])(const struct package *) = {
        check_meta, check_segments, check_bindings, check_steps, check_marks, check_debug};
    for (uint32_t i = 0; i < ARRAY_LEN(checks); i++) {
        char *bad = checks[i](p);
        if (bad == NULL) continue;
        diag_set(error, PACKAGE_CONTENT, path, bad);
        g_free(bad);
        return false;
    }
    return true;
}

/* --- From addresses back to names --- */

uint32_t package_step_of_pc(const struct package *p, uint32_t tile, uint32_t pc) {
    uint32_t step = TG_NONE;
    if (tile >= p->meta.n_tiles || pc >= p->end_pc[tile]) return TG_NONE;
    for (uint32_t i = p->first_mark[tile]; i < p->first_mark[tile + 1]; i++)
        if (p->marks[i].pc <= pc) step = p->marks[i].step;
    return step;
}

static const struct package_segment *segment_of(const struct package *p, uint32_t tile,
                                                uint32_t address) {
    for (uint32_t i = p->first_segment[tile]; i < p->first_segment[tile + 1]; i++) {
        const struct package_segment *s = &p->segments[i];
        if (address >= s->address && address - s->address < s->bytes) return s;
    }
    return NULL;
}

static void symbolize_code(const struct package *p, uint32_t pc, GString *out) {
    const struct package_symbol *best = NULL;
    for (uint32_t i = 0; i < p->n_symbols && p->symbols[i].address <= pc; i++)
        best = &p->symbols[i];
    const struct package_line *line = NULL;
    for (uint32_t i = 0; i < p->n_lines && p->lines[i].address <= pc; i++) line = &p->lines[i];
    if (best != NULL) g_string_append_printf(out, "%s+0x%x", best->name, pc - best->address);
    else g_string_append_printf(out, "code 0x%x", pc);
    if (line != NULL) g_string_append_printf(out, " (%s:%u)", p->names[line->file], line->line);
}

void package_symbolize(const struct package *p, uint32_t tile, uint32_t pc, GString *out) {
    const struct package_segment *s = tile < p->meta.n_tiles ? segment_of(p, tile, pc) : NULL;
    if (s == NULL) {
        g_string_append_printf(out, "0x%x, no code of the package", pc);
    } else if (s->kind == PACKAGE_SEGMENT_CODE) {
        symbolize_code(p, pc, out);
    } else if (s->kind == PACKAGE_SEGMENT_ROWS) {
        g_string_append_printf(out, "exchange rows+0x%x", pc - s->address);
    } else {
        const uint32_t step = package_step_of_pc(p, tile, pc);
        g_string_append_printf(out, "program+0x%x", pc - s->address);
        if (step != TG_NONE)
            g_string_append_printf(out, " (step %u, %s)", step,
                                   p->names[p->steps[step].operation]);
    }
}

/* The owner among [first, end) that comes next after `last` in the order: live at `step`, then those that
 * ended before it, latest first, then those that come later; NULL: no more. */
static const struct package_owner *owner_next(const struct package *p, uint32_t tile, uint32_t address,
                                              uint32_t step, int64_t *io_rank) {
    const struct package_owner *best = NULL;
    int64_t best_rank = INT64_MAX;
    for (uint32_t i = p->first_owner[tile]; i < p->first_owner[tile + 1]; i++) {
        const struct package_owner *o = &p->owners[i];
        if (address < o->address || address - o->address >= o->bytes + o->tail_bytes) continue;
        const int64_t distance = step < o->first_step  ? (INT64_C(1) << 32) + o->first_step
                                 : step > o->last_step ? (int64_t)step - o->last_step
                                                       : 0;
        const int64_t rank = distance << 20 | (i - p->first_owner[tile]);
        if (rank <= *io_rank || rank >= best_rank) continue;
        best = o;
        best_rank = rank;
    }
    *io_rank = best_rank;
    return best;
}

static void print_owner(const struct package *p, const struct package_owner *o, uint32_t address, uint32_t step,
                        GString *out) {
    const bool tail = address - o->address >= o->bytes;
    g_string_append_printf(out, "%s+0x%x", p->names[o->name], address - o->address);
    if (tail)
        g_string_append_printf(out, " (access tail, %u bytes behind the end)", address - o->address - o->bytes);
    if (step == TG_NONE) return;
    if (step > o->last_step) g_string_append_printf(out, " (not live: until step %u)", o->last_step);
    if (step < o->first_step) g_string_append_printf(out, " (not live: from step %u)", o->first_step);
}

/* The allocation that ends last at or before the address. */
static void print_behind(const struct package *p, uint32_t tile, uint32_t address, GString *out) {
    const struct package_owner *best = NULL;
    for (uint32_t i = p->first_owner[tile]; i < p->first_owner[tile + 1]; i++) {
        const struct package_owner *o = &p->owners[i];
        if (o->address + o->bytes > address) continue;
        if (best == NULL || o->address + o->bytes > best->address + best->bytes) best = o;
    }
    if (best == NULL) return;
    g_string_append_printf(out, "; %u bytes behind the end of %s (0x%x, %u bytes)",
                           address - best->address - best->bytes, p->names[best->name], best->address,
                           best->bytes);
}

void package_owner_print(const struct package *p, uint32_t tile, uint32_t address, uint32_t step,
                         GString *out) {
    static const char *const kind[] = {"code", "program", "rows", "zeroed memory"};
    enum { MOST = 3 };
    if (tile >= p->meta.n_tiles) return;
    uint32_t found = 0;
    int64_t rank = -1;
    for (const struct package_owner *o; found < MOST && (o = owner_next(p, tile, address, step, &rank)); found++) {
        g_string_append(out, found != 0 ? ", " : "");
        print_owner(p, o, address, step, out);
    }
    if (found != 0) return;
    const struct package_segment *s = segment_of(p, tile, address);
    g_string_append(out, s != NULL ? kind[s->kind] : "nothing");
    print_behind(p, tile, address, out);
}
