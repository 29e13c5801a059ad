/* What the programs of the process tests share: a context, and calls that must succeed. */
#ifndef COMMON_H
#define COMMON_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cuda_mini.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int r_ = (call);                                                                                              \
        if (r_) {                                                                                                     \
            fprintf(stderr, "%s:%d: %s answered %d\n", __FILE__, __LINE__, #call, r_);                                \
            _exit(99);                                                                                                \
        }                                                                                                             \
    } while (0)
#define REQUIRE(what)                                                                                                 \
    do {                                                                                                              \
        if (!(what)) {                                                                                                \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #what, errno);                      \
            _exit(98);                                                                                                \
        }                                                                                                             \
    } while (0)

#ifndef MINI_IMPLEMENTS
/* Direct links to the driver: the simplest door. */
static inline void attach(void) {
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
}

static inline CUfunction begin(const char *kernel) {
    CUmodule module;
    CUfunction function;
    attach();
    CHECK(cuModuleLoadData(&module, ".version 7.0\n.target sm_80\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&function, module, kernel));
    return function;
}

/* Launches a kernel that takes two 4-byte words. */
static inline void launch2(CUfunction f, CUstream s, unsigned a, unsigned b) {
    void *params[] = {&a, &b};
    CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, 0));
}
#endif
#endif
