/* A library to be opened with RTLD_DEEPBIND: its own look-ups find the C library's dlsym first. */
#define MINI_IMPLEMENTS
#include "common.h"

int work(const char *name) {
    void *driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(driver);
#define LOOK(name, arguments)                                                                                         \
    CUresult(*p_##name) arguments = dlsym(driver, #name);                                                             \
    REQUIRE(p_##name);                                                                                                \
    (void)p_##name;
    MINI_API(LOOK)
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuModuleLoadData(&module, "image"));
    CHECK(p_cuModuleGetFunction(&function, module, "f_4_4"));
    unsigned a = 1, b = 2;
    void *params[] = {&a, &b};
    return p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, params, 0);
}
