/* See landing.h. Uses the driver API only: needs no toolkit, and works on the simulated GPU. */
#include "landing.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fake/cuda_mini.h"
#define DECLARE(name, args) CUresult name args;
MINI_API(DECLARE)

#define CHECK(call) do { CUresult r_ = (call); if (r_) { fprintf(stderr, "line %d: error %d\n", __LINE__, r_); exit(1); } } while (0)

static char *landing;
static CUdeviceptr device;
static CUstream stream;

char *landing_open(void) {
    CUcontext context;
    CUdevice gpu;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&gpu, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, gpu));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemHostAlloc((void **)&landing, LANDING_BYTES, 0));
    CHECK(cuMemAlloc_v2(&device, LANDING_BYTES));
    CHECK(cuStreamCreate(&stream, 1));
    memset(landing, 7, LANDING_BYTES);
    CHECK(cuMemcpyHtoD_v2(device, landing, LANDING_BYTES));
    return landing;
}

void landing_start(void) { CHECK(cuMemcpyDtoHAsync_v2(landing, device, LANDING_BYTES, stream)); }
void landing_finish(void) { CHECK(cuStreamSynchronize(stream)); }
