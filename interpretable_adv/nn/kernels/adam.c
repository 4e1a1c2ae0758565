/* Adam in one pass.
 *
 *     m = m + (1 − β1) (g − m)
 *     v = v + (1 − β2) (g g − v)
 *     parameter = parameter + (−eta) ((alpha / (√v + epsilon)) m)
 *
 * Operations and their order are those of chainer.optimizers.Adam on NumPy, without fused
 * products, so the numbers are equal to the last bit (but for denormals, which are zero here).
 *
 * With row_ids the gradient has only the touched rows of a matrix; in the others it is zero.
 * They still move by their momentum. Rows never touched (active[row] == 0, that is m = v = 0)
 * are passed over, which changes nothing: their update is zero. */

INLINE void adam_vector(const struct adam *a, size_t place, vector g)
{
    vector m = load(a->m + place), v = load(a->v + place);
    m += spread(a->one_minus_beta1) * (g - m);
    v += spread(a->one_minus_beta2) * (g * g - v);
    vector step = spread(a->alpha) / (square_root(v) + spread(a->epsilon));
    store(a->m + place, m);
    store(a->v + place, v);
    store(a->parameter + place, load(a->parameter + place) + spread(-a->eta) * (step * m));
}

/* `count` values from `place` on; a NULL gradient is zero. */
static void adam_range(const struct adam *a, size_t place, const float *gradient, size_t count)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        adam_vector(a, place + i, gradient ? load(gradient + i) : spread(0));
    for (; i < count; i++) {
        float g = gradient ? gradient[i] : 0.0f;
        float *m = a->m + place + i, *v = a->v + place + i;
        *m += a->one_minus_beta1 * (g - *m);
        *v += a->one_minus_beta2 * (g * g - *v);
        a->parameter[place + i] += -a->eta * (a->alpha / (sqrtf(*v) + a->epsilon) * *m);
    }
}

static void adam_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct adam *a = arguments;
    size_t columns = (size_t)a->columns;
    if (!a->row_ids) {
        long start, stop, count = (long)(a->rows * a->columns);
        share((count + LANES - 1) / LANES, thread, threads, &start, &stop);
        start *= LANES;
        stop = stop * LANES < count ? stop * LANES : count;
        if (start < stop)
            adam_range(a, start, a->gradient + start, stop - start);
        return;
    }
    long row, stop;
    share(a->rows, thread, threads, &row, &stop);
    long next = 0;  /* the first touched row that is not before `row` */
    for (long end = a->touched; next < end;) {
        long middle = next + (end - next) / 2;
        if (a->row_ids[middle] < row)
            next = middle + 1;
        else
            end = middle;
    }
    for (; row < stop; row++) {
        const float *gradient = NULL;
        if (next < a->touched && a->row_ids[next] == row) {
            gradient = a->gradient + columns * next++;
            a->active[row] = 1;
        }
        if (a->active[row])
            adam_range(a, columns * row, gradient, columns);
    }
}

static void NAME(adam)(struct adam *arguments, int threads)
{
    run_in_threads(adam_task, arguments, threads);
}
