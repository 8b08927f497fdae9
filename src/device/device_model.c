/* The table of device functions of the device model: open, load, memory, what a run left behind. */
#include "device/device_impl.h"

#include <string.h>

static bool model_open(const struct device_options *o, struct device **ret, GError **error) {
    if (o->n_tiles == 0 || o->n_tiles > TARGET_N_TILES) {
        diag_set(error, DEVICE_TILES, o->n_tiles, TARGET_N_TILES);
        return false;
    }
    struct device *d = g_new0(struct device, 1);
    d->options = *o;
    d->config = (struct tile_config){.permissive = o->permissive, .races = o->races, .plain = o->plain};
    d->sram = sram_new(o->n_tiles);
    d->tiles = g_new0(struct tile, o->n_tiles);
    d->fabric = fabric_new();
    d->watched = g_new0(GArray *, o->n_tiles);
    d->marks = g_new0(GArray *, o->n_tiles);
    d->phases = g_array_new(false, false, sizeof(struct device_phase));
    d->zone = g_new0(uint8_t, o->n_tiles);
    d->sync_pc = g_new0(uint32_t, o->n_tiles);
    d->rows = g_new0(struct fabric_tile, o->n_tiles);
    d->writable = g_new0(uint64_t, (size_t)o->n_tiles * SRAM_WRITTEN_WORDS);
    for (uint32_t i = 0; i < o->n_tiles; i++) {
        tile_init(&d->tiles[i], &d->config, d->sram, i);
        d->watched[i] = g_array_new(false, false, sizeof(struct tile_watch));
        d->marks[i] = g_array_new(false, false, sizeof(struct device_mark));
    }
    *ret = d;
    return true;
}

static void model_close(struct device *d) {
    if (d == NULL) return;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        tile_free(&d->tiles[i]);
        g_array_free(d->watched[i], true);
        g_array_free(d->marks[i], true);
    }
    fabric_free(d->fabric);
    sram_free(d->sram);
    g_array_free(d->phases, true);
    g_free(d->tiles);
    g_free(d->watched);
    g_free(d->marks);
    g_free(d->watch);
    g_free(d->writable);
    g_free(d->first_mark);
    g_free(d->mark_pc);
    g_free(d->zone);
    g_free(d->sync_pc);
    g_free(d->rows);
    g_free(d);
}

/* The range of program addresses that hold marks, and a bit per word in it for every tile. */
static void load_marks(struct device *d, const struct package *p) {
    const uint32_t n = d->options.n_tiles;
    g_free(d->watch);
    g_free(d->first_mark);
    g_free(d->mark_pc);
    d->first_mark = g_memdup2(p->first_mark, sizeof *p->first_mark * (n + 1));
    d->mark_pc = g_new0(uint32_t, p->first_mark[n] + n);
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t *pc = d->mark_pc + p->first_mark[t] + t;
        for (uint32_t m = p->first_mark[t]; m < p->first_mark[t + 1]; m++)
            *pc++ = p->marks[m].pc;
        *pc = p->end_pc[t];
        low = MIN(low, d->mark_pc[p->first_mark[t] + t]);
        high = MAX(high, p->end_pc[t]);
    }
    d->watch_base = low;
    d->watch_words = (high - low) / 4 + 1;
    const size_t stride = ceil_div_u32(d->watch_words, 64);
    d->watch = g_new0(uint64_t, stride * n);
    for (uint32_t t = 0; t < n; t++) {
        uint64_t *bits = d->watch + stride * t;
        const uint32_t first = p->first_mark[t] + t, end = p->first_mark[t + 1] + t + 1;
        for (uint32_t i = first; i < end; i++) {
            const uint32_t word = (d->mark_pc[i] - low) / 4;
            bits[word / 64] |= UINT64_C(1) << (word % 64);
        }
        d->tiles[t].watch = (struct tile_watch_range){.bits = bits, .base = low,
                                                      .n_words = d->watch_words,
                                                      .out = d->watched[t],
                                                      .seen = d->options.seen != NULL
                                                                  ? device_watch_seen
                                                                  : NULL,
                                                      .user = d};
    }
}

struct loading {
    struct device *d;
    const struct package *p;
};

static void allow(uint64_t *bits, uint32_t address, uint64_t bytes) {
    const uint32_t first = (address - TARGET_SRAM_BASE) / 4;
    const uint32_t end = (uint32_t)((address - TARGET_SRAM_BASE + bytes + 3) / 4);
    for (uint32_t w = first; w < end;) {
        const uint32_t n = MIN(64 - w % 64, end - w);
        bits[w / 64] |= (n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << w % 64;
        w += n;
    }
}

/* What the package allocates: tensors, rows (programs patch them), zeroed memory, samples, the
 * completion word and the stacks (runtime 3.1). Code and programs are nobody's to store to. A package
 * without owners does not say what is allocated. */
static void load_writable(struct device *d, const struct package *p, uint32_t t) {
    uint64_t *bits = d->writable + (size_t)t * SRAM_WRITTEN_WORDS;
    memset(bits, 0, sizeof *bits * SRAM_WRITTEN_WORDS);
    d->tiles[t].writable = p->first_owner[t] != p->first_owner[t + 1] ? bits : NULL;
    for (uint32_t i = p->first_owner[t]; i < p->first_owner[t + 1]; i++)
        allow(bits, p->owners[i].address, p->owners[i].bytes);
    for (uint32_t i = p->first_segment[t]; i < p->first_segment[t + 1]; i++)
        if (p->segments[i].kind == PACKAGE_SEGMENT_ROWS || p->segments[i].kind == PACKAGE_SEGMENT_ZERO)
            allow(bits, p->segments[i].address, p->segments[i].bytes);
    if (p->meta.samples) /* a word per mark and the end */
        allow(bits, p->sample_address[t], 4 * (p->first_mark[t + 1] - p->first_mark[t] + UINT64_C(1)));
    allow(bits, TARGET_COMPLETION_WORD, TARGET_SUPERVISOR_STACK_TOP - TARGET_COMPLETION_WORD);
}

static void load_tile(uint32_t t, uint32_t thread, void *context) {
    (void)thread;
    const struct loading *l = context;
    struct sram *s = l->d->sram;
    for (uint32_t i = l->p->first_segment[t]; i < l->p->first_segment[t + 1]; i++) {
        const struct package_segment *seg = &l->p->segments[i];
        if (seg->kind == PACKAGE_SEGMENT_ZERO) memset(sram_at(s, t, seg->address), 0, seg->bytes);
        else memcpy(sram_at(s, t, seg->address), l->p->image + seg->offset, seg->bytes);
        sram_mark_written(s, t, seg->address, seg->bytes);
    }
    load_writable(l->d, l->p, t);
    tile_tail_clear(&l->d->tiles[t]);
    for (uint32_t i = l->p->first_owner[t]; i < l->p->first_owner[t + 1]; i++) {
        const struct package_owner *o = &l->p->owners[i];
        if (o->tail_bytes != 0) tile_tail_add(&l->d->tiles[t], o->address + o->bytes, o->tail_bytes);
    }
}

static bool model_load(struct device *d, const struct package *p, GError **error) {
    const uint32_t n = d->options.n_tiles;
    if (p->meta.n_tiles != n) {
        diag_set(error, DEVICE_PACKAGE_TILES, p->meta.n_tiles, n);
        return false;
    }
    if (d->loaded) {
        sram_free(d->sram);
        d->sram = sram_new(n);
        for (uint32_t i = 0; i < n; i++) {
            tile_free(&d->tiles[i]);
            tile_init(&d->tiles[i], &d->config, d->sram, i);
        }
    }
    d->loaded = true;
    d->entry = p->meta.entry;
    struct loading l = {.d = d, .p = p};
    par_for(n, load_tile, &l);
    if (d->options.marks) load_marks(d, p);
    return true;
}

static const struct device_fault *model_fault(const struct device *d) { return &d->fault; }

static void model_counters(const struct device *d, struct device_counters *ret) {
    *ret = d->counters;
}

static void model_memory_touched(struct device *d, uint32_t tile, uint32_t address,
                                 uint32_t bytes) {
    sram_mark_written(d->sram, tile, address, bytes);
}

static void model_memory_write(struct device *d, uint32_t tile, uint32_t address, const void *data,
                               uint32_t bytes) {
    BUG_ON(tile >= d->options.n_tiles || !sram_range_ok(address, bytes));
    memcpy(sram_at(d->sram, tile, address), data, bytes);
    model_memory_touched(d, tile, address, bytes);
}

static void model_memory_read(const struct device *d, uint32_t tile, uint32_t address,
                              void *ret_data, uint32_t bytes) {
    BUG_ON(tile >= d->options.n_tiles || !sram_range_ok(address, bytes));
    memcpy(ret_data, sram_at(d->sram, tile, address), bytes);
}

static uint8_t *model_memory(struct device *d, uint32_t tile) {
    return sram_at(d->sram, tile, TARGET_SRAM_BASE);
}

static const struct device_mark *model_marks(const struct device *d, uint32_t tile,
                                             uint32_t *ret_n) {
    *ret_n = d->marks[tile]->len;
    return (const struct device_mark *)d->marks[tile]->data;
}

static const struct device_phase *model_phases(const struct device *d, uint32_t *ret_n) {
    *ret_n = d->phases->len;
    return (const struct device_phase *)d->phases->data;
}

const struct device_functions *device_model(void) {
    static const struct device_functions functions = {
        .name = "device model",
        .open = model_open,
        .close = model_close,
        .load = model_load,
        .run = device_model_run,
        .fault = model_fault,
        .counters = model_counters,
        .memory_write = model_memory_write,
        .memory_read = model_memory_read,
        .memory = model_memory,
        .memory_touched = model_memory_touched,
        .marks = model_marks,
        .phases = model_phases,
    };
    return &functions;
}
