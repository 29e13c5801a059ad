/* A library that has nothing to do with CUDA: interposes a function of the C library and passes on with RTLD_NEXT, and has
 * functions whose names only look like the driver's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static int calls;

/* Interposes, and passes on to the next one. */
__attribute__((visibility("default"))) int atoi(const char *text) {
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "atoi");
    calls++;
    return next ? next(text) : -1;
}
int other_calls(void) { return calls; }
/* Where the search for the next one ends up, from here. */
void *other_next(const char *name) { return dlsym(RTLD_NEXT, name); }
int cudnnCreate(void **handle) { *handle = &calls; return 77; }
int cublasCreate_v2(void **handle) { *handle = &calls; return 78; }
int cuMyOwnFunction(void) { return 79; }
