/* Masks of dropout from NumPy's random stream.
 *
 *     mask[i] = scale if u_i >= ratio, otherwise 0
 *
 * u_i are the numbers that np.random.rand() would return. Its generator is MT19937 (Matsumoto and
 * Nishimura, 1998): from 624 words x,
 *     y = upper bit of x[n], lower 31 bits of x[n + 1]
 *     x[n + 624] = x[n + 397] ^ y / 2 ^ (0x9908b0df if y is odd)
 * of which each is tempered before it is given out. Two words a, b make u = (a', b') / 2^53 with
 * a' the upper 27 bits of a and b' the upper 26 of b. Compared as integers, u needs no division:
 * threshold is the smallest integer that is not below ratio * 2^53. */

#define MT_WORDS 624
#define MT_MIDDLE 397

INLINE uint32_t mt_twist(uint32_t upper, uint32_t lower)
{
    uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
    return y >> 1 ^ (-(y & 1) & 0x9908b0dfu);
}

/* The next 624 words, in place. No loop reads what one of its last 226 rounds wrote. */
static void mt_advance(uint32_t *x)
{
    int n = 0;
    for (; n < MT_WORDS - MT_MIDDLE; n++)
        x[n] = x[n + MT_MIDDLE] ^ mt_twist(x[n], x[n + 1]);
    for (; n < MT_WORDS - 1; n++)
        x[n] = x[n + MT_MIDDLE - MT_WORDS] ^ mt_twist(x[n], x[n + 1]);
    x[n] = x[MT_MIDDLE - 1] ^ mt_twist(x[n], x[0]);
}

static void mt_temper(const uint32_t *from, uint32_t *to, long count)
{
    for (long i = 0; i < count; i++) {
        uint32_t y = from[i];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        to[i] = y ^ y >> 18;
    }
}

/* In one thread: the words come one after another. */
static void NAME(dropout)(struct dropout *a, int threads)
{
    (void)threads;
    uint32_t words[MT_WORDS];
    int64_t last_below = a->threshold - 1;
    float scale = a->scale;
    for (int64_t done = 0; done < a->count;) {
        long count = a->count - done < MT_WORDS / 2 ? a->count - done : MT_WORDS / 2;
        for (long have = 0; have < 2 * count;) {
            if (a->position == MT_WORDS) {
                mt_advance(a->state);
                a->position = 0;
            }
            long here = MT_WORDS - a->position;
            if (here > 2 * count - have)
                here = 2 * count - have;
            mt_temper(a->state + a->position, words + have, here);
            a->position += here;
            have += here;
        }
        float *mask = a->mask + done;
        for (long i = 0; i < count; i++) {
            int64_t u = (int64_t)(words[2 * i] >> 5) << 26 | words[2 * i + 1] >> 6;
            mask[i] = scale * (float)(int)((uint64_t)(last_below - u) >> 63);  /* its sign */
        }
        done += count;
    }
}
