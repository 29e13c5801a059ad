// Scatters as nodes of a graph, one kernel many times: `graph branches|stream|update|child race|clean`. Elements that two of them store lie apart,
// by the indices that they load; with `race` they have one in common. `branches`: two nodes that nothing orders; `stream`: a node and a
// launch in another stream; `update`: a node that is given other indices after the first launch; `child`: a node of a child graph and one beside
// it. Prints `right` when the results are.
#include <cstdio>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>
#define CK(x) do { cudaError_t e_ = (x); if (e_) { printf("CUDA %s: %s\n", #x, cudaGetErrorString(e_)); return 1; } } while (0)
constexpr int N = 20000, PARTS = 4;
__global__ void scatter(int *to, const int *at, int n, int value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[at[i]] = value + i;
}
static cudaGraphNode_t add(cudaGraph_t graph, std::vector<cudaGraphNode_t> before, int *to, const int *at, int value) {
    int n = N;
    void *args[] = {&to, &at, &n, &value};
    cudaKernelNodeParams p = {};
    p.func = (void *)scatter, p.gridDim = (N + 255) / 256, p.blockDim = 256, p.kernelParams = args;
    cudaGraphNode_t node;
    if (cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &p)) printf("no node\n");
    return node;
}
int main(int argc, char **argv) {
    const char *what = argv[1];
    const bool race = !strcmp(argv[2], "race");
    // Indices of part k: all numbers that leave k divided by PARTS, in no order; with `race` the parts 1 and 2 share one.
    std::vector<int> at(N * PARTS);
    for (int k = 0; k < PARTS; k++)
        for (int i = 0; i < N; i++) at[k * N + i] = (int)(i * 7919ll % N) * PARTS + k;
    if (race) at[2 * N + 77] = at[N + 99];
    int *table, *places;
    CK(cudaMalloc(&table, sizeof(int) * N * PARTS));
    CK(cudaMalloc(&places, sizeof(int) * N * PARTS));
    CK(cudaMemcpy(places, at.data(), sizeof(int) * N * PARTS, cudaMemcpyHostToDevice));
    cudaStream_t s, other;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    cudaGraph_t graph, inner;
    cudaGraphExec_t exec;
    CK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t clear;
    cudaMemsetParams m = {};
    m.dst = table, m.elementSize = 4, m.width = N * PARTS, m.height = 1;
    // All of the table is cleared first, but where somebody stores into it beside the graph.
    const bool beside = !strcmp(what, "stream");
    CK(cudaMemset(table, 0, sizeof(int) * N * PARTS));
    CK(beside ? cudaGraphAddEmptyNode(&clear, graph, nullptr, 0) : cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &m));
    const auto one = add(graph, {clear}, table, places + N, 1);
    cudaGraphNode_t last = one;
    std::vector<int> parts = {1, 0};
    if (!strcmp(what, "branches")) add(graph, {clear}, table, places + 2 * N, 2), parts.push_back(2);
    if (!strcmp(what, "update")) last = add(graph, {clear}, table, places + 3 * N, 2), parts.push_back(2);
    if (!strcmp(what, "child")) {
        CK(cudaGraphCreate(&inner, 0));
        add(inner, {add(inner, {}, table, places + 3 * N, 3)}, table, places + 2 * N, 2);
        CK(cudaGraphAddChildGraphNode(&last, graph, &clear, 1, inner));
        parts.push_back(2), parts.push_back(3);
    }
    add(graph, {one, last == one ? clear : last}, table, places, 0);
    CK(cudaGraphInstantiate(&exec, graph, 0));
    CK(cudaDeviceSynchronize());
    for (int turn = 0; turn < 4; turn++) {
        if (turn == 1 && !strcmp(what, "update")) {
            int n = N, value = 2;
            const int *from = places + 2 * N;
            void *args[] = {&table, &from, &n, &value};
            cudaKernelNodeParams p = {};
            p.func = (void *)scatter, p.gridDim = (N + 255) / 256, p.blockDim = 256, p.kernelParams = args;
            CK(cudaGraphExecKernelNodeSetParams(exec, last, &p));
        }
        CK(cudaGraphLaunch(exec, s));
        // Two at once every other turn.
        if (turn % 2 == 0) CK(cudaGraphLaunch(exec, s));
        if (beside) {
            scatter<<<(N + 255) / 256, 256, 0, other>>>(table, race ? places + 2 * N : places + 3 * N, N, 3);
            if (!race) parts.push_back(3);
        }
        CK(cudaDeviceSynchronize());
    }
    std::vector<int> have(N * PARTS);
    CK(cudaMemcpy(have.data(), table, sizeof(int) * N * PARTS, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int k : parts)
        for (int i = 0; i < N; i++) right &= race || have[at[k * N + i]] == k + i;
    printf("%s\n", right ? "right" : "wrong");
    return !right;
}
