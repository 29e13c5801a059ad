// expect: clean
// pair: kernel add / the host's reads after cudaStreamSynchronize
// needs: none
// why: The host touches managed memory only while the device is idle; prefetches, advice, attachment.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

struct Node {
    int value;
    Node *next;
};

__managed__ int counter = 5;

__global__ void add(int *x, int n, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
    if (i == 0) counter += by;
}

__global__ void walk(Node *first, int *sum) {
    int total = 0;
    for (Node *at = first; at; at = at->next) total += at->value, at->value = -at->value;
    *sum = total;
}

int main() {
    const int n = 1 << 16;
    int *x, *sum;
    CHECK(cudaMallocManaged(&x, n * 4));
    CHECK(cudaMallocManaged(&sum, 4));
    for (int i = 0; i < n; i++) x[i] = i;
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    cudaMemLocation here = {}, host = {};
    here.type = cudaMemLocationTypeDevice;
    host.type = cudaMemLocationTypeHost;
    CHECK(cudaMemAdvise(x, n * 4, cudaMemAdviseSetPreferredLocation, here));
    CHECK(cudaMemPrefetchAsync(x, n * 4, here, 0, s));
    add<<<n / 256, 256, 0, s>>>(x, n, 10);
    CHECK(cudaGetLastError());
    CHECK(cudaMemPrefetchAsync(x, n * 4, host, 0, s));
    CHECK(cudaStreamSynchronize(s));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += x[i] != i + 10;
    int counted = counter;

    // A list whose nodes are found through pointers that the host stored.
    Node *nodes;
    CHECK(cudaMallocManaged(&nodes, 100 * sizeof(Node), cudaMemAttachGlobal));
    for (int i = 0; i < 100; i++) nodes[i] = {i, (i + 7) % 100 ? &nodes[(i + 7) % 100] : nullptr};
    walk<<<1, 1, 0, s>>>(nodes, sum);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(s));
    cudaPointerAttributes kind;
    CHECK(cudaPointerGetAttributes(&kind, nodes));
    printf("%d wrong, counter %d, list %d, node 99 now %d, managed %d\n", wrong, counted, *sum, nodes[99].value,
           kind.type == cudaMemoryTypeManaged);
    CHECK(cudaFree(x));
    CHECK(cudaFree(sum));
    CHECK(cudaFree(nodes));
    return 0;
}
