/* The same work through each door by which a program can ask for the driver's functions. Linked against nothing of CUDA.
 *   doors dlsym | dlvsym | default | getproc | getproc_v2 | itself | per_thread */
#define MINI_IMPLEMENTS
#include "common.h"

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
MINI_API(POINTER)

static void *driver;
static const char *door;
static int (*getproc)(const char *, void **, int, uint64_t);
static int (*getproc_v2)(const char *, void **, int, uint64_t, int *);

static void *look(const char *name) {
    if (!strcmp(door, "dlvsym")) return dlvsym(driver, name, "FAKE_1");
    if (!strcmp(door, "default")) return dlsym(RTLD_DEFAULT, name);
    if (!strcmp(door, "dlsym")) return dlsym(driver, name);
    /* cuGetProcAddress wants base names. */
    char base[96];
    snprintf(base, sizeof base, "%s", name);
    char *version = strstr(base, "_v2");
    if (version && strcmp(base, "cuGetProcAddress_v2")) *version = 0;
    void *found = 0;
    uint64_t flags = !strcmp(door, "per_thread") ? 2 : 0;
    int status = 5;
    if (!strcmp(door, "getproc")) {
        CHECK(getproc(base, &found, 11080, flags));
    } else {
        CHECK(getproc_v2(base, &found, 12050, flags, &status));
        REQUIRE(status == 0);
    }
    return found;
}

int main(int argc, char **argv) {
    door = argv[1];
    int flags = RTLD_NOW | (!strcmp(door, "default") ? RTLD_GLOBAL : RTLD_LOCAL);
    driver = dlopen("libcuda.so.1", flags);
    REQUIRE(driver);
    getproc = dlsym(driver, "cuGetProcAddress");
    getproc_v2 = dlsym(driver, "cuGetProcAddress_v2");
    REQUIRE(getproc && getproc_v2);
    if (!strcmp(door, "itself")) {
        void *again = 0;
        CHECK(getproc("cuGetProcAddress", &again, 12050, 0));
        getproc_v2 = again;
        again = 0;
        CHECK(getproc_v2("cuGetProcAddress", &again, 12050, 0, 0));
        getproc_v2 = again;
        again = 0;
        CHECK(getproc_v2("cuGetProcAddress", &again, 11080, 0, 0));
        getproc = again;
    }
#define LOOK(name, arguments) p_##name = look(#name);
    MINI_API(LOOK)

    CUcontext context;
    CUmodule module;
    CUlibrary library;
    CUfunction function;
    CUkernel kernel;
    CUstream a, b;
    CUevent event;
    CUdeviceptr x, y;
    char host[256] = "host";
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuModuleLoadData(&module, "image"));
    CHECK(p_cuModuleGetFunction(&function, module, "add_8_8_4"));
    CHECK(p_cuLibraryLoadData(&library, "image", 0, 0, 0, 0, 0, 0));
    CHECK(p_cuLibraryGetKernel(&kernel, library, "scale_8_4"));
    CHECK(p_cuStreamCreate(&a, 1));
    CHECK(p_cuStreamCreate(&b, 1));
    CHECK(p_cuEventCreate(&event, 0));
    CHECK(p_cuMemAlloc_v2(&x, 256));
    CHECK(p_cuMemAlloc_v2(&y, 256));
    CHECK(p_cuMemcpyHtoDAsync_v2(x, host, 256, a));
    unsigned n = 64;
    void *params[] = {&x, &y, &n};
    CHECK(p_cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, a, params, 0));
    CHECK(p_cuEventRecord(event, a));
    CHECK(p_cuStreamWaitEvent(b, event, 0));
    void *params2[] = {&y, &n};
    CHECK(p_cuLaunchKernel(kernel, 2, 1, 1, 32, 1, 1, 0, b, params2, 0));
    CHECK(p_cuMemsetD8Async(x, 0, 256, 0));
    CHECK(p_cuMemcpyDtoHAsync_v2(host, y, 256, b));
    CHECK(p_cuStreamSynchronize(b));
    CHECK(p_cuCtxSynchronize());
    CHECK(p_cuMemFree_v2(x));
    CHECK(p_cuMemFree_v2(y));
    CHECK(p_cuEventDestroy_v2(event));
    CHECK(p_cuStreamDestroy_v2(a));
    puts("done");
    return 0;
}
