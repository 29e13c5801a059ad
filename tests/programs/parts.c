/* Two races, on x and on y, in parts that the program names: by streamsan.h, or (`parts nvtx`) by ranges as NVTX's header makes them. `parts
 * stop` takes the first one out of checking. */
#include "../../include/streamsan.h"
#include "common.h"

#include <dlfcn.h>

/* What NVTX's header-only library does on first use: it loads the injection and lets it replace its functions. */
typedef int (*push_t)(const char *);
typedef int (*pop_t)(void);
static push_t nvtx_push;
static pop_t nvtx_pop;
static void **core[16];
static struct callbacks { size_t size; int (*table)(int, void ****, unsigned *); } callbacks;
static int table(int module, void ****slots, unsigned *size) {
    if (module != 1) return 0;
    *slots = core;
    *size = 16;
    return 1;
}
static const void *export_table(unsigned id) { return id == 1 ? &callbacks : 0; }
static void start_nvtx(void) {
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : 0;
    int (*start)(const void *(*)(unsigned)) = library ? (int (*)(const void *(*)(unsigned)))dlsym(library, "InitializeInjectionNvtx2") : 0;
    callbacks.size = sizeof callbacks;
    callbacks.table = table;
    core[9] = (void **)&nvtx_push;
    core[11] = (void **)&nvtx_pop;
    REQUIRE(start && start(export_table) == 1 && nvtx_push && nvtx_pop);
}

int main(int argc, char **argv) {
    begin("f_4_4");
    int nvtx = argc > 1 && !strcmp(argv[1], "nvtx"), stop = argc > 1 && !strcmp(argv[1], "stop");
    if (nvtx) start_nvtx();
    CUstream a, b;
    CUdeviceptr x, y;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuMemAlloc_v2(&x, 4096));
    CHECK(cuMemAlloc_v2(&y, 100));
    if (nvtx) REQUIRE(nvtx_push("step") == 0 && nvtx_push("forward") == 1);
    else { STREAMSAN_PUSH("step"); STREAMSAN_PUSH("forward"); }
    if (stop) STREAMSAN_STOP();
    CHECK(cuMemsetD8Async(x, 1, 4096, a));
    CHECK(cuMemsetD8Async(x, 2, 4096, b));
    if (stop) STREAMSAN_START();
    if (nvtx) REQUIRE(nvtx_pop() == 1 && nvtx_push("backward") == 1);
    else { STREAMSAN_POP(); STREAMSAN_PUSH("backward"); }
    CHECK(cuMemsetD8Async(y, 1, 100, a));
    CHECK(cuMemsetD8Async(y, 2, 100, b));
    if (nvtx) REQUIRE(nvtx_pop() == 1 && nvtx_pop() == 0);
    else { STREAMSAN_POP(); STREAMSAN_POP(); }
    CHECK(cuCtxSynchronize());
    printf("%s\n", STREAMSAN_ACTIVE() ? "active" : "alone");
    return 0;
}
