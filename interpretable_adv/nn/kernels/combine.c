/* The weighted sum of each word's directions.
 *
 *     sums[i] = 0;  for k rising: sums[i] = fma(weights[i][k], directions[i][k], sums[i])
 */

static void combine_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct combine *a = arguments;
    long word, last, columns = a->columns;
    share(a->words, thread, threads, &word, &last);
    for (; word < last; word++)
        for (long i = 0; i < columns; i += LANES) {
            long count = columns - i < LANES ? columns - i : LANES;
            const float *direction = a->directions + word * a->k * columns + i;
            vector sum = spread(0);
            for (long k = 0; k < a->k; k++, direction += columns) {
                vector x = count == LANES ? load(direction) : load_part(direction, count);
                sum = multiply_add(spread(a->weights[word * a->k + k]), x, sum);
            }
            store_part(a->sums + word * columns + i, sum, count);
        }
}

static void NAME(combine)(struct combine *arguments, int threads)
{
    run_in_threads(combine_task, arguments, threads);
}
