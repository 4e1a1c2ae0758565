/* Sums of rows that belong together: the gradient of an embedding.
 *
 *     sums[s] = rows[starts[s]] + rows[starts[s] + 1] + … + rows[starts[s + 1] − 1]
 *
 * added in this order, from the first on, as a loop over the words of a batch would. `rows`
 * holds addresses, so the rows may lie in several arrays and need not be moved together. */

static void segment_sum_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct segment_sum *a = arguments;
    /* Threads share rows, not segments: a few words make up most of a text. */
    long first, last, columns = a->columns;
    share(a->starts[a->segments], thread, threads, &first, &last);
    long segment = 0;
    while (segment < a->segments && a->starts[segment] < first)
        segment++;
    for (; segment < a->segments && a->starts[segment] < last; segment++) {
        float *sum = a->sums + segment * columns;
        for (int64_t r = a->starts[segment]; r < a->starts[segment + 1]; r++) {
            const float *row = a->rows[r];
            long i = 0;
            if (r == a->starts[segment]) {
                memcpy(sum, row, columns * sizeof(float));
                continue;
            }
            for (; i + LANES <= columns; i += LANES)
                store(sum + i, load(sum + i) + load(row + i));
            for (; i < columns; i++)
                sum[i] += row[i];
        }
    }
}

static void NAME(segment_sum)(struct segment_sum *arguments, int threads)
{
    run_in_threads(segment_sum_task, arguments, threads);
}
