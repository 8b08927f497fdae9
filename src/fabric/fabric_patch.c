/* C5: patch lists of shared and repeated rows. One walk over the row, because whether a word is an
 * instruction or a sendpicp's payload depends on the words before it. */
#include "fabric/fabric.h"
#include "fabric/fabric_row.h"

#include <string.h>

bool fabric_patches_check(const struct fabric_patches *p, struct fabric_fault *ret_fault) {
    uint32_t *patched = g_new(uint32_t, p->n_words + 1);
    memcpy(patched, p->stored, p->n_words * sizeof *patched);
    uint32_t bad = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_patches; i++) {
        if (p->offsets[i] >= p->n_words) bad = MIN(bad, p->n_words);
        else patched[p->offsets[i]] = p->values[i];
    }
    bool payload = false;
    for (uint32_t i = 0; i < p->n_words && i < bad; i++) {
        const uint32_t before = i > 0 ? p->stored[i - 1] : 0;
        const uint32_t allowed = row_address_bits(p->stored[i], before, payload);
        if (((patched[i] ^ p->stored[i]) & ~allowed) != 0 || patched[i] != p->wanted[i]) bad = i;
        payload = !payload && row_decode(p->stored[i], 0).kind == ROW_SENDPICP;
    }
    g_free(patched);
    if (bad == UINT32_MAX) return true;
    *ret_fault = (struct fabric_fault){.what = FABRIC_C5,
                                       .tile = (uint16_t)p->tile,
                                       .error = true,
                                       .other = FABRIC_NO_TILE,
                                       .address = p->row_address + 4 * bad};
    return false;
}
