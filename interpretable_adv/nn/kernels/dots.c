/* How far each direction of a word points along the word's vector.
 *
 *     products[i][k] = directions[i][k] · vectors[i]
 *
 * in the sixteen lanes of lanes.h: lane = fma(direction, vector, lane). */

static float dot(const float *a, const float *b, long columns)
{
    struct lanes sums = no_lanes();
    long i = 0;
    for (; i + SUM_LANES <= columns; i += SUM_LANES)
        sums = add_products(sums, load_lanes(a + i), load_lanes(b + i));
    if (i < columns)
        sums = add_products(sums, load_some_lanes(a + i, columns - i, 0),
                            load_some_lanes(b + i, columns - i, 0));
    return total_of_lanes(sums);
}

static void dots_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct dots *a = arguments;
    long row, last;
    share(a->words * a->k, thread, threads, &row, &last);
    for (; row < last; row++)
        a->products[row] = dot(a->directions + row * a->columns,
                               a->vectors + row / a->k * a->columns, a->columns);
}

static void NAME(dots)(struct dots *arguments, int threads)
{
    run_in_threads(dots_task, arguments, threads);
}
