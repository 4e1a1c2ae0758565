/* The kernels' arguments, and the table of functions that each processor variant fills. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>

/* A packed batch: time step t owns the rows offsets[t] .. offsets[t+1]-1, and row r of a step
 * belongs to the same review at every step. `units` is a multiple of unit_multiple. */
struct lstm_forward {
    const float *weights[4];   /* recurrent weights of i, f, o, c: each (units, units) */
    float *packed;             /* 4 * units * units floats of scratch space */
    const float *bias;         /* (4 * units), halved for i, f, o, as the projections are */
    float *gates;              /* (rows, 4 * units): projected inputs in, activations out */
    float *cells, *tanh_cells, *hidden;  /* (rows, units), out */
    const float *h0, *c0;      /* (reviews, units) */
    const int64_t *offsets;    /* (steps + 1) */
    int64_t steps, units;
};

struct lstm_backward {
    const float *weights[4];
    float *packed;
    const float *gates, *cells, *tanh_cells, *c0;
    const float *grad_hidden;  /* (rows, units) or NULL */
    float *grad_gates;         /* (rows, 4 * units), out: before the activation */
    float *grad_h, *grad_c;    /* (reviews, units): of the final states in, the initial out */
    const int64_t *offsets;
    int64_t steps, units;
};

struct adam {
    float *parameter, *m, *v;  /* (rows, columns) */
    const float *gradient;     /* (rows, columns), or (touched, columns) with row_ids */
    const int64_t *row_ids;    /* (touched), ascending; NULL: the gradient has all rows */
    uint8_t *active;           /* (rows): 0 where m and v are all zero; with row_ids only */
    int64_t rows, columns, touched;
    float one_minus_beta1, one_minus_beta2, alpha, epsilon, eta;
};

struct square_sum {
    const float *values;
    double *block_sums;        /* one for each SQUARE_SUM_BLOCK values begun */
    int64_t count;
};
#define SQUARE_SUM_BLOCK 4096

struct segment_sum {
    const float *const *rows;  /* addresses of rows of `columns` floats, grouped by segment */
    const int64_t *starts;     /* (segments + 1), into rows */
    float *sums;               /* (segments, columns), out */
    int64_t segments, columns;
};

struct top_k {
    const float *scores;       /* (queries, columns), row stride `stride` floats */
    float *best;               /* (queries, k), descending */
    int32_t *ids;              /* (queries, k) */
    const int32_t *query_ids;  /* (queries), the id that a query must not find: itself */
    int64_t queries, columns, stride, first_id, k;
};

struct directions {
    const float *table;        /* (any, columns) */
    const int64_t *ids;        /* (words) */
    const int64_t *neighbors;  /* (words, k) */
    float *directions;         /* (words, k, columns), out */
    int64_t words, k, columns;
    float epsilon;
};

struct dropout {
    uint32_t *state;           /* the 624 words of MT19937, in and out */
    float *mask;               /* (count), out */
    int64_t position;          /* of the next word in state, 624: none is left; in and out */
    int64_t count, threshold;
    float scale;
};

struct kernels {
    const char *name;
    int64_t unit_multiple;
    void (*lstm_forward)(struct lstm_forward *, int threads);
    void (*lstm_backward)(struct lstm_backward *, int threads);
    void (*adam)(struct adam *, int threads);
    void (*square_sum)(struct square_sum *, int threads);
    void (*segment_sum)(struct segment_sum *, int threads);
    void (*top_k)(struct top_k *, int threads);
    void (*directions)(struct directions *, int threads);
    void (*dropout)(struct dropout *);
};

#endif
