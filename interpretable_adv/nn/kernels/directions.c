/* Unit vectors from words to their neighbours, in one pass over what is written.
 *
 *     directions[i][k] = d / sqrt(epsilon + |d|²)   with d = table[neighbors[i][k]] − table[ids[i]]
 */

static void directions_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct directions *a = arguments;
    long row, last, columns = a->columns;
    share(a->words * a->k, thread, threads, &row, &last);
    for (; row < last; row++) {
        const float *from = a->table + a->ids[row / a->k] * columns;
        const float *to = a->table + a->neighbors[row] * columns;
        float *direction = a->directions + row * columns;
        vector sums = spread(0);
        float square = 0;
        long i = 0;
        for (; i + LANES <= columns; i += LANES) {
            vector difference = load(to + i) - load(from + i);
            sums = multiply_add(difference, difference, sums);
            store(direction + i, difference);
        }
        for (; i < columns; i++) {
            direction[i] = to[i] - from[i];
            square += direction[i] * direction[i];
        }
        for (int lane = 0; lane < LANES; lane++)
            square += sums[lane];
        float length = sqrtf(a->epsilon + square);
        for (i = 0; i + LANES <= columns; i += LANES)
            store(direction + i, load(direction + i) / spread(length));
        for (; i < columns; i++)
            direction[i] /= length;
    }
}

static void NAME(directions)(struct directions *arguments, int threads)
{
    run_in_threads(directions_task, arguments, threads);
}
