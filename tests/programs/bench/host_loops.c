/* Loops of the host that wait for memory, in nanoseconds of processor time an element (the best of
 * some passes), as JSON: `ordinary` over memory of malloc, `idle` over managed memory that nothing
 * uses, `busy` over managed memory while work is pending, `beside` over memory of malloc meanwhile.
 * Without the argument `cuda` only the first. docs/measurements/costs.md says how it is compiled. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N (1L << 24)
#define PASSES 5

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static void triad(float *a, const float *b, const float *c, float s, long n) {
    for (long i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

__attribute__((noinline)) static long sum(const int *a, long n) {
    long total = 0;
    for (long i = 0; i < n; i++) total += a[i];
    return total;
}

static volatile long sink;

static void measure(const char *name, void *(*get)(size_t)) {
    float *a = get(N * 4), *b = get(N * 4), *c = get(N * 4);
    memset(a, 0, N * 4), memset(b, 0, N * 4), memset(c, 0, N * 4);
    double best[2] = {1e18, 1e18};
    for (int pass = 0; pass < PASSES; pass++) {
        double t0 = now();
        triad(a, b, c, 3, N);
        double t1 = now();
        sink = sum((int *)a, N);
        double t2 = now();
        if (t1 - t0 < best[0]) best[0] = t1 - t0;
        if (t2 - t1 < best[1]) best[1] = t2 - t1;
    }
    printf("\"%s triad\": %.3f, \"%s sum\": %.3f", name, best[0] / N, name, best[1] / N);
}

static int (*managed)(uint64_t *, size_t, unsigned), (*pinned)(void **, size_t), (*device)(uint64_t *, size_t),
    (*upload)(uint64_t, const void *, size_t, void *);

static void *get_managed(size_t size) {
    uint64_t at;
    return managed(&at, size, 1) ? exit(3), NULL : (void *)at;
}

int main(int argc, char **argv) {
    printf("{");
    measure("ordinary", malloc);
    if (argc > 1 && !strcmp(argv[1], "cuda")) {
        int (*init)(unsigned), (*retain)(void **, int), (*enter)(void *);
        void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *memory;
        uint64_t there;
        if (!driver) return 3;
        *(void **)&init = dlsym(driver, "cuInit");
        *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
        *(void **)&enter = dlsym(driver, "cuCtxSetCurrent");
        *(void **)&managed = dlsym(driver, "cuMemAllocManaged");
        *(void **)&pinned = dlsym(driver, "cuMemAllocHost_v2");
        *(void **)&device = dlsym(driver, "cuMemAlloc_v2");
        *(void **)&upload = dlsym(driver, "cuMemcpyHtoDAsync_v2");
        if (init(0) || retain(&context, 0) || enter(context) || pinned(&memory, 4096) || device(&there, 4096)) return 3;
        printf(", ");
        measure("idle", get_managed);
        printf(", ");
        /* Nobody waits for this. */
        if (upload(there, memory, 4096, NULL)) return 3;
        measure("busy", get_managed);
        printf(", ");
        measure("beside", malloc);
    }
    printf("}\n");
    return 0;
}
