/* The kernels' arguments, and the table of functions that each processor variant fills. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>

/* A packed batch: time step t owns the rows offsets[t] .. offsets[t+1]-1, and row r of a step
 * belongs to the same review at every step. `units` is a multiple of unit_multiple; the first
 * `depth` are the layer's, the others fill up and have no weights. */
struct lstm_forward {
    const float *weights[4];   /* recurrent weights of i, f, o, c: each (units, units) */
    float *packed;             /* 4 * units * units floats of scratch space */
    const float *bias;         /* (4 * units), halved for i, f, o, as the projections are */
    float *gates;              /* (rows, 4 * units): projected inputs in, activations out */
    float *cells, *tanh_cells, *hidden;  /* (rows, units), out */
    const float *h0, *c0;      /* (reviews, units) */
    const int64_t *offsets;    /* (steps + 1) */
    int64_t steps, units, depth;
};

struct lstm_backward {
    const float *weights[4];
    float *packed;
    const float *gates, *cells, *tanh_cells, *c0;
    const float *grad_hidden;  /* (rows, units) or NULL */
    float *grad_gates;         /* (rows, 4 * units), out: before the activation */
    float *grad_h, *grad_c;    /* (reviews, units): of the final states in, the initial out */
    const int64_t *offsets;
    int64_t steps, units, depth;
};

struct adam {
    float *parameter, *m, *v;  /* (rows, columns) */
    const float *gradient;     /* (rows, columns), or (touched, columns) with row_ids */
    const int64_t *row_ids;    /* (touched), ascending; NULL: the gradient has all rows */
    uint8_t *active;           /* (rows): 0 where m and v are all zero; with row_ids only */
    int64_t rows, columns, touched;
    float one_minus_beta1, one_minus_beta2, alpha, epsilon, eta;
};

struct product {
    const float *a;            /* (rows, depth), or (depth, rows) with transpose_a */
    const float *b;            /* (depth, columns), or (columns, depth) with transpose_b */
    float *c;                  /* (rows, columns), out; with accumulate also in */
    float *workspace;          /* as many floats as product_workspace says */
    int64_t rows, columns, depth;
    int64_t a_stride, b_stride, c_stride;  /* floats from a row to the next */
    int64_t transpose_a, transpose_b, accumulate;
};

struct elementwise {
    const float *from;
    float *to;                 /* (count), may be `from` */
    int64_t count;
    int64_t function;          /* 0: exp, 1: log, 2: tanh, 3: sigmoid */
};

struct softmax {
    float *scores;             /* (rows, columns): z in, exp(z + bias - peak) out */
    const float *bias;         /* (columns) or NULL */
    float *peaks, *totals;     /* (rows), out */
    int64_t rows, columns;
};

struct row_sums {
    const float *values;       /* (rows, columns), row stride `stride` floats */
    float *sums;               /* (rows), out */
    int64_t rows, columns, stride;
    int64_t squares;           /* whether squares are summed */
};

struct column_sums {
    const float *values;       /* (rows, columns), row stride `stride` floats */
    float *sums;               /* (columns), out */
    int64_t rows, columns, stride;
};

struct square_sum {
    const float *values;
    double *block_sums;        /* one for each SQUARE_SUM_BLOCK values begun, scratch space */
    int64_t count;
    double total;              /* out */
};
#define SQUARE_SUM_BLOCK 4096

struct segment_sum {
    const float *const *rows;  /* addresses of rows of `columns` floats, grouped by segment */
    const int64_t *starts;     /* (segments + 1), into rows */
    float *sums;               /* (segments, columns), out */
    int64_t segments, columns;
};

struct dots {
    const float *directions;   /* (words, k, columns) */
    const float *vectors;      /* (words, columns) */
    float *products;           /* (words, k), out */
    int64_t words, k, columns;
};

struct combine {
    const float *weights;      /* (words, k) */
    const float *directions;   /* (words, k, columns) */
    float *sums;               /* (words, columns), out */
    int64_t words, k, columns;
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

/* Each kernel is a function void name(struct name *arguments, int threads). */
#define FOR_EACH_KERNEL(DO) \
    DO(lstm_forward) DO(lstm_backward) DO(product) DO(elementwise) DO(softmax) DO(row_sums) \
    DO(column_sums) DO(square_sum) DO(segment_sum) DO(dots) DO(combine) DO(directions) \
    DO(top_k) DO(adam) DO(dropout)

struct kernels {
    const char *name;
    int64_t unit_multiple;
    int64_t (*product_workspace)(const struct product *, int threads);
#define DECLARE(kernel) void (*kernel)(struct kernel *, int threads);
    FOR_EACH_KERNEL(DECLARE)
#undef DECLARE
};

#endif
