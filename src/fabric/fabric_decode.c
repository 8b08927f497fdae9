/* Rows to time lines. Two passes over the words of a row: one measures it (length, upper bounds of
 * controls and pieces) so that all tiles share flat arrays, one follows it slot by slot of its
 * instructions: controls go to one ascending list per kind, sends become pieces (same direction,
 * consecutive addresses) grouped in messages. Every condition that one row alone can show is
 * flagged here: R1 to R14, S2, S3, S7, H8, P7, C3 and the state on exit. Cost: linear in words.
 *
 * A message starts at `send`, or at a transmitting sendpicp that does not continue a running
 * stream; it goes on through sendoff, sendpic and sendpicp at the running cursor. */
#include "fabric/fabric_impl.h"

#include <string.h>

enum {
    MAX_SLOT =
        1 << 30, /* rows beyond it are taken as endless: slots stay far from 32-bit overflow */
    N_M_REGISTERS = 16,
    BASE_ALIGN = 8, /* ASSUMED by exchange 13-3 */
};

struct row_words fabric_row_words(const struct fabric *f, const struct fabric_tile *t) {
    if (t->words != NULL) return (struct row_words){(const uint8_t *)t->words, t->n_words};
    const struct sram *s = f->phase->sram;
    if (s == NULL || t->tile >= s->n_tiles || !sram_range_ok(t->row_address, 4))
        return (struct row_words){NULL, 0};
    return (struct row_words){sram_at(s, t->tile, t->row_address),
                              (TARGET_SRAM_END - t->row_address) / 4};
}

static uint32_t word_at(struct row_words w, uint32_t i) {
    uint32_t v = 0;
    if (i < w.n) memcpy(&v, w.at + (size_t)i * 4, 4);
    return v;
}

/* Row length and upper bounds; stops at the first word that can't be followed. */
void fabric_decode_measure(struct fabric *f, uint32_t i, uint32_t thread) {
    (void)thread;
    const struct fabric_tile *t = &f->phase->tiles[i];
    struct tile_plan *p = &f->plans[i];
    const struct row_words words = fabric_row_words(f, t);
    uint32_t n_controls = 0, n_pieces = 0, at = 0;
    while (at < words.n) {
        const struct row_insn in = row_decode(word_at(words, at++), 0);
        if (in.kind == ROW_RETURN || in.kind == ROW_UNKNOWN || in.kind == ROW_FOREIGN) break;
        n_controls += in.kind == ROW_PIC || in.kind == ROW_XPIC || in.kind == ROW_SENDPIC ||
                      in.kind == ROW_PUT;
        n_pieces += in.kind == ROW_SEND || in.kind == ROW_SENDOFF || in.kind == ROW_SENDPIC;
        if (in.kind == ROW_SENDPICP) {
            n_controls += 2;
            n_pieces += 1;
            at += at < words.n;
        }
    }
    p->n_words = at;
    p->bound_controls = n_controls;
    p->bound_pieces = n_pieces;
}

enum stream { STREAM_NONE, STREAM_OPEN, STREAM_CLOSED };

struct walk {
    struct fabric *f;
    const struct fabric_tile *t;
    struct tile_plan *p;
    uint32_t thread;
    struct control *lines[N_TIMELINES]; /* where each kind goes: its own stretch of the bound */
    uint32_t counts[N_TIMELINES];
    uint32_t slot, pc;     /* pc: word index of the current instruction */
    uint32_t last_control; /* slot of the latest control + 1; 0 = none */
    enum stream stream;
    uint32_t stream_end; /* slot behind the last item sent */
    uint32_t sctl;
    uint32_t cursor;  /* items */
    uint32_t message; /* current one */
    uint32_t out_base;
    uint32_t m[N_M_REGISTERS];
};

static void flag(const struct walk *w, enum fabric_fault_index what, uint32_t slot,
                 uint32_t address) {
    fabric_flag(w->f, w->thread,
                &(struct flag){.what = what,
                               .tile = w->p->tile,
                               .slot = slot,
                               .address = address,
                               .other = FABRIC_NO_TILE});
}

static uint32_t pc_address(const struct walk *w) {
    return w->p->row_address + 4 * w->pc;
}

static void put_control(struct walk *w, uint32_t kind, uint32_t slot, uint32_t value) {
    w->lines[kind][w->counts[kind]++] = (struct control){slot, value};
    if (kind == CONTROL_BASE) return;
    w->last_control = slot + 1;
    const uint32_t plain = value & ~CONTROL_MERGED;
    const bool mux = kind == CONTROL_MUX || kind == CONTROL_PAIR;
    if ((kind == CONTROL_FMT && plain > 2) || (mux && plain >> TARGET_EXCH_MUX_BITS != 0))
        flag(w, FABRIC_R5, slot, pc_address(w));
}

static uint32_t item_bytes(uint32_t sctl) {
    return (sctl & SCTL_PAIRED) != 0 ? 8 : 4;
}

/* Range and alignment of a piece's source; sets its message's elements. */
static void place_piece(struct walk *w, struct piece *pc) {
    const uint32_t size = item_bytes(w->sctl);
    const uint64_t from = (uint64_t)w->out_base + (uint64_t)w->cursor * size;
    const uint64_t end = from + (uint64_t)pc->n * size;
    pc->address = (uint32_t)from;
    if ((w->f->phase->flags & FABRIC_ANY_ADDRESS) != 0) return;
    if ((w->sctl & SCTL_DIRECTIONS) == 0) return; /* nothing is read */
    if (from < TARGET_SRAM_BASE || end > TARGET_SRAM_END) {
        const uint64_t first = from < TARGET_SRAM_BASE ? from : MAX(from, TARGET_SRAM_END);
        flag(w, FABRIC_S2, pc->slot, (uint32_t)first);
        pc->bad = true;
    }
    if (from % size != 0) {
        flag(w, FABRIC_S3, pc->slot, (uint32_t)from);
        pc->bad = true;
    }
    w->f->messages[w->message].elements |= fabric_elements(from, end);
}

/* Puts n items on the bus (or, without direction bits, nowhere) from the current slot on. */
static void emit_items(struct walk *w, uint32_t n) {
    struct tile_plan *p = w->p;
    struct message *msg = &w->f->messages[w->message];
    const uint32_t size = item_bytes(w->sctl);
    struct piece *last = msg->n_pieces > 0 ? &w->f->pieces[p->first_piece + p->n_pieces - 1] : NULL;
    const bool joins = last != NULL && last->sctl == w->sctl && last->slot + last->n == w->slot &&
                       last->address + last->n * size == w->out_base + w->cursor * size;
    if (joins) {
        struct piece more = {.slot = w->slot, .n = n};
        place_piece(w, &more);
        last->n += n;
        last->bad |= more.bad;
    } else {
        struct piece *pc = &w->f->pieces[p->first_piece + p->n_pieces++];
        *pc = (struct piece){
            .slot = w->slot, .n = n, .message = w->message, .sctl = (uint8_t)w->sctl};
        place_piece(w, pc);
        msg->n_pieces++;
    }
    msg->end = w->slot + n;
    w->cursor += n;
    w->stream_end = w->slot + n;
    w->stream = STREAM_OPEN;
    p->has_paired |= (w->sctl & SCTL_PAIRED) != 0;
    if ((w->sctl & SCTL_DIRECTIONS) != 0) p->words_sent += (uint64_t)n * (size / 4);
}

static void close_message(struct walk *w) {
    if (w->p->n_messages == 0) return;
    const struct message *msg = &w->f->messages[w->message];
    if (msg->end - msg->slot > TARGET_EXCH_MAX_ITEMS) flag(w, FABRIC_H8, msg->slot, pc_address(w));
}

static void open_message(struct walk *w) {
    struct tile_plan *p = w->p;
    close_message(w);
    w->message = p->first_message + p->n_messages++;
    w->f->messages[w->message] = (struct message){.slot = w->slot,
                                                  .end = w->slot,
                                                  .staging = NO_STAGING,
                                                  .first_piece = p->first_piece + p->n_pieces,
                                                  .sender = (uint16_t)(p - w->f->plans),
                                                  .item_bytes = (uint8_t)item_bytes(w->sctl)};
    /* Rule 3.3-7: no control in the first slot of a message or the one before it. */
    if (w->last_control != 0 && w->last_control >= w->slot)
        flag(w, FABRIC_S7, w->slot, pc_address(w));
}

static void walk_send(struct walk *w, const struct row_insn *in) {
    if (in->sctl == SCTL_PAIRED) {
        flag(w, FABRIC_R11, w->slot, pc_address(w));
        w->stream = STREAM_CLOSED;
        return;
    }
    w->sctl = in->sctl;
    w->cursor = in->address;
    open_message(w);
    emit_items(w, in->n);
}

/* sendoff and sendpic: goes on with the running stream. */
static void walk_continue(struct walk *w, const struct row_insn *in, uint32_t sctl) {
    if (w->stream != STREAM_OPEN) {
        flag(w, FABRIC_R9, w->slot, pc_address(w));
        return;
    }
    if (sctl == SCTL_PAIRED || ((sctl ^ w->sctl) & SCTL_PAIRED) != 0) {
        flag(w, FABRIC_R11, w->slot, pc_address(w));
        w->stream = STREAM_CLOSED;
        return;
    }
    const bool gap = w->stream_end != w->slot;
    if (gap) flag(w, FABRIC_R9_GAP, w->slot, pc_address(w));
    w->sctl = sctl;
    if (in->kind == ROW_SENDOFF && in->address != 0) {
        flag(w, FABRIC_R12, w->slot, pc_address(w));
        w->cursor +=
            in->address; /* ASSUMED: items forward from the running cursor (exchange 13-4) */
    }
    if (gap) { /* a message of its own for windows and stages, but no start of one for rule 3.3-7 */
        const uint32_t controls = w->last_control;
        w->last_control = 0;
        open_message(w);
        w->last_control = controls;
    }
    emit_items(w, in->n);
}

static void walk_sendpic(struct walk *w, const struct row_insn *in) {
    put_control(w, in->control, w->slot, in->value);
    walk_continue(w, in, w->sctl);
}

static void walk_sendpicp(struct walk *w, const struct row_insn *in) {
    const bool ordinary = in->control == CONTROL_PTR && in->xcontrol == CONTROL_MUX;
    if (!ordinary) flag(w, FABRIC_R8, w->slot, pc_address(w));
    const bool misaligned = w->p->row_address != 0 ? pc_address(w) % 8 != 0 : w->pc % 2 != 0;
    if (misaligned) flag(w, FABRIC_R2, w->slot, pc_address(w));
    put_control(w, in->control, w->slot, in->value | CONTROL_MERGED);
    put_control(w, in->xcontrol, w->slot, in->xvalue);
    if (in->sctl == 0) {
        w->stream = STREAM_CLOSED;
        return;
    }
    const bool inside = w->stream == STREAM_OPEN && w->stream_end == w->slot;
    if (!inside) {
        walk_send(w, in);
        return;
    }
    if (in->address != w->cursor && in->sctl != SCTL_PAIRED &&
        ((in->sctl ^ w->sctl) & SCTL_PAIRED) == 0) {
        flag(w, FABRIC_R10, w->slot, pc_address(w));
        walk_send(w, in);
        return;
    }
    walk_continue(w, in, in->sctl);
}

static void walk_put(struct walk *w, const struct row_insn *in) {
    const uint32_t value = w->m[in->address], last = w->slot + in->n - 1;
    if (value % BASE_ALIGN != 0) flag(w, FABRIC_P7, w->slot, value);
    if (in->value == 0xa4) put_control(w, CONTROL_BASE, last, value);
    else w->out_base = value;
}

/* Executes one instruction; false when the row can't be followed any further. */
static bool walk_step(struct walk *w, const struct row_insn *in) {
    switch (in->kind) {
    case ROW_DELAY:
        break;
    case ROW_SETZI:
        if (in->address != N_M_REGISTERS - 1) w->m[in->address] = in->value;
        break;
    case ROW_PUT:
        walk_put(w, in);
        break;
    case ROW_PIC:
    case ROW_XPIC:
        put_control(w, in->control, w->slot + in->n - 1, in->value);
        break;
    case ROW_SENDPICP:
        walk_sendpicp(w, in);
        break;
    case ROW_SENDPIC:
        walk_sendpic(w, in);
        break;
    case ROW_SEND:
        walk_send(w, in);
        break;
    case ROW_SENDOFF:
        walk_continue(w, in, in->sctl);
        break;
    case ROW_SYNC:
        flag(w, FABRIC_R6, w->slot, pc_address(w));
        break;
    case ROW_FOREIGN:
        flag(w, FABRIC_R14, w->slot, pc_address(w));
        return false;
    default:
        flag(w, FABRIC_R1, w->slot, pc_address(w));
        return false;
    }
    w->slot += in->n;
    return w->slot < MAX_SLOT;
}

/* Follows the row; returns whether it reached its return. */
static bool walk_row(struct walk *w, struct row_words words) {
    uint32_t at = 0;
    if (w->t->sync_in_row) {
        const struct row_insn in = row_decode(word_at(words, 0), 0);
        if (in.kind != ROW_SYNC) flag(w, FABRIC_R6, 0, pc_address(w));
        at = in.kind == ROW_SYNC;
    }
    while (at < w->p->n_words) {
        w->pc = at;
        const struct row_insn in = row_decode(word_at(words, at), word_at(words, at + 1));
        if (in.kind == ROW_RETURN) return true;
        if (in.kind == ROW_SENDPICP && at + 1 >= words.n) {
            flag(w, FABRIC_R1, w->slot, pc_address(w));
            return false;
        }
        if (!walk_step(w, &in)) {
            if (w->slot >= MAX_SLOT) flag(w, FABRIC_R3, w->slot, pc_address(w));
            return false;
        }
        at += in.kind == ROW_SENDPICP ? 2 : 1;
    }
    w->pc = at;
    flag(w, FABRIC_R3, w->slot, pc_address(w));
    return false;
}

/* R2, R4, H5: where the row lies. */
static void check_row_place(struct walk *w) {
    struct tile_plan *p = w->p;
    const uint32_t base = w->t->row_address;
    if (base == 0) return;
    p->row_end = base + 4 * p->n_words + TARGET_FETCH_AHEAD_BYTES;
    if (base % 8 != 0) flag(w, FABRIC_R2, 0, base);
    if (base < TARGET_SRAM_BASE || p->row_end > TARGET_REGION1_BASE) flag(w, FABRIC_R4, 0, base);
    if (w->t->words != NULL || w->f->phase->sram == NULL || !sram_range_ok(base, 4)) return;
    const uint32_t missing = sram_first_unwritten(w->f->phase->sram, p->tile, base, 4 * p->n_words);
    if (missing != UINT32_MAX) flag(w, FABRIC_H5, 0, missing);
}

static void check_entry(const struct walk *w) {
    const struct fabric_csr *c = &w->t->csr;
    if (c->incoming_mux != TARGET_EXCH_MUX_NEUTRAL ||
        c->incoming_muxpair != TARGET_EXCH_MUX_NEUTRAL || c->incoming_format != 0)
        flag(w, FABRIC_ENTRY, 0, 0);
    if (c->incoming_base % BASE_ALIGN != 0) flag(w, FABRIC_P7, 0, c->incoming_base);
    if (c->outgoing_base % BASE_ALIGN != 0) flag(w, FABRIC_P7, 0, c->outgoing_base);
    if (w->t->workers_active) flag(w, FABRIC_H4, 0, 0);
    const struct tileset *inactive = w->f->phase->inactive;
    if (inactive != NULL && tileset_has(inactive, w->p->tile)) flag(w, FABRIC_C3, 0, 0);
    if (w->t->sync_in_row != w->f->phase->tiles[0].sync_in_row) flag(w, FABRIC_R6, 0, 0);
}

static uint32_t last_value(const struct walk *w, uint32_t kind, uint32_t entry) {
    const uint32_t n = w->counts[kind];
    return n > 0 ? w->lines[kind][n - 1].value & ~CONTROL_MERGED : entry;
}

/* Registers on exit (the incoming cursor follows in the receive pass) and condition C2. */
static void leave_row(struct walk *w, struct fabric_tile *t) {
    struct fabric_csr *c = &t->csr;
    struct fabric_csr out = *c;
    out.incoming_mux = last_value(w, CONTROL_MUX, c->incoming_mux);
    out.incoming_muxpair = last_value(w, CONTROL_PAIR, c->incoming_muxpair);
    out.incoming_format = last_value(w, CONTROL_FMT, c->incoming_format) & 3;
    out.outgoing_base = w->out_base;
    if (w->p->n_messages > 0) out.outgoing_delta = w->cursor * item_bytes(w->sctl);
    const bool neutral = out.incoming_mux == TARGET_EXCH_MUX_NEUTRAL &&
                         out.incoming_muxpair == TARGET_EXCH_MUX_NEUTRAL &&
                         out.incoming_format == 0;
    if (!neutral && !w->p->stopped) flag(w, FABRIC_C2, w->slot, 0);
    t->slots = w->p->slots = w->slot;
    t->end_pc = pc_address(w);
    if (t->m != NULL) memcpy(t->m, w->m, sizeof w->m);
    /* Entry values are still needed to receive: they are swapped for `out` there. */
    w->p->exit = out;
}

/* The bounds are shared by all kinds of controls: each kind is walked into its own list first. */
static void pack_lines(struct walk *w) {
    struct control *to = w->f->controls + w->p->first_control;
    for (uint32_t k = 0; k < N_TIMELINES; k++) {
        if (w->counts[k] > 0) memcpy(to, w->lines[k], w->counts[k] * sizeof *to);
        w->p->line[k] = (struct timeline){(uint32_t)(to - w->f->controls), w->counts[k]};
        to += w->counts[k];
    }
}

void fabric_decode_tile(struct fabric *f, uint32_t i, uint32_t thread) {
    struct fabric_tile *t = &f->phase->tiles[i];
    struct tile_plan *p = &f->plans[i];
    struct worker *me = &f->workers[thread];
    fabric_grow_u32((void **)&me->lines, &me->capacity_lines, N_TIMELINES * p->bound_controls,
                    sizeof *me->lines);
    struct walk w = {.f = f, .t = t, .p = p, .thread = thread, .out_base = t->csr.outgoing_base};
    for (uint32_t k = 0; k < N_TIMELINES; k++) w.lines[k] = me->lines + k * p->bound_controls;
    if (t->m != NULL) memcpy(w.m, t->m, sizeof w.m);
    w.m[N_M_REGISTERS - 1] = 0;
    check_entry(&w);
    check_row_place(&w);
    p->stopped = !walk_row(&w, fabric_row_words(f, t));
    close_message(&w);
    pack_lines(&w);
    leave_row(&w, t);
}

/* Own pieces against the pieces for which the partner borrows this tile's lane. */
void fabric_decode_lanes(struct fabric *f, uint32_t i, uint32_t thread) {
    const struct tile_plan *p = &f->plans[i];
    const uint16_t other = f->plan_of[p->phys ^ 2];
    if (other == NO_PLAN || !f->plans[other].has_paired) return;
    const struct tile_plan *q = &f->plans[other];
    const struct piece *mine = f->pieces + p->first_piece, *theirs = f->pieces + q->first_piece;
    uint32_t b = 0;
    for (uint32_t a = 0; a < p->n_pieces; a++) {
        if ((mine[a].sctl & SCTL_DIRECTIONS) == 0) continue;
        while (b < q->n_pieces && theirs[b].slot + theirs[b].n <= mine[a].slot) b++;
        for (uint32_t k = b; k < q->n_pieces && theirs[k].slot < mine[a].slot + mine[a].n; k++)
            if ((theirs[k].sctl & SCTL_PAIRED) != 0)
                fabric_flag(f, thread,
                            &(struct flag){.what = FABRIC_S1,
                                           .tile = p->tile,
                                           .slot = MAX(mine[a].slot, theirs[k].slot),
                                           .address = mine[a].address,
                                           .other = q->tile});
    }
}
