/* Prints a digest of each kernel's results on fixed inputs.
 *
 *     bits [variant [threads]]
 *
 * For processors on which the tests themselves do not run: compiled for one of these, together
 * with the kernels, and run on it or under an emulator, it must print what it prints here. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *kernels_select(const char *name);
int64_t kernels_unit_multiple(void);
int64_t kernels_product_workspace(const struct product *, int threads);
#define DECLARE(kernel) void kernels_##kernel(struct kernel *, int threads);
FOR_EACH_KERNEL(DECLARE)

static int threads = 1;
static uint64_t state;

/* Numbers from -scale to scale, of 24 bits; a linear congruential generator draws them. */
static float *numbers(long count, float scale, uint64_t seed)
{
    float *x = malloc((count + 1) * sizeof(float));
    state = seed * 2654435761u + 12345;
    for (long i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)((int64_t)(state >> 39) - (1 << 24)) / (1 << 24) * scale;
    }
    return x;
}

static float *room(long count) { return calloc(count + 1, sizeof(float)); }

/* FNV-1a. */
static uint64_t add(uint64_t digest, const void *bytes, long count)
{
    for (long i = 0; i < count; i++)
        digest = (digest ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return digest;
}
#define START 14695981039346656037u

static void print(const char *name, uint64_t digest)
{
    printf("%s %016llx\n", name, (unsigned long long)digest);
}

static void products(void)
{
    static const int sizes[][3] = {{67, 45, 1030}, {5, 33, 70}, {300, 70, 9}, {1, 1, 1}};
    uint64_t digest = START;
    for (int i = 0; i < 4; i++)
        for (int layout = 0; layout < 4; layout++) {
            long rows = sizes[i][0], columns = sizes[i][1], depth = sizes[i][2];
            int across = layout & 1, transposed = layout >> 1;
            struct product p = {
                numbers(rows * depth, 1, 1), numbers(depth * columns, 1, 2), room(rows * columns),
                NULL, rows, columns, depth, across ? rows : depth, transposed ? depth : columns,
                columns, across, transposed, 0};
            p.workspace = room(kernels_product_workspace(&p, threads));
            kernels_product(&p, threads);
            digest = add(digest, p.c, rows * columns * 4);
        }
    print("product", digest);
}

static void functions_and_sums(void)
{
    static const char *names[] = {"exp", "log", "tanh", "sigmoid"};
    for (int i = 0; i < 4; i++) {
        float *x = numbers(3001, i == 2 ? 5 : 90, 3), *y = room(3001);
        for (int j = 0; i == 1 && j < 3001; j++)
            x[j] = fabsf(x[j]) + 0.001f;
        kernels_elementwise(&(struct elementwise){x, y, 3001, i}, threads);
        print(names[i], add(START, y, 3001 * 4));
    }
    float *scores = numbers(9 * 101, 20, 4), *peaks = room(9), *totals = room(9);
    kernels_softmax(&(struct softmax){scores, numbers(101, 1, 5), peaks, totals, 9, 101}, threads);
    print("softmax", add(add(add(START, scores, 9 * 101 * 4), peaks, 36), totals, 36));
    uint64_t digest = START;
    float *x = numbers(37 * 91, 1, 6), *sums = room(91);
    for (int squares = 0; squares < 2; squares++) {
        kernels_row_sums(&(struct row_sums){x, sums, 37, 90, 91, squares}, threads);
        digest = add(digest, sums, 37 * 4);
    }
    print("row_sums", digest);
    kernels_column_sums(&(struct column_sums){x, sums, 37, 91, 91}, threads);
    print("column_sums", add(START, sums, 91 * 4));
    double blocks[4];
    struct square_sum all = {numbers(9001, 1, 7), blocks, 9001, 0};
    kernels_square_sum(&all, threads);
    print("square_sum", add(START, &all.total, 8));
    const float *rows[30];
    int64_t starts[] = {0, 3, 20, 30};
    for (int i = 0; i < 30; i++)
        rows[i] = x + i * 7 % 37 * 91;
    float *segments = room(3 * 91);
    kernels_segment_sum(&(struct segment_sum){rows, starts, segments, 3, 91}, threads);
    print("segment_sum", add(START, segments, 3 * 91 * 4));
}

static void perturbations(void)
{
    int64_t ids[30], neighbors[150];
    for (int i = 0; i < 150; i++) {
        ids[i % 30] = i % 30;
        neighbors[i] = (i * 7 + 1) % 40;
    }
    float *table = numbers(40 * 37, 1, 8), *u = room(150 * 37), *v = room(30 * 37);
    kernels_directions(&(struct directions){table, ids, neighbors, u, 30, 5, 37, 1e-6f}, threads);
    print("directions", add(START, u, 150 * 37 * 4));
    kernels_dots(&(struct dots){u, table, v, 30, 5, 37}, threads);
    print("dots", add(START, v, 150 * 4));
    kernels_combine(&(struct combine){numbers(150, 1, 9), u, v, 30, 5, 37}, threads);
    print("combine", add(START, v, 30 * 37 * 4));
    float best[15];
    int32_t found[15] = {0}, own[] = {1, 2, 3};
    for (int i = 0; i < 15; i++)
        best[i] = -INFINITY;
    kernels_top_k(&(struct top_k){numbers(300, 1, 10), best, found, own, 3, 100, 100, 0, 5},
                  threads);
    print("top_k", add(add(START, best, 60), found, 60));
}

static void optimiser(void)
{
    float *p = numbers(333, 1, 11), *m = numbers(333, 1, 12), *v = numbers(333, 1, 13);
    for (int i = 0; i < 333; i++)
        v[i] = fabsf(v[i]);
    kernels_adam(&(struct adam){p, m, v, numbers(333, 1, 14), NULL, NULL, 1, 333, 0, 0.1f, 0.001f,
                                0.01f, 1e-8f, 1.0f}, threads);
    print("adam", add(add(add(START, p, 333 * 4), m, 333 * 4), v, 333 * 4));
    uint32_t words[624];
    for (int i = 0; i < 624; i++)
        words[i] = (uint32_t)(i * 2654435761u + 1);
    float *mask = room(1000);
    kernels_dropout(&(struct dropout){words, mask, 624, 1000, (int64_t)1 << 51, 1.25f}, threads);
    print("dropout", add(START, mask, 4000));
}

/* `rows` rows of `groups` times `units` numbers, of which the first `own` of a group are not 0. */
static float *padded(long rows, long groups, long units, long own, float scale, uint64_t seed)
{
    float *x = numbers(rows * groups * own, scale, seed), *result = room(rows * groups * units);
    for (long i = 0; i < rows * groups; i++)
        memcpy(result + i * units, x + i * own, own * sizeof(float));
    return result;
}

static uint64_t add_padded(uint64_t digest, const float *x, long rows, long units, long own)
{
    for (long i = 0; i < rows; i++)
        digest = add(digest, x + i * units, own * sizeof(float));
    return digest;
}

static void lstm(void)
{
    long own = 37, multiple = kernels_unit_multiple();
    long units = (own + multiple - 1) / multiple * multiple;
    int64_t offsets[] = {0, 6, 11, 14};
    float *weights[4];
    for (int gate = 0; gate < 4; gate++)
        weights[gate] = padded(own, 1, units, own, 0.3f, 20 + gate);
    for (int gate = 0; gate < 4; gate++) {  /* rows without weights, too */
        weights[gate] = realloc(weights[gate], units * units * sizeof(float));
        memset(weights[gate] + own * units, 0, (units - own) * units * sizeof(float));
    }
    float *packed = room(4 * units * units), *gates = padded(14, 4, units, own, 3, 24);
    float *cells = room(14 * units), *tanh_cells = room(14 * units), *hidden = room(14 * units);
    float *h0 = padded(6, 1, units, own, 1, 25), *c0 = padded(6, 1, units, own, 1, 26);
    kernels_lstm_forward(&(struct lstm_forward){
        {weights[0], weights[1], weights[2], weights[3]}, packed,
        padded(1, 4, units, own, 1, 27), gates, cells, tanh_cells, hidden, h0, c0, offsets, 3,
        units, own}, threads);
    uint64_t digest = add_padded(START, gates, 14 * 4, units, own);
    digest = add_padded(digest, cells, 14, units, own);
    print("lstm_forward", add_padded(digest, hidden, 14, units, own));
    float *grad_gates = room(14 * 4 * units);
    float *dh = padded(6, 1, units, own, 1, 28), *dc = padded(6, 1, units, own, 1e-37f, 29);
    kernels_lstm_backward(&(struct lstm_backward){
        {weights[0], weights[1], weights[2], weights[3]}, packed, gates, cells, tanh_cells, c0,
        padded(14, 1, units, own, 1, 30), grad_gates, dh, dc, offsets, 3, units, own}, threads);
    digest = add_padded(START, grad_gates, 14 * 4, units, own);
    digest = add_padded(digest, dh, 6, units, own);
    print("lstm_backward", add_padded(digest, dc, 6, units, own));
}

int main(int count, char **arguments)
{
    if (!kernels_select(count > 1 ? arguments[1] : NULL)) {
        puts("not here");
        return 0;
    }
    if (count > 2)
        threads = atoi(arguments[2]);
    products();
    functions_and_sums();
    perturbations();
    optimiser();
    lstm();
    return 0;
}
