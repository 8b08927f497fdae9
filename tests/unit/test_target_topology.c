/* Self-checks of exchange 1.1 to 1.8. */
#include "target/target.h"

#include <string.h>

static uint32_t crc32_of(const uint8_t *data, size_t n) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int b = 0; b < 8; b++) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

static struct ptile pt(uint32_t n) { return (struct ptile){(uint16_t)n}; }

static void test_target_numbering(void) {
    const uint16_t *phys = target_physical_of_logical();
    uint8_t bytes[2 * TARGET_N_TILES];
    for (uint32_t l = 0; l < TARGET_N_TILES; l++) {
        bytes[2 * l] = (uint8_t)phys[l];
        bytes[2 * l + 1] = (uint8_t)(phys[l] >> 8);
        g_assert_cmpuint(target_ltile(pt(phys[l])).n, ==, l);
        g_assert_cmpuint(phys[l ^ 1], ==, phys[l] ^ 2u);
    }
    g_assert_cmphex(crc32_of(bytes, sizeof bytes), ==, 0xfaf6f8b1);
    static const uint16_t want[][2] = {{0, 0}, {1, 2}, {2, 64}, {44, 1408}, {45, 1410}, {46, 1409},
        {47, 1411}, {90, 1}, {92, 4}, {184, 8}, {368, 16}, {735, 31}, {736, 32}, {1286, 53},
        {1471, 63}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) g_assert_cmpuint(phys[want[i][0]], ==, want[i][1]);
}

static void test_target_latency(void) {
    enum { N = TARGET_N_TILES };
    const uint16_t *phys = target_physical_of_logical();
    uint8_t *by_phys = g_malloc(N * N), *by_log = g_malloc(N * N), *dirs = g_malloc(N * N);
    int64_t sum = 0, n_dir1 = 0;
    for (uint32_t a = 0; a < N; a++)
        for (uint32_t b = 0; b < N; b++) {
            const int32_t ttm = target_ttm(pt(a), pt(b));
            const uint32_t k = target_ttm_class(pt(a), pt(b));
            g_assert_cmpint(ttm, ==, target_ttm_f(k, pt(a)) + target_ttm_g(k, pt(b)));
            g_assert_cmpint(ABS(ttm - target_ttm(pt(a), pt(b ^ 2))), ==, 1);
            g_assert_cmpint(ttm, ==, target_ttm(pt(a ^ 2), pt(b)));
            sum += ttm;
            by_phys[a * N + b] = (uint8_t)(ttm + 128);
            by_log[a * N + b] = (uint8_t)(target_ttm(pt(phys[a]), pt(phys[b])) + 128);
            dirs[a * N + b] = (uint8_t)target_direction(pt(a), pt(b));
            n_dir1 += dirs[a * N + b] == 1;
        }
    g_assert_cmpint(sum, ==, -21396992);
    g_assert_cmpint(n_dir1, ==, (int64_t)N * N / 2);
    g_assert_cmphex(crc32_of(by_phys, N * N), ==, 0x00aac874);
    g_assert_cmphex(crc32_of(by_log, N * N), ==, 0xccfff113);
    g_assert_cmphex(crc32_of(dirs, N * N), ==, 0x858c4268);
    g_free(by_phys);
    g_free(by_log);
    g_free(dirs);
}

/* logical s, d, direction, ttm: worked examples of exchange 1.8 */
static void test_target_examples(void) {
    static const int16_t rows[][4] = {{0, 0, 1, -29}, {0, 1, 1, -28}, {2, 1, 1, -26},
        {0, 46, 1, -69}, {46, 0, 2, 19}, {368, 0, 2, 13}, {736, 0, 2, 68}, {736, 100, 2, 49},
        {1471, 0, 1, -13}, {612, 1216, 2, 17}, {780, 0, 2, 112}, {90, 136, 1, -78}};
    const uint16_t *phys = target_physical_of_logical();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct ptile s = pt(phys[rows[i][0]]), d = pt(phys[rows[i][1]]);
        g_assert_cmpint(target_direction(s, d), ==, rows[i][2]);
        g_assert_cmpint(target_ttm(s, d), ==, rows[i][3]);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/target/numbering", test_target_numbering);
    g_test_add_func("/target/latency", test_target_latency);
    g_test_add_func("/target/examples", test_target_examples);
    return g_test_run();
}
