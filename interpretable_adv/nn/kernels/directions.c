/* Unit vectors from words to their neighbours, in one pass over what is written.
 *
 *     directions[i][k] = d / sqrt(epsilon + |d|²)   with d = table[neighbors[i][k]] − table[ids[i]]
 *
 * |d|² is summed in the sixteen lanes of lanes.h: lane = fma(d, d, lane). */

/* Writes the difference of two rows, and returns the sum of its squares. */
static float write_difference(const float *to, const float *from, float *difference, long columns)
{
    struct lanes sums = no_lanes();
    long i = 0;
    for (; i + SUM_LANES <= columns; i += SUM_LANES) {
        struct lanes d = load_lanes(to + i), start = load_lanes(from + i);
        for (int v = 0; v < SUM_VECTORS; v++)
            d.part[v] -= start.part[v];
        sums = add_products(sums, d, d);
        store_lanes(difference + i, d);
    }
    if (i < columns) {
        for (long j = i; j < columns; j++)
            difference[j] = to[j] - from[j];
        struct lanes d = load_some_lanes(difference + i, columns - i, 0);
        sums = add_products(sums, d, d);
    }
    return total_of_lanes(sums);
}

static void directions_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct directions *a = arguments;
    long row, last, columns = a->columns;
    share(a->words * a->k, thread, threads, &row, &last);
    for (; row < last; row++) {
        float *direction = a->directions + row * columns;
        float length = sqrtf(a->epsilon + write_difference(
            a->table + a->neighbors[row] * columns, a->table + a->ids[row / a->k] * columns,
            direction, columns));
        long i = 0;
        for (; i + LANES <= columns; i += LANES)
            store(direction + i, load(direction + i) / spread(length));
        for (; i < columns; i++)
            direction[i] /= length;
    }
}

static void NAME(directions)(struct directions *arguments, int threads)
{
    run_in_threads(directions_task, arguments, threads);
}
