/* Programs that take away or replace what the C library gives: each mode does it before its first CUDA call, then fills the same
 * memory on two streams, without a wait between them or (second argument `ordered`) with one.
 *   overridden plain             nothing of the kind (what is linked with it may define functions of the C library)
 *   overridden clear             clearenv()
 *   overridden null              environ = NULL
 *   overridden other             environ = another list
 *   overridden zero              overwrites every string of the environment
 *   overridden threadless        after its first calls, nobody of its user may start a thread
 * Prints what the last wait answered, and which functions of its own were called by others. */
#define MINI_IMPLEMENTS
#include "common.h"
#include <sys/resource.h>
#include <sys/syscall.h>

#define POINTER(name, arguments) static CUresult(*name) arguments;
MINI_API(POINTER)

/* Names of functions of this program that others called. */
char overridden[4096];

extern char **environ;

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "plain";
    int ordered = count > 2 && !strcmp(arguments[2], "ordered");
    static char *other[] = {(char *)"A=1", 0};
    CUcontext context;
    CUdeviceptr memory;
    CUstream first, second;
    if (!strcmp(mode, "clear")) clearenv();
    if (!strcmp(mode, "null")) environ = 0;
    if (!strcmp(mode, "other")) environ = other;
    if (!strcmp(mode, "zero"))
        for (char **each = environ; *each; each++) memset(*each, 0, strlen(*each));
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define LOAD(name, arguments) *(void **)&name = dlsym(driver, #name);
    MINI_API(LOAD)
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&memory, 4096));
    CHECK(cuStreamCreate(&first, 1));
    CHECK(cuStreamCreate(&second, 1));
    if (!strcmp(mode, "threadless")) {
        struct rlimit none = {0, 0};
        REQUIRE(!setrlimit(RLIMIT_NPROC, &none));
        /* Root may start any number. */
        if (!geteuid()) REQUIRE(!syscall(SYS_setresuid, 65534, 65534, 65534));
    }
    cuMemsetD8Async(memory, 1, 4096, first);
    if (ordered) cuStreamSynchronize(first);
    cuMemsetD8Async(memory, 2, 4096, second);
    printf("answered %d, called:%s\n", cuCtxSynchronize(), overridden);
    return 0;
}
