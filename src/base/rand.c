/* Counter-based random numbers: any element of any tensor can be made alone. */
#include "base/base.h"

#include <math.h>

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t rand_u64(uint64_t seed, uint64_t stream, uint64_t index) {
    const uint64_t key = mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ stream;
    return mix(mix(key) + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t rand_stream(const char *name) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name != 0; name++) h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h;
}

float rand_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    return (float)(rand_u64(seed, stream, index) >> 40) * 0x1p-24f;
}

float rand_normal(uint64_t seed, uint64_t stream, uint64_t index) {
    const uint64_t r = rand_u64(seed, stream, index);
    const double u = ((double)(r >> 32) + 0.5) * 0x1p-32;
    const double v = (double)(uint32_t)r * 0x1p-32;
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}
