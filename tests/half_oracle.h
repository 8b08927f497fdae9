/* F16 by its definition, for tests: values by powers of two, the nearest code by search over all codes.
 * Independent of num_format and of what the compiler knows about F16. */
#ifndef IPU_TESTS_HALF_ORACLE_H
#define IPU_TESTS_HALF_ORACLE_H

#include <math.h>
#include <stdint.h>

static inline double half_value(uint16_t h) {
    const int e = h >> 10 & 31, m = h & 0x3ff;
    double v = e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
    if (e == 31) v = m ? (double)NAN : (double)INFINITY;
    return h & 0x8000 ? -v : v;
}

/* Ties to the even code; infinity from half way beyond the largest number on; NaN is 0x7e00. */
static inline uint16_t half_nearest(double v) {
    const double a = fabs(v);
    if (v != v) return 0x7e00;
    uint32_t lo = 0, hi = 0x7c00; /* half_value(lo) <= a < that of hi, 65536 for infinity */
    while (hi - lo > 1 && a < 65536) {
        const uint32_t middle = (lo + hi) / 2;
        *(half_value((uint16_t)middle) <= a ? &lo : &hi) = middle;
    }
    const double below = half_value((uint16_t)lo), above = hi == 0x7c00 ? 65536 : half_value((uint16_t)hi);
    const double tie = (below + above) / 2;
    uint32_t code = a > tie || (a == tie && lo % 2 == 1) ? hi : lo;
    if (a >= 65536) code = 0x7c00;
    return (uint16_t)(code | (signbit(v) ? 0x8000 : 0));
}

#endif
