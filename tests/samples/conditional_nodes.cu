// expect: clean
// pair: kernel grow node / kernel finish node
// needs: graph
// racy: race RAW
// why: A loop in a graph grows what the node behind it reads, a switch and an if choose the rest; `racy` leaves the edge behind the loop out.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void grow(unsigned *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 3 + i;
}
__global__ void again(unsigned *left, cudaGraphConditionalHandle loop) {
    *left -= 1;
    cudaGraphSetConditional(loop, *left > 0);
}
__global__ void choose(const unsigned *round, cudaGraphConditionalHandle which, cudaGraphConditionalHandle odd) {
    cudaGraphSetConditional(which, *round % 4);
    cudaGraphSetConditional(odd, *round & 1);
}
__global__ void finish(const unsigned *x, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + 1;
}
__global__ void add(unsigned *out, unsigned by) { out[threadIdx.x] += by; }

static cudaGraphNode_t kernel(cudaGraph_t graph, std::vector<cudaGraphNode_t> deps, void *f, unsigned blocks, unsigned threads,
                              std::vector<void *> args) {
    cudaKernelNodeParams p = {};
    p.func = f, p.gridDim = blocks, p.blockDim = threads, p.kernelParams = args.data();
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, deps.data(), deps.size(), &p));
    return node;
}
static cudaGraphNode_t conditional(cudaGraph_t graph, std::vector<cudaGraphNode_t> deps, cudaGraphConditionalHandle handle,
                                   cudaGraphConditionalNodeType type, unsigned size, cudaGraph_t *bodies) {
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = handle, p.conditional.type = type, p.conditional.size = size;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddNode(&node, graph, deps.data(), nullptr, deps.size(), &p));
    memcpy(bodies, p.conditional.phGraph_out, size * sizeof *bodies);
    return node;
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    int n = 4096, rounds = 6;
    unsigned *x, *out, *left, *round, ten = 10, three = 3;
    CHECK(cudaMalloc(&x, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMalloc(&left, 4));
    CHECK(cudaMalloc(&round, 4));
    CHECK(cudaMemset(x, 0, n * 4));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    cudaGraph_t graph, body, cases[3], then[2];
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle loop, which, odd;
    CHECK(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
    CHECK(cudaGraphConditionalHandleCreate(&which, graph));
    CHECK(cudaGraphConditionalHandleCreate(&odd, graph));
    cudaGraphNode_t repeated = conditional(graph, {}, loop, cudaGraphCondTypeWhile, 1, &body);
    cudaGraphNode_t grown = kernel(body, {}, (void *)grow, n / 256, 256, {&x, &n});
    kernel(body, {grown}, (void *)again, 1, 1, {&left, &loop});
    cudaGraphNode_t done = kernel(graph, racy ? std::vector<cudaGraphNode_t>{} : std::vector<cudaGraphNode_t>{repeated}, (void *)finish, n / 256, 256, {&x, &out, &n});
    cudaGraphNode_t chosen = kernel(graph, {done}, (void *)choose, 1, 1, {&round, &which, &odd});
    cudaGraphNode_t switched = conditional(graph, {chosen}, which, cudaGraphCondTypeSwitch, 3, cases);
    for (unsigned i = 0; i < 3; i++) {
        unsigned by = 100 * (i + 1);
        kernel(cases[i], {}, (void *)add, 1, 256, {&out, &by});
    }
    conditional(graph, {switched}, odd, cudaGraphCondTypeIf, 2, then);
    kernel(then[0], {}, (void *)add, 1, 256, {&out, &ten});
    // The body of the "else" is captured.
    CHECK(cudaStreamBeginCaptureToGraph(stream, then[1], nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
    add<<<1, 256, 0, stream>>>(out, three);
    cudaGraph_t same;
    CHECK(cudaStreamEndCapture(stream, &same));

    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    unsigned want = 0;
    for (unsigned r = 0; r < 5; r++) {
        unsigned loops = rounds + r, got[2];
        CHECK(cudaMemcpyAsync(left, &loops, 4, cudaMemcpyHostToDevice, stream));
        CHECK(cudaMemcpyAsync(round, &r, 4, cudaMemcpyHostToDevice, stream));
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaMemcpyAsync(got, out + 255, 8, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (unsigned i = 0; i < loops; i++) want = want * 3 + 255;
        unsigned more = (r % 4 < 3 ? 100 * (r % 4 + 1) : 0) + (r & 1 ? ten : three);
        printf("round %u: %u, %s\n", r, got[0], got[0] == want + 1 + more ? "right" : "wrong");
    }
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    for (unsigned *p : {x, out, left, round}) CHECK(cudaFree(p));
    return 0;
}
