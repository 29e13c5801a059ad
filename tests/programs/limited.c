/* A little work under limits of the system, for the fake driver and the simulated GPU: what CUDA answers goes to standard output.
 *   limited [COUNT]   COUNT fills more; the exit code is 0 whatever CUDA answers */
#include "common.h"

int main(int argc, char **argv) {
    CUcontext context;
    CUdeviceptr memory = 0;
    int answers = cuInit(0);
    if (!answers) answers = cuDevicePrimaryCtxRetain(&context, 0);
    if (!answers) answers = cuCtxSetCurrent(context);
    if (!answers) answers = cuMemAlloc_v2(&memory, 4096);
    for (long i = argc > 1 ? atol(argv[1]) : 0; !answers && i >= 0; i--) answers = cuMemsetD8Async(memory, 0, 4096, 0);
    if (!answers) answers = cuCtxSynchronize();
    printf("cuda %d\n", answers);
    return 0;
}
