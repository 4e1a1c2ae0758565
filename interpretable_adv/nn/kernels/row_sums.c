/* The sum of each row, or of its squares, in the sixteen lanes of lanes.h.
 *
 *     sums: lane = lane + x      squares: lane = fma(x, x, lane)
 */

static float row_sum(const float *row, long columns, int squares)
{
    struct lanes sums = no_lanes();
    for (long i = 0; i < columns; i += SUM_LANES) {
        struct lanes x = columns - i >= SUM_LANES ? load_lanes(row + i)
            : load_some_lanes(row + i, columns - i, 0);
        sums = squares ? add_products(sums, x, x) : add_lanes(sums, x);
    }
    return total_of_lanes(sums);
}

static void row_sums_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct row_sums *a = arguments;
    long row, last;
    share(a->rows, thread, threads, &row, &last);
    for (; row < last; row++)
        a->sums[row] = a->squares ? row_sum(a->values + row * a->stride, a->columns, 1)
            : row_sum(a->values + row * a->stride, a->columns, 0);
}

static void NAME(row_sums)(struct row_sums *arguments, int threads)
{
    run_in_threads(row_sums_task, arguments, threads);
}
