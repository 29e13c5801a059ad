// expect: clean
// pair: kernel step on stream a / kernel step on stream b
// needs: none
// racy: race RAW
// why: Host functions between kernels, streams of several priorities; b waits for a. With `racy` it does not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void step(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 2 + 1;
}

static char order[32];
static int length;
static void say(void *letter) { order[length++] = *(const char *)letter; }
static void CUDART_CB called(cudaStream_t, cudaError_t status, void *letter) {
    order[length++] = status == cudaSuccess ? *(const char *)letter : '!';
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 14;
    static char letters[] = "ABCDEF";
    int least, greatest, *x, *y, *z, *host;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, greatest));
    int priority;
    unsigned flags;
    CHECK(cudaStreamGetPriority(b, &priority));
    CHECK(cudaStreamGetFlags(b, &flags));
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventBlockingSync | cudaEventDisableTiming));
    for (int **p : {&x, &y, &z}) CHECK(cudaMalloc(p, n * 4));
    CHECK(cudaMallocHost(&host, n * 4));
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMemcpyAsync(x, host, n * 4, cudaMemcpyHostToDevice, a));
    CHECK(cudaLaunchHostFunc(a, say, letters));
    step<<<n / 256, 256, 0, a>>>(x, y, n);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(done, a));
    if (!racy) CHECK(cudaStreamWaitEvent(b, done, 0));
    step<<<n / 256, 256, 0, b>>>(y, z, n);
    CHECK(cudaGetLastError());
    // Only now: a function that has run tells the host that the kernel before it has ended.
    CHECK(cudaLaunchHostFunc(a, say, letters + 1));
    CHECK(cudaStreamAddCallback(a, called, letters + 2, 0));
    CHECK(cudaEventRecord(done, a));
    CHECK(cudaStreamWaitEvent(b, done, 0));
    CHECK(cudaLaunchHostFunc(b, say, letters + 3));
    CHECK(cudaMemcpyAsync(host, z, n * 4, cudaMemcpyDeviceToHost, b));
    CHECK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += host[i] != 4 * i + 3;
    printf("%s, priority %d, flags %u, %d wrong\n", order, priority == greatest, flags, wrong);
    for (int *p : {x, y, z}) CHECK(cudaFree(p));
    return 0;
}
