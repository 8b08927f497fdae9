/* device: 1,472 tiles, the fabric between them and their synchronisation, behind a table of device
 * functions. Today's only member of the table is the device model.
 *
 * In:   a package's segments and entry (as plain arrays: this room does not interpret tensors).
 * Out:  changed SRAM, the device clock, per tile the cycles of marked program addresses, counters,
 *       the first fault in full.
 * Shortcut: memory_write and memory_read copy tensors into and out of SRAM at no cost in cycles, in
 *       place of the host exchange; reports name it.
 * Units: byte addresses, bytes, tile cycles; tiles are logical numbers.
 * Synchronisation: an internal sync releases all tiles TARGET_SYNC_INTERNAL_CYCLES after the last has
 *       executed `sync 3` or `sans`; slot 0 of a phase is the cycle of the first row instruction, which
 *       has the same distance from the release on every tile or is refused (exchange 2.6).
 * Determinism: the same package and inputs give the same bytes, cycles and faults for any number of
 *       threads. Faults: of several tiles, the one with the earliest cycle, then the lowest tile.
 * Threads: one caller per device; inside, tiles run with par_for.
 * Errors: GError (1100..1149) for wrong use; what the simulated program does wrong is a device_fault.
 */
#ifndef IPU_DEVICE_H
#define IPU_DEVICE_H

#include "package/package.h"
#include "target/target.h"

enum device_fault_kind {
    DEVICE_FAULT_NONE,
    DEVICE_FAULT_TILE,     /* of a context of a tile */
    DEVICE_FAULT_FABRIC,   /* in a phase */
    DEVICE_FAULT_DEADLOCK, /* tiles wait for each other */
    DEVICE_FAULT_SYNC,     /* unequal distance from sync to slot 0; mixed zones */
    DEVICE_FAULT_LIMIT,    /* max_cycles reached */
};
enum { DEVICE_FAULT_WINDOW = 16 };
struct device_context {
    const char *state; /* static: "runs", "exited", "idle", "sync", "done", "fault".. */
    uint32_t pc;       /* of its next instruction, of the sync it waits in, of its exit */
    uint64_t cycle;    /* in which that issues or issued */
};
struct device_fault {
    enum device_fault_kind kind;
    uint32_t tile, context, pc;
    uint32_t address; /* UINT32_MAX when the fault has none */
    uint32_t number;  /* of tile_fault.def, the fabric's table or device_fault.def */
    uint64_t cycle;
    const char *name; /* static: "READ_UNWRITTEN" */
    char text[400];   /* one line */
    const char *exception; /* of the hardware: "CONFLICT"; NULL where it is silent */
    uint32_t cause;        /* isa 1.10; 0 without exception */
    const char *cause_text;
    uint32_t registers[16]; /* m0..m15 of the context */
    uint32_t a[8];          /* of a worker */
    uint32_t defined;       /* bit r: m[r], bit 16 + r: a[r] has been written */
    uint32_t window_address; /* of the words around pc, a multiple of 8 */
    uint32_t n_window, window[DEVICE_FAULT_WINDOW];
    struct device_context contexts[TARGET_N_CONTEXTS]; /* of the tile */
    uint32_t n_running, n_waiting, n_done; /* tiles: the fault's own counts as running */
};

/* Sees a tile when the first instruction of a step of its program issues, before it has any effect:
 * the tile's SRAM holds what the steps before it left. `mark` as in struct device_mark. Called from
 * the threads that run the tiles, for one tile from one at a time; may read the SRAM of this tile
 * (memory) and nothing else of the device. */
struct device;
typedef void device_seen(void *user, struct device *d, uint32_t tile, uint32_t mark);

struct device_options {
    uint32_t n_tiles;
    bool permissive; /* count faults where execution can go on */
    bool races;      /* word-exact race detector */
    bool plain;      /* tiles without fused loops: the same results, slower (tile.h) */
    bool marks;      /* record the cycles of step boundaries */
    device_seen *seen; /* optional, with marks; costs no cycles */
    void *seen_user;
    uint64_t max_cycles; /* 0 = none */
};

struct device_counters {
    uint64_t cycles;         /* device clock at the end */
    uint64_t worker_slots, fused_slots, loop_slots, launches, supervisor_instructions; /* tile.h */
    uint64_t phases, items;  /* exchange */
    uint64_t exchange_cycles; /* sum over phases: last arrival to last exit */
    uint64_t faults;         /* permissive */
};

/* Phase of the run, in order. */
struct device_phase {
    uint64_t first_arrival, last_arrival, release, slot0, last_exit; /* cycles */
    uint32_t last_tile;  /* arrives last */
    uint32_t horizon;    /* slots */
    uint32_t active;     /* tiles with a row */
};

struct device_functions {
    const char *name; /* "device model" */
    bool (*open)(const struct device_options *o, struct device **ret, GError **error);
    void (*close)(struct device *d);
    /* Clears SRAM and loads every segment of the package. */
    bool (*load)(struct device *d, const struct package *p, GError **error);
    /* Runs from the entry to completion of all tiles. False with a fault (see fault). */
    bool (*run)(struct device *d);
    const struct device_fault *(*fault)(const struct device *d);
    void (*counters)(const struct device *d, struct device_counters *ret);
    /* The shortcut. Ranges are the caller's to keep inside SRAM. */
    void (*memory_write)(struct device *d, uint32_t tile, uint32_t address, const void *data,
                         uint32_t bytes);
    void (*memory_read)(const struct device *d, uint32_t tile, uint32_t address, void *ret_data,
                        uint32_t bytes);
    /* For bulk transfers: the tile's SRAM at TARGET_SRAM_BASE, after which memory_touched must name
     * what was written. */
    uint8_t *(*memory)(struct device *d, uint32_t tile);
    void (*memory_touched)(struct device *d, uint32_t tile, uint32_t address, uint32_t bytes);
    /* Step boundaries of a tile in execution order: mark number (within the tile) and the cycle at
     * which its first instruction issued; the end of the last step has number n_marks of the tile. */
    const struct device_mark *(*marks)(const struct device *d, uint32_t tile, uint32_t *ret_n);
    const struct device_phase *(*phases)(const struct device *d, uint32_t *ret_n);
};
struct device_mark {
    uint32_t mark;
    uint64_t cycle;
};

/* The device model: interpreter of tiles, fabric, syncs. */
const struct device_functions *device_model(void);
const char *device_fault_kind_name(enum device_fault_kind kind);

#endif
