/* Four threads launch through pointers looked up anew each time, while libraries come and go. */
#define MINI_IMPLEMENTS
#include "common.h"
#include <pthread.h>

static const char *library;
static CUfunction function;
static CUcontext context;
#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
MINI_API(POINTER)

static void *storm(void *unused) {
    CHECK(p_cuCtxSetCurrent(context));
    for (int i = 0; i < 200; i++) {
        void *other = dlopen(library, RTLD_NOW);
        REQUIRE(other);
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        CUresult (*launch)(LAUNCH_ARGS) = dlsym(driver, "cuLaunchKernel");
        unsigned a = 1, b = i;
        void *params[] = {&a, &b};
        CHECK(launch(function, 1, 1, 1, 1, 1, 1, 0, 0, params, 0));
        REQUIRE(dlsym(other, "cuMyOwnFunction"));
        dlclose(other);
        dlclose(driver);
    }
    return 0;
}

int main(int argc, char **argv) {
    library = argv[1];
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
#define LOOK(name, arguments) p_##name = dlsym(driver, #name);
    MINI_API(LOOK)
    CUmodule module;
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuModuleLoadData(&module, "image"));
    CHECK(p_cuModuleGetFunction(&function, module, "f_4_4"));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, storm, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    puts("done");
    return 0;
}
