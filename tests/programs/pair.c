/* Two processes, both with the race of racy.c, and one helper without CUDA; the parent waits. */
#include "common.h"
#include <sys/wait.h>

static void race(unsigned bytes) {
    begin("f_4_4");
    CUstream a, b;
    CUdeviceptr x;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuMemAlloc_v2(&x, bytes));
    CHECK(cuMemsetD8Async(x, 1, bytes, a));
    CHECK(cuMemsetD8Async(x, 2, bytes, b));
    CHECK(cuCtxSynchronize());
}

int main(void) {
    pid_t child = fork();
    if (!child) {
        race(1024);
        exit(0);
    }
    race(2048);
    REQUIRE(system("true") == 0);
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    printf("%d %d\n", getpid(), child);
    return 0;
}
