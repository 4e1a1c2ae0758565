/* Sums along a row: SUM_LANES partial sums, whatever the processor's vectors hold.
 *
 * Lane l starts at 0 and takes the elements l, l + 16, l + 32, … in this order; where a row ends
 * within sixteen elements, the missing ones count as 0. The lanes are then added pairwise:
 * l and l + 8 for l < 8, then l and l + 4, then l and l + 2, then the two that are left. */
#define SUM_LANES 16
#define SUM_VECTORS (SUM_LANES / LANES)

struct lanes {
    vector part[SUM_VECTORS];
};

INLINE struct lanes load_lanes(const float *from)
{
    struct lanes x;
    for (int v = 0; v < SUM_VECTORS; v++)
        x.part[v] = load(from + v * LANES);
    return x;
}

/* The first `count` of sixteen; the others are `filler`. */
INLINE struct lanes load_some_lanes(const float *from, long count, float filler)
{
    float buffer[SUM_LANES];
    for (int lane = 0; lane < SUM_LANES; lane++)
        buffer[lane] = filler;
    memcpy(buffer, from, count * sizeof(float));
    return load_lanes(buffer);
}

INLINE void store_lanes(float *to, struct lanes x)
{
    for (int v = 0; v < SUM_VECTORS; v++)
        store(to + v * LANES, x.part[v]);
}

INLINE void store_some_lanes(float *to, struct lanes x, long count)
{
    float buffer[SUM_LANES];
    store_lanes(buffer, x);
    memcpy(to, buffer, count * sizeof(float));
}

INLINE struct lanes no_lanes(void)
{
    struct lanes x;
    for (int v = 0; v < SUM_VECTORS; v++)
        x.part[v] = spread(0);
    return x;
}

/* sums + x */
INLINE struct lanes add_lanes(struct lanes sums, struct lanes x)
{
    for (int v = 0; v < SUM_VECTORS; v++)
        sums.part[v] += x.part[v];
    return sums;
}

/* fma(x, y, sums) */
INLINE struct lanes add_products(struct lanes sums, struct lanes x, struct lanes y)
{
    for (int v = 0; v < SUM_VECTORS; v++)
        sums.part[v] = multiply_add(x.part[v], y.part[v], sums.part[v]);
    return sums;
}

INLINE float total_of_lanes(struct lanes x)
{
    float sums[SUM_LANES];
    store_lanes(sums, x);
    for (int width = SUM_LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++)
            sums[lane] += sums[lane + width];
    return sums[0];
}
