/* Matrix products, of a or its transpose and b or its transpose.
 *
 *     c[i][j] = 0, or what it holds with accumulate
 *     for k rising: c[i][j] = fma(a[i][k], b[k][j], c[i][j])
 *
 * So neither tiles nor threads nor the other rows and columns change a bit.
 *
 * Tiles of up to PRODUCT_ROWS rows by PANEL columns stay in registers. The columns of b are
 * copied into panels, [panel][k][PANEL], and the rows of a into groups, [group][k][rows of the
 * group], in the order in which the tiles read them: blocks of PRODUCT_DEPTH k, so that a panel
 * stays in the first cache, and of BLOCK_ROWS rows, which stay in the second. Between blocks of
 * k the sums wait in c. Copying is left out where what it copies would be read a few times only.
 * Each thread has a rectangle of c, and copies what it needs. */

#define PRODUCT_VECTORS 2
#define PANEL (PRODUCT_VECTORS * LANES)
#define PRODUCT_DEPTH 512
#define BLOCK_ROWS (PRODUCT_ROWS * 24)
/* With many rows, panels are used often and more of them save copying rows again. With few,
 * they had better stay in the cache. */
#define MANY_ROWS 256
#define MANY_COLUMNS 4096
#define FEW_COLUMNS 256
/* Where a row of memory holds numbers of all groups or panels, so many k at a time are copied. */
#define DEPTH_AT_A_TIME 16
/* Rows are used in place by up to so many columns. */
#define COLUMNS_IN_PLACE 64

typedef float quad __attribute__((vector_size(16)));
typedef float loose_quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t quad_mask __attribute__((vector_size(16)));

INLINE long at_most(long x, long limit) { return x < limit ? x : limit; }

/* Calls function(rows, ...) with the number of rows as a constant, so that its loops unroll. */
#if PRODUCT_ROWS > 6
#define MORE_CONSTANT_ROWS(function, ...) \
    case 7: function(7, __VA_ARGS__); break; \
    case 8: function(8, __VA_ARGS__); break; \
    case 9: function(9, __VA_ARGS__); break; \
    case 10: function(10, __VA_ARGS__); break; \
    case 11: function(11, __VA_ARGS__); break; \
    case 12: function(12, __VA_ARGS__); break;
#else
#define MORE_CONSTANT_ROWS(function, ...)
#endif
#define WITH_PRODUCT_ROWS(row_count, function, ...) \
    switch (row_count) { \
    case 1: function(1, __VA_ARGS__); break; \
    case 2: function(2, __VA_ARGS__); break; \
    case 3: function(3, __VA_ARGS__); break; \
    case 4: function(4, __VA_ARGS__); break; \
    case 5: function(5, __VA_ARGS__); break; \
    case 6: function(6, __VA_ARGS__); break; \
    MORE_CONSTANT_ROWS(function, __VA_ARGS__) \
    }

/* to[k * step + r] = from[r * stride + k] for four rows and four k. */
INLINE void transpose_quads(const float *from, long stride, float *to, long step)
{
    quad a = *(const loose_quad *)from, b = *(const loose_quad *)(from + stride);
    quad c = *(const loose_quad *)(from + 2 * stride), d = *(const loose_quad *)(from + 3 * stride);
    quad ab = __builtin_shuffle(a, b, (quad_mask){0, 4, 1, 5});
    quad cd = __builtin_shuffle(c, d, (quad_mask){0, 4, 1, 5});
    *(loose_quad *)to = __builtin_shuffle(ab, cd, (quad_mask){0, 1, 4, 5});
    *(loose_quad *)(to + step) = __builtin_shuffle(ab, cd, (quad_mask){2, 3, 6, 7});
    ab = __builtin_shuffle(a, b, (quad_mask){2, 6, 3, 7});
    cd = __builtin_shuffle(c, d, (quad_mask){2, 6, 3, 7});
    *(loose_quad *)(to + 2 * step) = __builtin_shuffle(ab, cd, (quad_mask){0, 1, 4, 5});
    *(loose_quad *)(to + 3 * step) = __builtin_shuffle(ab, cd, (quad_mask){2, 3, 6, 7});
}

/* to[k * step + r] = from[r * stride + k] */
INLINE void copy_across(int row_count, const float *from, long stride, float *to, long step,
                        long depth)
{
    long k = 0;
    for (; k + 4 <= depth; k += 4) {
        int r = 0;
        for (; r + 4 <= row_count; r += 4)
            transpose_quads(from + r * stride + k, stride, to + k * step + r, step);
        for (; r < row_count; r++)
            for (int i = 0; i < 4; i++)
                to[(k + i) * step + r] = from[r * stride + k + i];
    }
    for (; k < depth; k++)
        for (int r = 0; r < row_count; r++)
            to[k * step + r] = from[r * stride + k];
}

/* to[k * step + r] = from[k * stride + r] */
INLINE void copy_along(int row_count, const float *from, long stride, float *to, long step,
                       long depth)
{
    for (long k = 0; k < depth; k++)
        memcpy(to + k * step, from + k * stride, row_count * sizeof(float));
}

INLINE void copy_group_of(int row_count, const struct product *a, long row, long k, long depth,
                          float *to)
{
    if (a->transpose_a)
        copy_along(row_count, a->a + k * a->a_stride + row, a->a_stride, to, row_count, depth);
    else
        copy_across(row_count, a->a + row * a->a_stride + k, a->a_stride, to, row_count, depth);
}

/* The group's rows of a, `depth` of them from k on. */
static __attribute__((noinline)) void copy_group(
    int row_count, const struct product *a, long row, long k, long depth, float *to)
{
    WITH_PRODUCT_ROWS(row_count, copy_group_of, a, row, k, depth, to)
}

/* Rows start .. stop-1 of a, in groups, `depth` of them from k on. */
static void copy_groups(const struct product *p, long start, long stop, long k, long depth,
                        float *to)
{
    long rows = stop - start, groups = (rows + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
    long step = p->transpose_a ? at_most(depth, DEPTH_AT_A_TIME) : depth;
    for (long done = 0; done < depth; done += step)
        for (long group = 0; group < groups; group++) {
            long row, end;
            share(rows, group, groups, &row, &end);
            copy_group(end - row, p, start + row, k + done, at_most(depth - done, step),
                       to + row * depth + done * (end - row));
        }
}

/* `width` columns of b, `depth` of them from k on, and zeros up to PANEL. */
static __attribute__((noinline)) void copy_panel(
    const struct product *a, long column, long width, long k, long depth, float *to)
{
    if (width < PANEL)
        memset(to, 0, depth * PANEL * sizeof(float));
    if (a->transpose_b) {
        const float *from = a->b + column * a->b_stride + k;
        if (width == PANEL)
            copy_across(PANEL, from, a->b_stride, to, PANEL, depth);
        else
            copy_across(width, from, a->b_stride, to, PANEL, depth);
    } else {
        const float *from = a->b + k * a->b_stride + column;
        if (width == PANEL)
            copy_along(PANEL, from, a->b_stride, to, PANEL, depth);
        else
            copy_along(width, from, a->b_stride, to, PANEL, depth);
    }
}

/* Columns first .. last-1 of b, in panels, `depth` of them from k on. Those that are read in
 * place are left out. */
static void copy_panels(const struct product *p, int copies_all, long first, long last, long k,
                        long depth, float *to)
{
    long step = p->transpose_b ? depth : at_most(depth, DEPTH_AT_A_TIME);
    if (!copies_all)
        first += (last - first) / PANEL * PANEL;
    for (long done = 0; done < depth; done += step)
        for (long column = first; column < last; column += PANEL)
            copy_panel(p, column, at_most(last - column, PANEL), k + done,
                       at_most(depth - done, step),
                       to + (column - first) * depth + done * PANEL);
}

/* Where the numbers of a tile are: row r of a at a + r * row_step + k * a_step. While it is
 * computed, the memory of the next tile's sums is fetched. */
struct tile {
    const float *a, *b;
    float *c, *next_c;
    long row_step, a_step, b_step, c_step, depth;
    int empty;                 /* whether the sums start at 0 */
};

INLINE void multiply(int row_count, const struct tile *t, long row_step, long a_step, long b_step)
{
    vector sums[PRODUCT_ROWS][PRODUCT_VECTORS];
    const float *a = t->a, *b = t->b;
#pragma GCC unroll 12
    for (int r = 0; r < row_count; r++)
#pragma GCC unroll 2
        for (int v = 0; v < PRODUCT_VECTORS; v++)
            sums[r][v] = t->empty ? spread(0) : load(t->c + r * t->c_step + v * LANES);
#pragma GCC unroll 12
    for (int r = 0; r < row_count; r++) {
        __builtin_prefetch(t->next_c + r * t->c_step, 0, 2);
        __builtin_prefetch(t->next_c + r * t->c_step + PANEL - 1, 0, 2);
    }
#pragma GCC unroll 4
    for (long k = 0; k < t->depth; k++) {
        vector column[PRODUCT_VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < PRODUCT_VECTORS; v++)
            column[v] = load(b + v * LANES);
#pragma GCC unroll 12
        for (int r = 0; r < row_count; r++) {
            vector x = spread(a[r * row_step]);
#pragma GCC unroll 2
            for (int v = 0; v < PRODUCT_VECTORS; v++)
                sums[r][v] = multiply_add(x, column[v], sums[r][v]);
        }
        a += a_step;
        b += b_step;
    }
#pragma GCC unroll 12
    for (int r = 0; r < row_count; r++)
#pragma GCC unroll 2
        for (int v = 0; v < PRODUCT_VECTORS; v++)
            store(t->c + r * t->c_step + v * LANES, sums[r][v]);
}

/* Copied rows and columns have known steps, which saves additions. */
INLINE void multiply_rows(int row_count, const struct tile *t)
{
    if (t->row_step == 1 && t->a_step == row_count && t->b_step == PANEL)
        multiply(row_count, t, 1, row_count, PANEL);
    else if (t->a_step == 1)
        multiply(row_count, t, t->row_step, 1, t->b_step);
    else
        multiply(row_count, t, 1, t->a_step, t->b_step);
}

static __attribute__((noinline)) void multiply_tile_of(int row_count, const struct tile *t)
{
    WITH_PRODUCT_ROWS(row_count, multiply_rows, t)
}

/* A tile of which c has only `width` columns. */
static __attribute__((noinline)) void multiply_narrow_tile(int row_count, struct tile t, long width)
{
    float sums[PRODUCT_ROWS * PANEL] = {0}, *c = t.c;
    long c_step = t.c_step;
    if (!t.empty)
        for (int r = 0; r < row_count; r++)
            memcpy(sums + r * PANEL, c + r * c_step, width * sizeof(float));
    t.c = t.next_c = sums;
    t.c_step = PANEL;
    multiply_tile_of(row_count, &t);
    for (int r = 0; r < row_count; r++)
        memcpy(c + r * c_step, sums + r * PANEL, width * sizeof(float));
}

/* A thread's part of a product, and its share of the workspace. */
struct rectangle {
    long first_row, last_row, first_column, last_column;
    int copies_a, copies_b;
    long block_columns;
    float *groups, *panels;
};

/* Rows start .. stop-1 by columns first .. last-1, for `depth` k from k on. */
static void multiply_block(const struct product *p, const struct rectangle *part, long start,
                           long stop, long first, long last, long k, long depth)
{
    long rows = stop - start, groups = (rows + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
    if (part->copies_a)
        copy_groups(p, start, stop, k, depth, part->groups);
    for (long column = first; column < last; column += PANEL) {
        long width = at_most(last - column, PANEL);
        int in_place = !part->copies_b && width == PANEL;
        for (long group = 0; group < groups; group++) {
            long row, end;
            share(rows, group, groups, &row, &end);
            struct tile tile = {
                .c = p->c + (start + row) * p->c_stride + column, .c_step = p->c_stride,
                .next_c = group + 1 < groups ? p->c + (start + end) * p->c_stride + column
                    : p->c + start * p->c_stride + column + PANEL,
                .depth = depth, .empty = k == 0 && !p->accumulate,
                .b = in_place ? p->b + k * p->b_stride + column
                    : part->panels + (part->copies_b ? column - first : 0) * depth,
                .b_step = in_place ? p->b_stride : PANEL};
            if (part->copies_a) {
                tile.a = part->groups + row * depth;
                tile.row_step = 1;
                tile.a_step = end - row;
            } else {
                tile.row_step = p->transpose_a ? 1 : p->a_stride;
                tile.a_step = p->transpose_a ? p->a_stride : 1;
                tile.a = p->a + (start + row) * tile.row_step + k * tile.a_step;
            }
            if (width == PANEL)
                multiply_tile_of(end - row, &tile);
            else
                multiply_narrow_tile(end - row, tile, width);
        }
    }
}

static void multiply_rectangle(const struct product *p, const struct rectangle *part)
{
    long blocks = (p->depth + PRODUCT_DEPTH - 1) / PRODUCT_DEPTH;
    for (long first = part->first_column; first < part->last_column; first += part->block_columns) {
        long last = at_most(first + part->block_columns, part->last_column);
        for (long block = 0; block < blocks; block++) {
            long k, next_k;
            share(p->depth, block, blocks, &k, &next_k);
            long depth = next_k - k;
            copy_panels(p, part->copies_b, first, last, k, depth, part->panels);
            for (long row = part->first_row; row < part->last_row; row += BLOCK_ROWS)
                multiply_block(p, part, row, at_most(row + BLOCK_ROWS, part->last_row), first,
                               last, k, depth);
        }
    }
}

/* Into how many parts the rows are cut, the columns being cut into threads / parts: so that
 * as little as possible is copied more than once. */
static int parts_of_rows(const struct product *p, int threads)
{
    int best = 1;
    double least = INFINITY;
    for (int parts = 1; parts <= threads; parts++)
        if (threads % parts == 0) {
            double copies = (double)p->columns * parts + (double)p->rows * (threads / parts);
            if (copies < least) {
                least = copies;
                best = parts;
            }
        }
    return best;
}

static struct rectangle rectangle_of(const struct product *p, int thread, int threads)
{
    struct rectangle part;
    int row_parts = parts_of_rows(p, threads), column_parts = threads / row_parts;
    share(p->rows, thread / column_parts, row_parts, &part.first_row, &part.last_row);
    share((p->columns + PANEL - 1) / PANEL, thread % column_parts, column_parts,
          &part.first_column, &part.last_column);
    part.first_column *= PANEL;
    part.last_column = at_most(part.last_column * PANEL, p->columns);
    long rows = part.last_row - part.first_row, columns = part.last_column - part.first_column;
    part.copies_a = columns > COLUMNS_IN_PLACE;
    part.copies_b = p->transpose_b || rows > PRODUCT_ROWS;
    part.block_columns = rows >= MANY_ROWS ? MANY_COLUMNS : FEW_COLUMNS;
    return part;
}

/* Room for one thread's groups and panels. */
static long groups_size(const struct product *p)
{
    return at_most(p->rows, BLOCK_ROWS) * at_most(p->depth, PRODUCT_DEPTH);
}

static long panels_size(const struct product *p)
{
    long columns = (p->columns + PANEL - 1) / PANEL * PANEL;
    return at_most(columns, p->rows >= MANY_ROWS ? MANY_COLUMNS : FEW_COLUMNS)
        * at_most(p->depth, PRODUCT_DEPTH);
}

static int64_t NAME(product_workspace)(const struct product *p, int threads)
{
    return (groups_size(p) + panels_size(p)) * threads + 16;
}

static void product_task(void *arguments, int thread, int threads, struct barrier *barrier)
{
    (void)barrier;
    const struct product *p = arguments;
    struct rectangle part = rectangle_of(p, thread, threads);
    uintptr_t start = ((uintptr_t)p->workspace + 63) / 64 * 64;
    part.panels = (float *)start + thread * (groups_size(p) + panels_size(p));
    part.groups = part.panels + panels_size(p);
    if (p->depth)
        multiply_rectangle(p, &part);
    else if (!p->accumulate)
        for (long row = part.first_row; row < part.last_row; row++)
            for (long column = part.first_column; column < part.last_column; column++)
                p->c[row * p->c_stride + column] = 0;
}

static void NAME(product)(struct product *arguments, int threads)
{
    run_in_threads(product_task, arguments, threads);
}
