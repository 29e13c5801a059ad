/* Turns of a loop in which two kernels use one buffer on two streams that nothing orders: `touching FROM LEN [TURNS]` lets the second touch
 * LEN bytes from FROM on, the first touches bytes 0 to 99. A third kernel of another module has nothing to do with it. Between the turns
 * it sleeps, so that the analyzer can keep up. */
#include "common.h"

static void touch(CUfunction f, CUstream s, CUdeviceptr p, unsigned from, unsigned len) {
    void *params[] = {&p, &from, &len};
    CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, 0));
}

int main(int argc, char **argv) {
    unsigned from = strtoul(argv[1], 0, 10), len = strtoul(argv[2], 0, 10), turns = argc > 3 ? strtoul(argv[3], 0, 10) : 40;
    CUfunction first = begin("touch_8_4_4"), second, other;
    CUmodule module, apart;
    CUstream a, b;
    CUdeviceptr buffer, elsewhere;
    CHECK(cuModuleLoadData(&module, ".version 7.0\n.target sm_80\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&second, module, "touch_8_4_4_second"));
    CHECK(cuModuleLoadData(&apart, ".version 7.0\n.target sm_80\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&other, apart, "touch_8_4_4_other"));
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuMemAlloc_v2(&buffer, 4096));
    CHECK(cuMemAlloc_v2(&elsewhere, 4096));
    for (unsigned i = 0; i < turns; i++) {
        touch(first, a, buffer, 0, 100);
        touch(other, a, elsewhere, 0, 64);
        touch(second, b, buffer, from, len);
        CHECK(cuCtxSynchronize());
        usleep(20000);
    }
    puts("done");
    return 0;
}
