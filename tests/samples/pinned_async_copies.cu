// expect: clean
// pair: cudaMemcpyAsync device to host on stream down / cudaMemcpyAsync host to device on stream up
// needs: none
// racy: race RAW
// why: The bounce through pinned memory is ordered by an event; with `racy` the second copy reads what the first still writes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 18;
    unsigned *a, *b, *c, *pinned, *mapped, *registered;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMalloc(&c, n * 4));
    CHECK(cudaMallocHost(&pinned, n * 4));
    CHECK(cudaHostAlloc(&mapped, n * 4, cudaHostAllocMapped | cudaHostAllocPortable));
    registered = (unsigned *)aligned_alloc(4096, n * 4);
    CHECK(cudaHostRegister(registered, n * 4, cudaHostRegisterDefault));
    cudaStream_t down, up;
    cudaEvent_t start, bounced, end;
    CHECK(cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&bounced));
    CHECK(cudaEventCreate(&end));
    for (int i = 0; i < n; i++) mapped[i] = i * 2654435761u;

    CHECK(cudaEventRecord(start, down));
    CHECK(cudaMemcpyAsync(a, mapped, n * 4, cudaMemcpyHostToDevice, down));
    CHECK(cudaMemcpyAsync(b, a, n * 4, cudaMemcpyDeviceToDevice, down));
    CHECK(cudaMemcpyAsync(pinned, b, n * 4, cudaMemcpyDeviceToHost, down));
    CHECK(cudaEventRecord(bounced, down));
    if (!racy) CHECK(cudaStreamWaitEvent(up, bounced, 0));
    CHECK(cudaMemcpyAsync(c, pinned, n * 4, cudaMemcpyHostToDevice, up));
    CHECK(cudaMemcpyAsync(registered, c, n * 4, cudaMemcpyDeviceToHost, up));
    CHECK(cudaEventRecord(end, up));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventSynchronize(bounced));

    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, start, end));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += registered[i] != i * 2654435761u;
    unsigned flags;
    CHECK(cudaHostGetFlags(&flags, mapped));
    cudaPointerAttributes kind;
    CHECK(cudaPointerGetAttributes(&kind, registered));
    printf("%d wrong, time %s, mapped %d, registered is host memory %d\n", wrong, racy || ms > 0 ? "passed" : "stood still",
           (flags & cudaHostAllocMapped) != 0, kind.type == cudaMemoryTypeHost);
    CHECK(cudaHostUnregister(registered));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFreeHost(mapped));
    for (unsigned *p : {a, b, c}) CHECK(cudaFree(p));
    free(registered);
    return 0;
}
