/* ipu-stack exchange-problem: makes a synthetic exchange problem or converts a problem file. */
#include "cli/cli.h"
#include "exchange/exch.h"

#include <stdio.h>

static void print_info(const struct exch_problem *p, uint32_t number) {
    uint64_t words = 0;
    for (uint32_t x = 0; x < p->n_transfers; x++) words += p->words[x];
    printf("phase %u: %u transfers, %u endpoints, %" G_GUINT64_FORMAT
           " words sent, crc 0x%08x%s%s\n",
           number, p->n_transfers, p->n_recipients, words, exch_problem_crc(p),
           p->name != NULL ? ", " : "", p->name != NULL ? p->name : "");
}

static int finish(struct exch_problem_set *set, const char *output) {
    GError *error = NULL;
    bool ok = true;
    for (uint32_t k = 0; k < set->n_phases && ok; k++) {
        ok = exch_problem_check(set->phases[k], &error);
        if (ok) print_info(set->phases[k], set->number[k]);
    }
    if (ok && output != NULL) ok = exch_file_write(output, set, &error);
    exch_problem_set_free(set);
    return ok ? CLI_OK : cli_fail("exchange-problem", error);
}

static struct exch_problem_set *set_of(struct exch_problem *p) {
    struct exch_problem_set *set = g_new0(struct exch_problem_set, 1);
    set->n_phases = 1;
    set->phases = g_new(struct exch_problem *, 1);
    set->number = g_new0(uint32_t, 1);
    set->phases[0] = p;
    return set;
}

int cmd_exchange_problem(int argc, char **argv) {
    char *kind = NULL, *addresses = NULL, *output = NULL;
    int seed = 1;
    const GOptionEntry entries[] = {
        {"kind", 'k', 0, G_OPTION_ARG_STRING, &kind, "Kind of synthetic problem", "KIND"},
        {"seed", 's', 0, G_OPTION_ARG_INT, &seed, "Seed of its generator (1)", "N"},
        {"addresses", 'a', 0, G_OPTION_ARG_STRING, &addresses,
         "Address map of multicast kinds (free)", "free|hostile"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "Write the problem (.json, .json.zst, else SQLite)", "FILE"},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "[FILE]",
                     "Makes a problem of the given kind, or reads FILE, checks it, prints its size "
                     "and check "
                     "value, and writes it where -o says.",
                     &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    const bool hostile = g_strcmp0(addresses, "hostile") == 0;
    const char *wrong = (kind != NULL) == (argc > 1) ? "give either --kind or one FILE"
                        : argc > 2                   ? "more than one FILE"
                        : addresses != NULL && !hostile && g_strcmp0(addresses, "free") != 0
                            ? "--addresses is free or hostile"
                            : NULL;
    if (wrong != NULL) {
        fprintf(stderr, "ipu-stack exchange-problem: %s\n", wrong);
        return CLI_WRONG_INPUT;
    }
    GError *error = NULL;
    struct exch_problem_set *set = NULL;
    if (kind != NULL) {
        struct exch_problem *p = exch_generate(kind, (uint32_t)seed, hostile, &error);
        if (p != NULL) set = set_of(p);
    } else {
        set = exch_file_read(argv[1], &error);
    }
    if (set == NULL) return cli_fail("exchange-problem", error);
    const int status = finish(set, output);
    g_free(kind);
    g_free(addresses);
    g_free(output);
    return status;
}
