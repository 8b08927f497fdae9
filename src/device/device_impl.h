/* device_impl: state of the device model. Private to the room. */
#ifndef IPU_DEVICE_IMPL_H
#define IPU_DEVICE_IMPL_H

#include "device/device.h"

#include "fabric/fabric.h"
#include "target/sram.h"
#include "tile/tile.h"

struct device {
    struct device_options options;
    struct tile_config config;
    struct sram *sram;
    struct tile *tiles;   /* [n_tiles] */
    struct fabric *fabric;
    uint32_t entry;
    bool loaded;
    /* Marks: bit per word of the program ranges, and what was noted. */
    uint32_t watch_base, watch_words;
    uint64_t *writable;   /* [n_tiles][SRAM_WRITTEN_WORDS] words that the program may store to */
    uint64_t *watch;      /* [n_tiles][ceil(watch_words / 64)] */
    GArray **watched;     /* [n_tiles] struct tile_watch */
    uint32_t *first_mark, *mark_pc; /* as in the package; mark_pc ends with the end of the program */
    GArray **marks;       /* [n_tiles] struct device_mark */
    GArray *phases;       /* struct device_phase */
    struct device_counters counters;
    struct device_fault fault;
    /* Of the current barrier. */
    uint8_t *zone;        /* [n_tiles] zone it waited in; 0 = it ran on */
    uint32_t *sync_pc;    /* [n_tiles] of the instruction behind its sync */
    struct tileset inactive; /* tiles that answered with sans */
    struct fabric_tile *rows;
    uint64_t max_cycle;
};

void device_fault_of_tile(struct device *d, uint32_t tile);
void device_fault_of_fabric(struct device *d, const struct fabric_fault *f, uint64_t slot0);
void device_fault_set(struct device *d, enum device_fault_kind kind, uint32_t tile,
                      const char *format, ...) G_GNUC_PRINTF(4, 5);
bool device_model_run(struct device *d);
/* Passes what the tile's watch saw to the options' `seen`. */
void device_watch_seen(void *device, const struct tile *t, uint32_t pc);

#endif
