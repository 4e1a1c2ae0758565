/* The k best scores of each query, kept while blocks of scores stream by.
 *
 * best[q] and ids[q] hold the k best so far, best first; of equal scores the lower id comes
 * first. Blocks must come in ascending order of ids: then a score has to be greater than the
 * k-th best to enter, and goes behind its equals. Most vectors of scores hold nothing that
 * passes, which one comparison tells. */

INLINE int any_greater(vector a, vector b)
{
#if LANES == 16 && defined(__AVX512F__)
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
#elif LANES == 8 && defined(__AVX2__)
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
#else
    int any = 0;
    for (int lane = 0; lane < LANES; lane++)
        any |= a[lane] > b[lane];
    return any;
#endif
}

static void insert(float *best, int32_t *ids, long k, float score, int32_t id)
{
    long place = k - 1;
    for (; place > 0 && best[place - 1] < score; place--) {
        best[place] = best[place - 1];
        ids[place] = ids[place - 1];
    }
    best[place] = score;
    ids[place] = id;
}

static void top_k_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct top_k *a = arguments;
    long query, last, k = a->k, columns = a->columns;
    share(a->queries, thread, threads, &query, &last);
    for (; query < last; query++) {
        const float *scores = a->scores + query * a->stride;
        float *best = a->best + query * k;
        int32_t *ids = a->ids + query * k;
        int64_t own = a->query_ids[query];
        for (long j = 0; j < columns; j += 4 * LANES) {
            long stop = j + 4 * LANES;
            if (stop <= columns) {
                vector worst = spread(best[k - 1]);
                vector high = larger(larger(load(scores + j), load(scores + j + LANES)),
                                     larger(load(scores + j + 2 * LANES),
                                            load(scores + j + 3 * LANES)));
                if (!any_greater(high, worst))
                    continue;
            } else {
                stop = columns;
            }
            for (long i = j; i < stop; i++)
                if (scores[i] > best[k - 1] && a->first_id + i != own)
                    insert(best, ids, k, scores[i], (int32_t)(a->first_id + i));
        }
    }
}

static void NAME(top_k)(struct top_k *arguments, int threads)
{
    run_in_threads(top_k_task, arguments, threads);
}
