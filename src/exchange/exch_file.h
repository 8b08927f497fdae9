/* Problem files inside the room: the JSON form, the SQLite form, what they share. */
#ifndef IPU_EXCHANGE_EXCH_FILE_H
#define IPU_EXCHANGE_EXCH_FILE_H

#include "exchange/exch_int.h"

/* Takes both arrays (struct exch_problem *, uint32_t). */
struct exch_problem_set *exch_set_take(GPtrArray *phases, GArray *numbers);
struct exch_problem_set *exch_json_parse(const char *path, const uint8_t *data, size_t size,
                                         GError **error);
GString *exch_json_print(const struct exch_problem_set *set);

#endif
