/* The recurrence of an LSTM layer over a packed batch, forward and backward.
 *
 * Forward, for each step and all its rows, with z the projected inputs found in `gates`:
 *     z = z + b;  for k rising: z = fma(h'_k, U_k, z)
 *     i, f, o = sigmoid(z),  g = tanh(z),  c = fma(f, c', i g),  h = o tanh(c)
 * (for i, f and o with half of z, b and U, and sigmoid_of_double).
 * Backward, from the last step to the first:
 *     dh = dh + gradient of h           dc = fma(dh o, 1 - tanh²(c), dc)
 *     dz_i = (dc g) (i (1 - i))         dz_f = (dc c') (f (1 - f))
 *     dz_o = (dh tanh(c)) (o (1 - o))   dz_g = (dc i) (1 - g²)
 *     dc' = dc f
 *     dh' = 0;  for the gates i, f, o, g, for k rising: dh' = fma(dz_k, U_k, dh')
 * A row's results do not depend on the other rows.
 *
 * Both products run in tiles of up to TILE_ROWS rows by TILE_VECTORS vectors that stay in
 * registers. The weights are laid out once per pass in the order in which the tiles read them:
 *     forward   [block of LANES units][TILE_VECTORS gates at a time][k][gate][lane]
 *     backward  [block of TILE_COLUMNS units][k of all 4 gates][TILE_COLUMNS]
 * A tile of the forward pass holds all gates' sums of the same units, so that the activations
 * follow at once. Each thread owns a range of units; a step needs one barrier, because the next
 * step's product (forward) or this step's (backward) reads what all threads have written.
 * Weights of many units do not fit into a core's cache. Each tile therefore fetches a part of those
 * that follow, so that they are there in time: four groups of rows fetch them all.
 * Units beyond `depth` only fill up vectors; they take no part in the sums. */

#define TILE_ROWS 6
#define TILE_COLUMNS (TILE_VECTORS * LANES)
/* Depth of the backward product that is done at a time: the rows then stay in the cache. */
#define DEPTH 1024

/* sums[r][v] += sum over k of rows[r * stride + k] * columns[k][v]
 * From `next` on a quarter as many weights are fetched meanwhile. */
INLINE void multiply_tile(int row_count, const float *rows, size_t stride, const float *columns,
                          long depth, const float *next, vector sums[TILE_ROWS][TILE_VECTORS])
{
    for (long k = 0; k < depth; k++, columns += TILE_COLUMNS, next += TILE_COLUMNS / 4) {
        __builtin_prefetch(next, 0, 2);
        vector column[TILE_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < TILE_VECTORS; v++)
            column[v] = load(columns + v * LANES);
#pragma GCC unroll 6
        for (int r = 0; r < row_count; r++) {
            vector row = spread(rows[r * stride + k]);
#pragma GCC unroll 4
            for (int v = 0; v < TILE_VECTORS; v++)
                sums[r][v] = multiply_add(row, column[v], sums[r][v]);
        }
    }
}

/* Calls function(rows, ...) with the number of rows as a constant, so that its loops unroll. */
#define WITH_CONSTANT_ROWS(row_count, function, ...) \
    switch (row_count) { \
    case 1: function(1, __VA_ARGS__); break; \
    case 2: function(2, __VA_ARGS__); break; \
    case 3: function(3, __VA_ARGS__); break; \
    case 4: function(4, __VA_ARGS__); break; \
    case 5: function(5, __VA_ARGS__); break; \
    case 6: function(6, __VA_ARGS__); break; \
    }

INLINE void forward_tile(int row_count, const struct lstm_forward *a, long block,
                         const float *next, const float *h, const float *c, long first_row)
{
    size_t units = (size_t)a->units, unit = (size_t)block * LANES;
    float *gates = a->gates + first_row * 4 * units + unit;
    vector z[TILE_ROWS][4];
#pragma GCC unroll 2
    for (int first = 0; first < 4; first += TILE_VECTORS) {
        vector sums[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 6
        for (int r = 0; r < row_count; r++)
#pragma GCC unroll 4
            for (int v = 0; v < TILE_VECTORS; v++)
                sums[r][v] = load(gates + r * 4 * units + (first + v) * units)
                    + load(a->bias + (first + v) * units + unit);
        multiply_tile(row_count, h, units,
                      a->packed + unit * 4 * units + first * units * LANES, a->depth,
                      next + first * units * LANES, sums);
#pragma GCC unroll 6
        for (int r = 0; r < row_count; r++)
#pragma GCC unroll 4
            for (int v = 0; v < TILE_VECTORS; v++)
                z[r][first + v] = sums[r][v];
    }
    for (int r = 0; r < row_count; r++) {
        float *gate = gates + r * 4 * units;
        size_t place = (first_row + r) * units + unit;
        vector i = sigmoid_of_double(z[r][0]), f = sigmoid_of_double(z[r][1]);
        vector o = sigmoid_of_double(z[r][2]), g = vector_tanh(z[r][3]);
        vector cell = multiply_add(f, load(c + r * units + unit), i * g);
        vector tanh_cell = vector_tanh(cell);
        store(gate, i);
        store(gate + units, f);
        store(gate + 2 * units, o);
        store(gate + 3 * units, g);
        store(a->cells + place, cell);
        store(a->tanh_cells + place, tanh_cell);
        store(a->hidden + place, o * tanh_cell);
    }
}

static __attribute__((noinline)) void forward_rows(
    int row_count, const struct lstm_forward *a, long block, const float *next, const float *h,
    const float *c, long first_row)
{
    WITH_CONSTANT_ROWS(row_count, forward_tile, a, block, next, h, c, first_row)
}

static void forward_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    const struct lstm_forward *a = arguments;
    size_t units = (size_t)a->units;
    long first_block, last_block;
    share(a->units / LANES, thread, threads, &first_block, &last_block);

    for (long block = first_block; block < last_block; block++)
        for (int gate = 0; gate < 4; gate++) {
            float scale = gate < 3 ? 0.5f : 1.0f;
            for (int lane = 0; lane < LANES; lane++) {
                const float *from = a->weights[gate] + (block * LANES + lane) * units;
                float *to = a->packed + block * LANES * 4 * units
                    + gate / TILE_VECTORS * units * TILE_COLUMNS
                    + gate % TILE_VECTORS * LANES + lane;
                for (size_t k = 0; k < units; k++)
                    to[k * TILE_COLUMNS] = from[k] * scale;
            }
        }

    const float *h = a->h0, *c = a->c0;
    for (int64_t t = 0; t < a->steps; t++) {
        long start = a->offsets[t], rows = a->offsets[t + 1] - start;
        long groups = (rows + TILE_ROWS - 1) / TILE_ROWS;
        for (long block = first_block; block < last_block; block++) {
            const float *next = a->packed
                + (block + 1 < last_block ? block + 1 : first_block) * LANES * 4 * units;
            for (long group = 0; group < groups; group++) {
                long row, stop;
                share(rows, group, groups, &row, &stop);
                forward_rows(stop - row, a, block,
                             next + group % 4 * (units * TILE_COLUMNS / 4),
                             h + row * units, c + row * units, start + row);
            }
        }
        h = a->hidden + start * units;
        c = a->cells + start * units;
        wait_for_all(barrier, threads);
    }
}

static void NAME(lstm_forward)(struct lstm_forward *arguments, int threads)
{
    run_in_threads(forward_task, arguments, threads);
}

INLINE void backward_tile(int row_count, const float *grad_gates, const float *packed, long depth,
                          const float *next, int first, float *grad_h, size_t units)
{
    vector sums[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 6
    for (int r = 0; r < row_count; r++)
#pragma GCC unroll 4
        for (int v = 0; v < TILE_VECTORS; v++)
            sums[r][v] = first ? spread(0) : load(grad_h + r * units + v * LANES);
    multiply_tile(row_count, grad_gates, 4 * units, packed, depth, next, sums);
#pragma GCC unroll 6
    for (int r = 0; r < row_count; r++)
#pragma GCC unroll 4
        for (int v = 0; v < TILE_VECTORS; v++)
            store(grad_h + r * units + v * LANES, sums[r][v]);
}

static __attribute__((noinline)) void backward_rows(
    int row_count, const float *grad_gates, const float *packed, long depth, const float *next,
    int first, float *grad_h, size_t units)
{
    WITH_CONSTANT_ROWS(row_count, backward_tile, grad_gates, packed, depth, next, first, grad_h,
                       units)
}

/* The gradients of one row's gates before activation, for the units first .. last-1. */
INLINE void backward_gates(const struct lstm_backward *a, const float *previous_cells,
                           size_t row, size_t review, size_t first, size_t last)
{
    size_t units = (size_t)a->units;
    const float *gates = a->gates + row * 4 * units;
    float *grad = a->grad_gates + row * 4 * units;
    vector one = spread(1);
    for (size_t unit = first; unit < last; unit += LANES) {
        size_t place = row * units + unit, state = review * units + unit;
        vector i = load(gates + unit), f = load(gates + units + unit);
        vector o = load(gates + 2 * units + unit), g = load(gates + 3 * units + unit);
        vector tanh_cell = load(a->tanh_cells + place);
        vector dh = load(a->grad_h + state), dc = load(a->grad_c + state);
        if (a->grad_hidden)
            dh += load(a->grad_hidden + place);
        dc = multiply_add(dh * o, one - tanh_cell * tanh_cell, dc);
        store(grad + unit, dc * g * (i * (one - i)));
        store(grad + units + unit, dc * load(previous_cells + state) * (f * (one - f)));
        store(grad + 2 * units + unit, dh * tanh_cell * (o * (one - o)));
        store(grad + 3 * units + unit, dc * i * (one - g * g));
        store(a->grad_c + state, dc * f);
    }
}

/* How many k from k on belong together: up to DEPTH, and none that only fills up a gate. */
static long piece_from(const struct lstm_backward *a, long k)
{
    long end = a->depth == a->units ? 4 * a->units : k / a->units * a->units + a->depth;
    return end - k < DEPTH ? end - k : DEPTH;
}

/* The k that follows on such a piece. */
static long after_piece(const struct lstm_backward *a, long k, long depth)
{
    k += depth;
    return k % a->units == a->depth ? k + a->units - a->depth : k;
}

static void backward_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    const struct lstm_backward *a = arguments;
    size_t units = (size_t)a->units;
    long first_block, last_block, total_depth = 4 * a->units;
    share(a->units / TILE_COLUMNS, thread, threads, &first_block, &last_block);

    for (long block = first_block; block < last_block; block++)
        for (int gate = 0; gate < 4; gate++)
            for (size_t k = 0; k < units; k++)
                memcpy(a->packed + (block * 4 * units + gate * units + k) * TILE_COLUMNS,
                       a->weights[gate] + k * units + block * TILE_COLUMNS,
                       TILE_COLUMNS * sizeof(float));

    for (int64_t t = a->steps - 1; t >= 0; t--) {
        long start = a->offsets[t], rows = a->offsets[t + 1] - start;
        long groups = (rows + TILE_ROWS - 1) / TILE_ROWS;
        const float *previous_cells = t ? a->cells + a->offsets[t - 1] * units : a->c0;
        for (long row = 0; row < rows; row++)
            backward_gates(a, previous_cells, start + row, row,
                           first_block * TILE_COLUMNS, last_block * TILE_COLUMNS);
        wait_for_all(barrier, threads);
        for (long k = 0, depth; k < total_depth; k = after_piece(a, k, depth)) {
            depth = piece_from(a, k);
            for (long block = first_block; block < last_block; block++) {
                long next_k = block + 1 < last_block ? k : k + DEPTH < total_depth ? k + DEPTH : 0;
                const float *next = a->packed + TILE_COLUMNS
                    * ((block + 1 < last_block ? block + 1 : first_block) * total_depth + next_k);
                for (long group = 0; group < groups; group++) {
                    long row, stop;
                    share(rows, group, groups, &row, &stop);
                    backward_rows(stop - row, a->grad_gates + (start + row) * 4 * units + k,
                                  a->packed + (block * total_depth + k) * TILE_COLUMNS, depth,
                                  next + group % 4 * (depth * TILE_COLUMNS / 4), k == 0,
                                  a->grad_h + row * units + block * TILE_COLUMNS, units);
                }
            }
        }
    }
}

static void NAME(lstm_backward)(struct lstm_backward *arguments, int threads)
{
    run_in_threads(backward_task, arguments, threads);
}
