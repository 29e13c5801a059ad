// Chains of kernels that wait for those in front (`griddepcontrol.wait`) and let those behind begin
// (`griddepcontrol.launch_dependents`):
//   superfluous_waits stream|capture|built|completion
// on a stream, captured, as graphs that are built by hand with programmatic edges, or with edges behind the start of
// all blocks. What gains nothing is named in the line of its kernel, first that of the first three, then that of the
// last; all else is needed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

constexpr int N = 1024, THREADS = 256;

#define WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#define TRIGGER() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define AT (blockIdx.x * blockDim.x + threadIdx.x)

__global__ void fill(int *to, const int *) { TRIGGER(); to[AT] = AT; }  // superfluous: -, trigger-without-dependent
__global__ void reads_it(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }
__global__ void reads_other(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }  // superfluous: wait-orders-nothing, wait-orders-nothing
__global__ void sometimes(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }
__global__ void relied_on(int *to, const int *from) { WAIT(); TRIGGER(); to[AT] = from[AT]; }
__global__ void relies(int *to, const int *from) { to[AT] = from[AT]; }
__global__ void overwrites(int *to, const int *) { WAIT(); to[AT] = 7; }
__global__ void quiet(int *to, const int *) { to[AT] = AT; }
__global__ void behind_quiet(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }  // superfluous: wait-orders-nothing, -
__global__ void unused(int *to, const int *) { TRIGGER(); to[AT] = AT; }  // superfluous: trigger-without-dependent, trigger-without-dependent
__global__ void late(int *to, const int *) { to[AT] = AT; __syncthreads(); TRIGGER(); }  // superfluous: trigger-at-the-end, trigger-without-dependent
__global__ void by_warps(int *to, const int *) { to[AT] = AT; if (threadIdx.x == 0) TRIGGER(); }  // superfluous: -, trigger-without-dependent

typedef void (*Kernel)(int *, const int *);
static cudaStream_t stream;

enum Mode { STREAM, CAPTURE, BUILT, COMPLETION };
static Mode mode;
static cudaGraph_t graph;
static cudaGraphNode_t last;

static void begin() {
    last = nullptr;
    if (mode == CAPTURE) CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (mode >= BUILT) CHECK(cudaGraphCreate(&graph, 0));
}

static void end() {
    if (mode == STREAM) return;
    if (mode == CAPTURE) CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
}

// A node behind the last one.
static void add(Kernel kernel, bool overlaps, int *to, const int *from) {
    void *args[] = {&to, &from};
    cudaKernelNodeParams params = {};
    params.func = (void *)kernel, params.gridDim = N / THREADS, params.blockDim = THREADS, params.kernelParams = args;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    cudaGraphEdgeData edge = {};
    if (overlaps) {
        edge.from_port = mode == BUILT ? cudaGraphKernelNodePortProgrammatic : cudaGraphKernelNodePortLaunchCompletion;
        edge.type = cudaGraphDependencyTypeProgrammatic;
    }
#if CUDART_VERSION >= 13000
    if (last) CHECK(cudaGraphAddDependencies(graph, &last, &node, &edge, 1));
#else
    if (last) CHECK(cudaGraphAddDependencies_v2(graph, &last, &node, &edge, 1));
#endif
    last = node;
}

static void launch(Kernel kernel, bool overlaps, int *to, const int *from) {
    if (mode >= BUILT) return add(kernel, overlaps, to, from);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = N / THREADS, config.blockDim = THREADS, config.stream = stream;
    config.attrs = &attribute, config.numAttrs = overlaps;
    CHECK(cudaLaunchKernelEx(&config, kernel, to, from));
}

int main(int argc, char **argv) {
    for (const char *name : {"stream", "capture", "built", "completion"}) {
        if (argc < 2 || !strcmp(argv[1], name)) break;
        mode = (Mode)(mode + 1);
    }
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *x, *y, *z, *w;
    for (int **p : {&x, &y, &z, &w}) {
        CHECK(cudaMalloc(p, N * sizeof(int)));
        CHECK(cudaMemset(*p, 0, N * sizeof(int)));
    }
    CHECK(cudaDeviceSynchronize());
    begin(), launch(fill, false, x, nullptr), launch(reads_it, true, y, x), end();
    begin(), launch(fill, false, x, nullptr), launch(reads_other, true, y, z), end();
    begin(), launch(fill, false, x, nullptr), launch(sometimes, true, y, z), end();
    begin(), launch(fill, false, x, nullptr), launch(sometimes, true, y, x), end();
    // (Where the start of the blocks counts, that of `relied_on` says nothing of `fill`.)
    if (mode != COMPLETION) begin(), launch(fill, false, x, nullptr), launch(relied_on, true, y, z), launch(relies, true, w, x), end();
    begin(), launch(fill, false, x, nullptr), launch(overwrites, true, x, nullptr), end();
    begin(), launch(quiet, false, x, nullptr), launch(behind_quiet, true, y, x), end();
    begin(), launch(unused, false, x, nullptr), launch(quiet, false, y, nullptr), end();
    begin(), launch(late, false, x, nullptr), launch(reads_it, true, y, x), end();
    begin(), launch(by_warps, false, x, nullptr), launch(reads_it, true, y, x), end();
    CHECK(cudaDeviceSynchronize());
    return 0;
}
