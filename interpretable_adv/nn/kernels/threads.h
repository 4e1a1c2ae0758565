/* A pool of threads with short spinning, and the denormal mode.
 *
 * run_in_threads(task, arguments, threads) calls task(arguments, thread, threads, barrier) for
 * thread = 0 .. threads-1, thread 0 being the caller, and returns when all are done. Waiting,
 * here and at barriers, spins for some microseconds and then sleeps: where other programs want
 * the processors too, a thread that only waits must not keep its partner from running.
 *
 * Every task runs with denormal numbers flushed to zero; the caller's mode is restored. */
#ifndef THREADS_H
#define THREADS_H

#include <stdatomic.h>

#define MAX_THREADS 64

struct barrier {
    atomic_int arrived;
    atomic_uint round;
};

typedef void (*task_function)(void *arguments, int thread, int threads, struct barrier *barrier);

void run_in_threads(task_function task, void *arguments, int threads);

/* Returns once all threads of the task have called it. */
void wait_for_all(struct barrier *barrier, int threads);

/* The part [*start, *stop) of 0 .. count-1 that belongs to the thread. */
static inline void share(long count, int thread, int threads, long *start, long *stop)
{
    *start = count * thread / threads;
    *stop = count * (thread + 1) / threads;
}

#endif
