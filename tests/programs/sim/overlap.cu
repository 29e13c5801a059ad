// Two kernels of one stream, the second launched with an attribute that lets it overlap the first
// where the device has programmatic dependent launch (from compute capability 9.0 on):
//   overlap attribute|waits|event|event-waits
// The first kernel triggers at once, in code for 9.0 and newer.
// `waits`: the second kernel waits for the first before it reads (code for 9.0 and newer only).
// `event`: the second runs on another stream, behind an event that the first one triggers; it waits
// by itself with `event-waits`.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void fill(int *x, int n) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}

__global__ void twice(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

__global__ void twice_later(const int *x, int *y, int n) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "attribute";
    const int n = 1 << 14;
    int *x, *y;
    cudaStream_t a, b;
    cudaEvent_t triggered;
    CHECK(cudaMalloc(&x, n * sizeof(int)));
    CHECK(cudaMalloc(&y, n * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&triggered, cudaEventDisableTiming));

    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = n / 256;
    config.blockDim = 256;
    config.stream = a;
    config.attrs = &attribute;
    config.numAttrs = 1;
    if (!strncmp(how, "event", 5)) {
        attribute.id = cudaLaunchAttributeProgrammaticEvent;
        attribute.val.programmaticEvent.event = triggered;
        CHECK(cudaLaunchKernelEx(&config, fill, x, n));
        CHECK(cudaStreamWaitEvent(b, triggered, 0));
        if (strcmp(how, "event")) twice_later<<<n / 256, 256, 0, b>>>(x, y, n);
        else twice<<<n / 256, 256, 0, b>>>(x, y, n);
    } else {
        fill<<<n / 256, 256, 0, a>>>(x, n);
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        CHECK(cudaLaunchKernelEx(&config, strcmp(how, "waits") ? twice : twice_later, (const int *)x, y, n));
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    int last;
    CHECK(cudaMemcpy(&last, y + n - 1, sizeof last, cudaMemcpyDeviceToHost));
    printf("%d\n", last);
    return 0;
}
