/* The sum of all squares of an array: what gradient clipping needs.
 *
 * Blocks of SQUARE_SUM_BLOCK values are summed in the sixteen lanes of lanes.h, lane =
 * fma(x, x, lane). A block's lanes are added in double, from lane 0 to lane 15, and so are the
 * blocks, from the first to the last. */

static double block_square_sum(const float *values, long count)
{
    struct lanes sums = no_lanes();
    for (long i = 0; i < count; i += SUM_LANES) {
        struct lanes x = count - i >= SUM_LANES ? load_lanes(values + i)
            : load_some_lanes(values + i, count - i, 0);
        sums = add_products(sums, x, x);
    }
    float lane_sums[SUM_LANES];
    store_lanes(lane_sums, sums);
    double total = 0;
    for (int lane = 0; lane < SUM_LANES; lane++)
        total += lane_sums[lane];
    return total;
}

static void square_sum_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct square_sum *a = arguments;
    long block, last;
    share((a->count + SQUARE_SUM_BLOCK - 1) / SQUARE_SUM_BLOCK, thread, threads, &block, &last);
    for (; block < last; block++) {
        long first = block * SQUARE_SUM_BLOCK, count = a->count - first;
        a->block_sums[block] = block_square_sum(
            a->values + first, count < SQUARE_SUM_BLOCK ? count : SQUARE_SUM_BLOCK);
    }
}

static void NAME(square_sum)(struct square_sum *a, int threads)
{
    run_in_threads(square_sum_task, a, threads);
    a->total = 0;
    for (long block = 0; block * SQUARE_SUM_BLOCK < a->count; block++)
        a->total += a->block_sums[block];
}
