/* Three steps that break the rules of --forbid: work on the default stream and on a stream without a name, and a wait of the host in
 * each step. `forbidden kept` is the twin that keeps them; `forbidden nvtx` too, with a name and ranges as NVTX's header makes them. */
#include "../../include/streamsan.h"
#include "common.h"

#include <dlfcn.h>

/* What NVTX's header-only library does on first use: it loads the injection and lets it replace its functions. */
static int (*nvtx_push)(const char *);
static int (*nvtx_pop)(void);
static void (*nvtx_name)(CUstream, const char *);
static void **core[16], **runtime[8];
static struct callbacks { size_t size; int (*table)(int, void ****, unsigned *); } callbacks;
static int table(int module, void ****slots, unsigned *size) {
    if (module != 1 && module != 4) return 0;
    *slots = module == 1 ? core : runtime;
    *size = module == 1 ? 16 : 8;
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
    runtime[3] = (void **)&nvtx_name;
    REQUIRE(start && start(export_table) == 1 && nvtx_push && nvtx_pop && nvtx_name);
}

int main(int argc, char **argv) {
    begin("f_4_4");
    int nvtx = argc > 1 && !strcmp(argv[1], "nvtx"), kept = nvtx || (argc > 1 && !strcmp(argv[1], "kept"));
    if (nvtx) start_nvtx();
    CUstream work;
    CUdeviceptr x, y;
    CHECK(cuStreamCreate(&work, 1));
    if (nvtx) nvtx_name(work, "work");
    else if (kept) STREAMSAN_NAME_STREAM(work, "work");
    CHECK(cuMemAlloc_v2(&x, 4096));
    CHECK(cuMemAlloc_v2(&y, 4096));
    CHECK(cuStreamSynchronize(work));
    for (int step = 0; step < 3; ++step) {
        if (nvtx) nvtx_push("step");
        else STREAMSAN_PUSH("step");
        CHECK(cuMemsetD8Async(x, step, 4096, kept ? work : 0));
        CHECK(cuMemsetD8Async(y, step, 4096, work));
        if (!kept) CHECK(cuStreamSynchronize(work));
        if (nvtx) nvtx_pop();
        else STREAMSAN_POP();
    }
    CHECK(cuCtxSynchronize());
    return 0;
}
