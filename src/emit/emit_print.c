/* A tile's program as text: address, words as instructions, steps as headings. */
#include "emit/emit.h"

static const char *symbol_name(uint32_t address, void *context) {
    const struct emit_image *image = context;
    const struct isa_image_symbol *s = isa_image_at(image->isa, address);
    return s != NULL && s->address == address ? s->name : NULL;
}

void emit_program_print(const struct emit_request *r, const struct emit_result *e, uint32_t tile,
                        GString *out) {
    const struct isa_print print = {.mode = ISA_MODE_S, .symbol = symbol_name,
                                    .context = (void *)r->image};
    const struct tile_graph *g = r->graph;
    uint32_t mark = e->first_mark[tile];
    for (uint32_t i = e->first_word[tile]; i < e->first_word[tile + 1]; i++) {
        const uint32_t pc = r->support.program_address + 4 * (i - e->first_word[tile]);
        for (; mark < e->first_mark[tile + 1] && e->marks[mark].pc == pc; mark++) {
            const struct tg_step *s = &g->steps[e->marks[mark].step];
            g_string_append_printf(out, "%u: %s (%s), predicted %u..%u\n", e->marks[mark].step,
                                   g->names[s->operation], g->names[s->reason],
                                   e->predicted_start[mark], e->predicted_end[mark]);
        }
        struct isa_insn insn;
        g_string_append_printf(out, "  %05x  ", pc);
        if (isa_decode(e->words[i], 0, &insn)) isa_insn_print(out, &insn, &print);
        else g_string_append_printf(out, ".word 0x%08x", e->words[i]);
        g_string_append_c(out, '\n');
    }
}
