/* The exponentials of each row of scores, and their sum: all of a softmax but the division.
 *
 *     z = z + bias,  peak = max z,  e = exp(z − peak),  total = Σ e
 *
 * The sum is taken in the sixteen lanes of lanes.h. A row with a NaN has NaN for its total. */

/* Adds the bias and returns the row's maximum; without any columns −∞. */
static float add_bias_and_find_peak(float *row, const float *bias, long columns)
{
    vector peaks = spread(-INFINITY);
    long i = 0;
    for (; i + LANES <= columns; i += LANES) {
        vector x = load(row + i);
        if (bias) {
            x += load(bias + i);
            store(row + i, x);
        }
        peaks = larger(x, peaks);
    }
    float peak = -INFINITY;
    for (int lane = 0; lane < LANES; lane++)
        peak = peaks[lane] > peak ? peaks[lane] : peak;
    for (; i < columns; i++) {
        if (bias)
            row[i] += bias[i];
        peak = row[i] > peak ? row[i] : peak;
    }
    return peak + 0.0f;  /* of two zeros the positive one */
}

INLINE struct lanes exponentials(struct lanes x, float peak)
{
    for (int v = 0; v < SUM_VECTORS; v++)
        x.part[v] = vector_exp(x.part[v] - spread(peak));
    return x;
}

/* Turns the row into exponentials and returns their sum. */
static float exponentiate(float *row, float peak, long columns)
{
    struct lanes sums = no_lanes();
    long i = 0;
    for (; i + SUM_LANES <= columns; i += SUM_LANES) {
        struct lanes e = exponentials(load_lanes(row + i), peak);
        store_lanes(row + i, e);
        sums = add_lanes(sums, e);
    }
    if (i < columns) {
        struct lanes e = exponentials(load_some_lanes(row + i, columns - i, 0), peak);
        store_some_lanes(row + i, e, columns - i);
        sums = add_lanes(sums, load_some_lanes(row + i, columns - i, 0));
    }
    return total_of_lanes(sums);
}

static void softmax_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct softmax *a = arguments;
    long row, last;
    share(a->rows, thread, threads, &row, &last);
    for (; row < last; row++) {
        float *scores = a->scores + row * a->columns;
        a->peaks[row] = add_bias_and_find_peak(scores, a->bias, a->columns);
        a->totals[row] = exponentiate(scores, a->peaks[row], a->columns);
    }
}

static void NAME(softmax)(struct softmax *arguments, int threads)
{
    run_in_threads(softmax_task, arguments, threads);
}
