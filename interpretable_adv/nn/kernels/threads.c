#include "threads.h"

#include <pthread.h>
#include <stdint.h>

#define SPINS 1000

static pthread_mutex_t run_mutex = PTHREAD_MUTEX_INITIALIZER;  /* one task at a time */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;      /* guards sleeping, with changed */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static int workers;                 /* started so far; the caller is not counted */
static atomic_uint generation;      /* grows by one with each task */
static atomic_uint finished;        /* workers that are done with the task */
static task_function current_task;
static void *current_arguments;
static int current_threads;
static struct barrier current_barrier;

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static void wait_while_equal(atomic_uint *word, unsigned value)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&mutex);
    while (atomic_load_explicit(word, memory_order_acquire) == value)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void add_one(atomic_uint *word)
{
    atomic_fetch_add_explicit(word, 1, memory_order_acq_rel);
    /* Without sleepers this costs no system call. */
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void wait_for_all(struct barrier *barrier, int threads)
{
    if (threads == 1)
        return;
    unsigned round = atomic_load_explicit(&barrier->round, memory_order_acquire);
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) + 1 == threads) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        add_one(&barrier->round);
    } else {
        wait_while_equal(&barrier->round, round);
    }
}

/* Flush results to zero (bit 15) and read denormals as zero (bit 6). */
static void run_flushing_denormals(int thread)
{
#if defined(__SSE__)
    unsigned mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | 0x8040);
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
    __asm__ __volatile__("msr fpcr, %0" : : "r"(mode | (1u << 24)));
#endif
    current_task(current_arguments, thread, current_threads, &current_barrier);
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr(mode);
#elif defined(__aarch64__)
    __asm__ __volatile__("msr fpcr, %0" : : "r"(mode));
#endif
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument & 0xffff;
    unsigned seen = (unsigned)((uintptr_t)argument >> 16);
    for (;;) {
        wait_while_equal(&generation, seen);
        seen++;
        if (thread < current_threads)
            run_flushing_denormals(thread);
        add_one(&finished);
    }
    return NULL;
}

/* A forked child has none of its parent's threads. */
static void forget_workers(void)
{
    pthread_mutex_init(&run_mutex, NULL);
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
    workers = 0;
    atomic_store(&finished, 0);
}

static void start_workers(int wanted)
{
    static int fork_is_handled;
    if (!fork_is_handled) {
        pthread_atfork(NULL, NULL, forget_workers);
        fork_is_handled = 1;
    }
    while (workers < wanted) {
        pthread_t handle;
        uintptr_t argument = (uintptr_t)(workers + 1)
            | (uintptr_t)atomic_load(&generation) << 16;
        if (pthread_create(&handle, NULL, work, (void *)argument))
            return;
        pthread_detach(handle);
        workers++;
    }
}

void run_in_threads(task_function task, void *arguments, int threads)
{
    pthread_mutex_lock(&run_mutex);
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    start_workers(threads - 1);
    if (threads > workers + 1)
        threads = workers + 1;
    if (threads < 1)
        threads = 1;
    current_task = task;
    current_arguments = arguments;
    current_threads = threads;
    atomic_store(&current_barrier.arrived, 0);
    atomic_store(&finished, 0);
    if (threads > 1)
        add_one(&generation);
    run_flushing_denormals(0);
    if (threads > 1) {
        unsigned done;
        while ((done = atomic_load_explicit(&finished, memory_order_acquire))
               != (unsigned)workers)
            wait_while_equal(&finished, done);
    }
    pthread_mutex_unlock(&run_mutex);
}
