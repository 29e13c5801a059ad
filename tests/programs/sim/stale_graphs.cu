// Graphs that are launched after memory of theirs was freed, and their mended twins.
// Usage: stale_graphs CASE; without one it lists the cases: a name, and the confidence of what is to be
// found; of memory that is freed while the graph runs it is a race.
// A launch that touches freed memory may fail, which is the mistake's own matter: it is not looked at.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

static void check(cudaError_t error, int line) {
    if (error != cudaSuccess) printf("line %d: %s\n", line, cudaGetErrorString(error)), exit(1);
}
#define CHECK(call) check((call), __LINE__)

constexpr int N = 1 << 12;
constexpr size_t BYTES = N * sizeof(int);
__global__ void scale(const int *in, int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 2 * in[blockIdx.x * blockDim.x + threadIdx.x]; }
__global__ void guarded(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (out[i] < n) out[i] = in[out[i] & 15];
}
__global__ void ignores(const int *in, int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = in == nullptr; }

static cudaStream_t stream, other;
static int *in, *out;
static cudaGraph_t graph;
static cudaGraphExec_t exec;
static cudaGraphNode_t node;

template <typename F> static void capture(F work) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work();
    CHECK(cudaStreamEndCapture(stream, &graph));
}
template <typename F> static void make(F work) {
    capture(work);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    size_t one = 1;
    CHECK(cudaGraphGetNodes(graph, &node, &one));
}
static void run() {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
}
// The launch in question.
static void last() {
    if (cudaGraphLaunch(exec, stream) == cudaSuccess) (void)cudaStreamSynchronize(stream);
}
static void kernel() { scale<<<N / 256, 256, 0, stream>>>(in, out); }
static cudaKernelNodeParams params(void **arguments) {
    cudaKernelNodeParams p = {};
    p.func = (void *)scale, p.gridDim = dim3(N / 256), p.blockDim = dim3(256), p.kernelParams = arguments;
    return p;
}
static void added() {
    void *arguments[] = {&in, &out};
    cudaKernelNodeParams p = params(arguments);
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p));
}
static void copy(const int *from, int *to) { CHECK(cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, stream)); }
static void clear(int *p) { CHECK(cudaMemsetAsync(p, 0, BYTES, stream)), CHECK(cudaStreamSynchronize(stream)); }
// A copy node between an array, which is made, and memory.
static cudaArray_t array;
static void with_array(bool is_target) {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    CHECK(cudaMallocArray(&array, &format, 64, N / 64));
    cudaMemcpy3DParms p = {};
    cudaPitchedPtr memory = make_cudaPitchedPtr(out, 256, 256, N / 64);
    if (is_target) p.dstArray = array, p.srcPtr = memory;
    else p.srcArray = array, p.dstPtr = memory;
    p.extent = make_cudaExtent(64, N / 64, 1), p.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &p));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
}
// A graph whose node is a graph of its own.
static void nested() {
    capture(kernel);
    cudaGraph_t inner = graph;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, inner));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
}
static void pooled() {
    CHECK(cudaMallocAsync(&in, BYTES, stream)), clear(in);
}

struct Case {
    const char *name, *expect;
    void (*go)();
};
static const Case cases[] = {
    {"kernel", "certain", [] { make(kernel), run(), CHECK(cudaFree(in)), last(); }},
    {"kernel-kept", "none", [] { make(kernel), run(), last(), CHECK(cudaFree(in)); }},
    {"added", "certain", [] { added(), CHECK(cudaGraphInstantiate(&exec, graph, 0)), CHECK(cudaFree(in)), last(); }},
    {"added-kept", "none", [] { added(), CHECK(cudaGraphInstantiate(&exec, graph, 0)), last(); }},
    {"written", "certain", [] { make(kernel), run(), CHECK(cudaFree(out)), last(); }},
    {"by-data", "likely", [] { make([] { guarded<<<N / 256, 256, 0, stream>>>(in, out, N); }), CHECK(cudaFree(in)), last(); }},
    {"unused", "none", [] { make([] { ignores<<<N / 256, 256, 0, stream>>>(in, out); }), CHECK(cudaFree(in)), last(); }},
    {"updated", "none",
     [] {
         int *fresh;
         make(kernel), run(), CHECK(cudaMalloc(&fresh, BYTES)), clear(fresh), CHECK(cudaFree(in));
         void *arguments[] = {&fresh, &out};
         cudaKernelNodeParams p = params(arguments);
         CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &p)), last();
     }},
    {"recaptured", "none",
     [] {
         int *old = in;
         make(kernel), run(), CHECK(cudaMalloc(&in, BYTES)), clear(in), CHECK(cudaFree(old));
         capture(kernel);
         cudaGraphExecUpdateResultInfo info;
         CHECK(cudaGraphExecUpdate(exec, graph, &info)), last();
     }},
    {"same-address-again", "none",
     [] {
         make(kernel), run(), CHECK(cudaFree(in)), CHECK(cudaMalloc(&in, BYTES)), clear(in);
         capture(kernel);
         cudaGraphExecUpdateResultInfo info;
         CHECK(cudaGraphExecUpdate(exec, graph, &info)), last();
     }},
    {"before-instantiation", "certain", [] { capture(kernel), CHECK(cudaFree(in)), CHECK(cudaGraphInstantiate(&exec, graph, 0)), last(); }},
    {"pinned-source", "certain",
     [] {
         int *host;
         CHECK(cudaMallocHost(&host, BYTES)), memset(host, 0, BYTES);
         make([&] { copy(host, out); }), run(), CHECK(cudaFreeHost(host)), last();
     }},
    {"pinned-source-kept", "none",
     [] {
         int *host;
         CHECK(cudaMallocHost(&host, BYTES)), memset(host, 0, BYTES);
         make([&] { copy(host, out); }), run(), last(), CHECK(cudaFreeHost(host));
     }},
    {"unregistered-source", "none",
     [] {
         int *host = (int *)aligned_alloc(4096, BYTES);
         memset(host, 0, BYTES), CHECK(cudaHostRegister(host, BYTES, 0));
         make([&] { copy(host, out); }), run(), CHECK(cudaHostUnregister(host)), last();
     }},
    {"copy-target", "certain", [] { make([] { copy(in, out); }), run(), CHECK(cudaFree(out)), last(); }},
    {"copy-moved", "none",
     [] {
         int *fresh;
         make([] { copy(in, out); }), run(), CHECK(cudaMalloc(&fresh, BYTES)), CHECK(cudaFree(out));
         CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, node, fresh, in, BYTES, cudaMemcpyDeviceToDevice)), last();
     }},
    {"fill", "certain", [] { make([] { CHECK(cudaMemsetAsync(out, 1, BYTES, stream)); }), run(), CHECK(cudaFree(out)), last(); }},
    {"fill-disabled", "none",
     [] {
         make([] { CHECK(cudaMemsetAsync(out, 1, BYTES, stream)); }), run(), CHECK(cudaFree(out));
         CHECK(cudaGraphNodeSetEnabled(exec, node, 0)), last();
     }},
    {"managed", "certain",
     [] {
         CHECK(cudaMallocManaged(&in, BYTES)), clear(in);
         make(kernel), run(), CHECK(cudaFree(in)), last();
     }},
    {"pool", "certain",
     [] {
         pooled(), make(kernel), run(), CHECK(cudaFreeAsync(in, stream)), last();
     }},
    {"pool-kept", "none",
     [] {
         pooled(), make(kernel), run(), last(), CHECK(cudaFreeAsync(in, stream));
     }},
    {"pool-trimmed", "certain",
     [] {
         cudaMemPool_t pool;
         CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
         pooled(), make(kernel), run(), CHECK(cudaFreeAsync(in, stream)), CHECK(cudaStreamSynchronize(stream));
         CHECK(cudaMemPoolTrimTo(pool, 0)), last();
     }},
    {"array-source", "certain", [] { with_array(false), CHECK(cudaFreeArray(array)), last(); }},
    {"array-target", "certain", [] { with_array(true), CHECK(cudaFreeArray(array)), last(); }},
    {"array-kept", "none", [] { with_array(false), run(), last(), CHECK(cudaFreeArray(array)); }},
    {"another-array", "none",
     [] {
         with_array(true);
         cudaArray_t left = array;
         with_array(true), CHECK(cudaFreeArray(left)), last();
     }},
    {"nested", "certain", [] { nested(), CHECK(cudaFree(in)), last(); }},
    {"nested-kept", "none", [] { nested(), run(), last(), CHECK(cudaFree(in)); }},
    {"nested-updated", "none",
     [] {
         int *old = in;
         nested(), CHECK(cudaMalloc(&in, BYTES)), clear(in), capture(kernel);
         CHECK(cudaGraphExecChildGraphNodeSetParams(exec, node, graph)), CHECK(cudaFree(old)), last();
     }},
    {"own-memory", "none",
     [] {
         make([] {
             int *own;
             CHECK(cudaMallocAsync(&own, BYTES, stream)), CHECK(cudaMemsetAsync(own, 0, BYTES, stream));
             scale<<<N / 256, 256, 0, stream>>>(own, out), CHECK(cudaFreeAsync(own, stream));
         });
         run(), run(), last();
     }},
    {"memory-of-another-graph", "certain",
     [] {
         make([] { CHECK(cudaMallocAsync(&in, BYTES, stream)), CHECK(cudaMemsetAsync(in, 0, BYTES, stream)); }), run();
         make(kernel), run(), CHECK(cudaFreeAsync(in, stream)), last();
     }},
    {"memory-of-another-graph-again", "none",
     [] {
         make([] { CHECK(cudaMallocAsync(&in, BYTES, stream)), CHECK(cudaMemsetAsync(in, 0, BYTES, stream)); }), run();
         cudaGraphExec_t first = exec;
         make(kernel), run(), CHECK(cudaFreeAsync(in, stream));
         CHECK(cudaGraphLaunch(first, stream)), last();
     }},
    {"another-graph-is-destroyed", "none",
     [] {
         make(kernel), run(), CHECK(cudaGraphExecDestroy(exec)), CHECK(cudaFree(in)), CHECK(cudaMalloc(&in, BYTES));
         clear(in), make(kernel), last();
     }},
    {"other-memory-is-freed", "none",
     [] {
         int *more;
         CHECK(cudaMalloc(&more, BYTES)), make(kernel), run(), CHECK(cudaFree(more)), last();
     }},
    // While the graph may still run.
    {"freed-while-running", "race", [] { pooled(), make(kernel), CHECK(cudaGraphLaunch(exec, stream)), CHECK(cudaFreeAsync(in, other)); }},
    {"freed-behind-it", "none",
     [] {
         cudaEvent_t over;
         pooled(), make(kernel), CHECK(cudaGraphLaunch(exec, stream));
         CHECK(cudaEventCreateWithFlags(&over, cudaEventDisableTiming)), CHECK(cudaEventRecord(over, stream));
         CHECK(cudaStreamWaitEvent(other, over, 0)), CHECK(cudaFreeAsync(in, other));
     }},
    {"freed-by-a-call-that-waits", "none", [] { make(kernel), CHECK(cudaGraphLaunch(exec, stream)), CHECK(cudaFree(in)); }},
    {"destroyed-while-running", "none",
     [] {
         make(kernel), CHECK(cudaGraphLaunch(exec, stream)), CHECK(cudaGraphExecDestroy(exec)), CHECK(cudaGraphDestroy(graph));
         CHECK(cudaStreamSynchronize(stream));
     }},
};

int main(int argc, char **argv) {
    if (argc < 2) {
        for (const Case &c : cases) printf("%s %s\n", c.name, c.expect);
        return 0;
    }
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&in, BYTES));
    CHECK(cudaMalloc(&out, BYTES));
    CHECK(cudaMemset(in, 0, BYTES));
    CHECK(cudaMemset(out, 0, BYTES));
    CHECK(cudaDeviceSynchronize());
    for (const Case &c : cases)
        if (!strcmp(c.name, argv[1])) {
            c.go();
            puts("done");
        }
    fflush(stdout);
    _Exit(0);
}
