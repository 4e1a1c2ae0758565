/* to[i] = f(from[i]) with f one of exp, log, tanh and sigmoid; functions.h defines them. */

INLINE vector apply_function(int64_t function, vector x)
{
    switch (function) {
    case 0: return vector_exp(x);
    case 1: return vector_log(x);
    case 2: return vector_tanh(x);
    default: return sigmoid_of_double(spread(0.5f) * x);
    }
}

static void elementwise_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct elementwise *a = arguments;
    long block, last;
    share((a->count + LANES - 1) / LANES, thread, threads, &block, &last);
    for (; block < last; block++) {
        long i = block * LANES, count = a->count - i < LANES ? a->count - i : LANES;
        store_part(a->to + i, apply_function(a->function, load_part(a->from + i, count)), count);
    }
}

static void NAME(elementwise)(struct elementwise *arguments, int threads)
{
    run_in_threads(elementwise_task, arguments, threads);
}
