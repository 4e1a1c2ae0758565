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
#define SIZE(kernel) + sizeof(struct kernel)
    return 0 FOR_EACH_KERNEL(SIZE);
}

int64_t kernels_unit_multiple(void) { return selected->unit_multiple; }

/* How many floats of workspace a product needs. */
int64_t kernels_product_workspace(const struct product *a, int threads)
{
    return selected->product_workspace(a, threads);
}

#define DEFINE(kernel) \
    void kernels_##kernel(struct kernel *a, int threads) { selected->kernel(a, threads); }
FOR_EACH_KERNEL(DEFINE)
