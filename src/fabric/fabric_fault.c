/* The table of conditions and the text of a fault record. */
#include "fabric/fabric.h"

const struct fabric_condition fabric_conditions[FABRIC_N_FAULTS] = {
#define FABRIC_FAULT(number, id, class, text) {number, #class[0], #id, text},
#include "fabric/fabric_fault.def"
#undef FABRIC_FAULT
};

struct fabric_csr fabric_csr_initial(void) {
    return (struct fabric_csr){.incoming_mux = TARGET_EXCH_MUX_NEUTRAL,
                               .incoming_muxpair = TARGET_EXCH_MUX_NEUTRAL,
                               .incoming_dcount = 1};
}

char *fabric_fault_text(const struct fabric_fault *fault) {
    const struct fabric_condition *c = &fabric_conditions[fault->what];
    GString *s = g_string_new(NULL);
    g_string_printf(s, "%s %u (%s) tile %u slot %u", fault->error ? "fault" : "warning", c->number,
                    c->id, fault->tile, fault->slot);
    if (fault->address != 0) g_string_append_printf(s, " address %#x", fault->address);
    if (fault->other != FABRIC_NO_TILE) g_string_append_printf(s, ", other tile %u", fault->other);
    g_string_append_printf(s, ": %s", c->text);
    return g_string_free(s, FALSE);
}
