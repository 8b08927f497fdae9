/* F32 to F16 over all 2^32 inputs, nearest even, against the nearest code found by search. */
#include "numeric/num_format.h"

#include "../half_oracle.h"

static void check(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    uint32_t *bad = context;
    for (uint32_t low = 0; low < 65536; low++) {
        const float v = num_f32_from_bits(i << 16 | low);
        const uint16_t want = half_nearest((double)v), sign = want == NUM_F16_NAN ? 0 : 0x8000;
        bad[i] += num_f16_from_f32_ieee(v) != want;
        bad[i] += num_f16_from_f32_ieee(-v) != (want ^ sign);
    }
}

static void test_all(void) {
    uint32_t *bad = g_new0(uint32_t, 32768);
    par_for(32768, check, bad);
    for (uint32_t i = 0; i < 32768; i++) g_assert_cmpuint(bad[i], ==, 0);
    g_free(bad);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/numeric/f32-to-f16/all", test_all);
    return g_test_run();
}
