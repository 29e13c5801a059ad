// A scatter to some elements of a table and a gather of others on two streams, the same places in each turn. With `graph` as a second word
// also a graph with the scatter in it, made before anything is patched, whose results must stay right.  Usage: confirm_gather race|clean [graph]
#include "confirm.h"
#include <vector>

__global__ void scatter(int *table, const int *index, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[index[i]] = value + i;
}

__global__ void gather(const int *table, const int *index, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[index[i]];
}

int main(int argc, char **argv) {
    const bool race = argc > 1 && !strcmp(argv[1], "race");
    const bool graphs = argc > 2;
    const int n = 8192, half = n / 2;
    int *table, *out, *index, *kept;
    CHECK(cudaMalloc(&table, n * sizeof(int)));
    CHECK(cudaMalloc(&kept, n * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    CHECK(cudaMalloc(&index, n * sizeof(int)));
    CHECK(cudaMemset(table, 0, n * sizeof(int)));
    std::vector<int> host(n), got(n);
    for (int i = 0; i < half; i++) host[i] = 2 * i, host[half + i] = 2 * (i * 37 % half) + 1;
    if (race) host[half + 99] = 6;
    CHECK(cudaMemcpy(index, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    Pair s;
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    cudaGraph_t graph;
    cudaGraphExec_t exec = nullptr;
    if (graphs) {
        CHECK(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
        scatter<<<half / 256, 256, 0, other>>>(kept, index, half, 1000);
        CHECK(cudaStreamEndCapture(other, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
    }
    CHECK(cudaDeviceSynchronize());
    turns([&](int i) {
        CHECK(cudaMemsetAsync(kept, 0, n * sizeof(int), other));
        if (exec) CHECK(cudaGraphLaunch(exec, other));
        scatter<<<half / 256, 256, 0, s.a>>>(table, index, half, i);
        gather<<<half / 256, 256, 0, s.b>>>(table, index + half, out, half);
    });
    CHECK(cudaMemcpy(got.data(), kept, n * sizeof(int), cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < half; i++) right &= got[2 * i] == (graphs ? 1000 + i : 0) && got[2 * i + 1] == 0;
    CHECK(cudaMemcpy(got.data(), table, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < half; i++) right &= got[2 * i] == 11 + i;
    puts(right ? "right" : "WRONG");
    return !right;
}
