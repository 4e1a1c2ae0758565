/* The functions that Python calls. They use the best variant that the processor runs, or
 * the one that kernels_select names. */
#include "kernels.h"

#include <stddef.h>
#include <string.h>

extern const struct kernels plain_kernels, avx2_kernels, avx512_kernels;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HAS_X86_VARIANTS 1
#endif

static const struct kernels *supported(const char *name)
{
#ifdef HAS_X86_VARIANTS
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx512 && (!name || !strcmp(name, "avx512")))
        return &avx512_kernels;
    if (avx2 && (!name || !strcmp(name, "avx2")))
        return &avx2_kernels;
#endif
    if (!name || !strcmp(name, "plain"))
        return &plain_kernels;
    return NULL;
}

static const struct kernels *selected;

/* Selects a variant by name, the best one for NULL. Returns its name, or NULL (and changes
 * nothing) where the processor does not have it. */
const char *kernels_select(const char *name)
{
    const struct kernels *found = supported(name);
    if (!found)
        return NULL;
    selected = found;
    return found->name;
}

/* Python compares this with its own sizes, and does without an outdated library. */
int64_t kernels_argument_bytes(void)
{
    return sizeof(struct lstm_forward) + sizeof(struct lstm_backward) + sizeof(struct adam)
        + sizeof(struct square_sum) + sizeof(struct segment_sum) + sizeof(struct top_k)
        + sizeof(struct directions) + sizeof(struct dropout);
}

int64_t kernels_unit_multiple(void) { return selected->unit_multiple; }

void kernels_lstm_forward(struct lstm_forward *a, int threads)
{
    selected->lstm_forward(a, threads);
}

void kernels_lstm_backward(struct lstm_backward *a, int threads)
{
    selected->lstm_backward(a, threads);
}

void kernels_adam(struct adam *a, int threads) { selected->adam(a, threads); }

void kernels_square_sum(struct square_sum *a, int threads) { selected->square_sum(a, threads); }

void kernels_segment_sum(struct segment_sum *a, int threads)
{
    selected->segment_sum(a, threads);
}

void kernels_top_k(struct top_k *a, int threads) { selected->top_k(a, threads); }

void kernels_directions(struct directions *a, int threads) { selected->directions(a, threads); }

void kernels_dropout(struct dropout *a) { selected->dropout(a); }
