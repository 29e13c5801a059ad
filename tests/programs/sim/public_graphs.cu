// Graphs that outlive memory, as two public projects had them, and their mended twins. Our own programs, from the descriptions alone.
// Usage: public_graphs CASE; without one it lists the cases: a name, and the confidence of each thing that is to be found.
//   arguments...  shapes that are uploaded while a graph is captured, from host vectors and into device buffers that end with the capture
//                 (huggingface/candle#3352)
//   workspace...  a workspace for each stream: a graph that is reset frees what another one, captured on the same stream, still names
//                 (pytorch/pytorch#193402)
//   disposed...   a layer in two graphs, with eager work in between that disposes of the hidden states to save memory: the graph behind it
//                 was captured with their address, or with none (sgl-project/sglang#29463)
// A launch that touches freed memory may fail, which is the mistake's own matter: it is not looked at.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <map>
#include <vector>

static void check(cudaError_t error, int line) {
    if (error != cudaSuccess) printf("line %d: %s\n", line, cudaGetErrorString(error)), exit(1);
}
#define CHECK(call) check((call), __LINE__)

constexpr int N = 1 << 10;
static cudaStream_t stream;
static float *x, *y;

template <typename F> static cudaGraphExec_t captured(F work) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}
static void replay(cudaGraphExec_t exec) {
    if (cudaGraphLaunch(exec, stream) == cudaSuccess) (void)cudaStreamSynchronize(stream);
}

// A copy of a tensor of two dimensions with strides, which the kernel finds in memory.
__global__ void contiguous(const size_t *shape, const float *from, float *to) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < shape[0] * shape[1]) to[i] = from[i];
}

struct Arguments {
    size_t *host, *device;
    Arguments() {
        CHECK(cudaMallocHost(&host, 2 * sizeof(size_t)));
        CHECK(cudaMalloc(&device, 2 * sizeof(size_t)));
        host[0] = 4, host[1] = N / 4;
    }
    void upload() const { CHECK(cudaMemcpyAsync(device, host, 2 * sizeof(size_t), cudaMemcpyHostToDevice, stream)); }
};

static void arguments(bool drops_host, bool drops_device) {
    Arguments shape;
    cudaGraphExec_t exec = captured([&] {
        shape.upload();
        contiguous<<<N / 256, 256, 0, stream>>>(shape.device, x, y);
    });
    replay(exec);
    if (drops_host) CHECK(cudaFreeHost(shape.host));
    if (drops_device) CHECK(cudaFree(shape.device));
    replay(exec);
    if (!drops_host) CHECK(cudaFreeHost(shape.host));
    if (!drops_device) CHECK(cudaFree(shape.device));
}

// A product in two steps: partial sums go through the workspace.
__global__ void partial(const float *from, float *workspace) { workspace[threadIdx.x] = from[threadIdx.x] + from[threadIdx.x + 256]; }
__global__ void total(const float *workspace, float *to) { to[threadIdx.x] = 2 * workspace[threadIdx.x]; }

static std::map<cudaStream_t, float *> workspaces;
static float *workspace() {
    float *&found = workspaces[stream];
    if (!found) {
        CHECK(cudaMalloc(&found, N * sizeof(float)));
    }
    return found;
}
static void product(float *through) {
    partial<<<1, 256, 0, stream>>>(x, through);
    total<<<1, 256, 0, stream>>>(through, y);
}

enum Owner { THE_STREAM, EACH_GRAPH };
// Training and evaluation are captured on one stream. The graph of the evaluation is reset, and with it goes what it counts as its own.
static void workspace_of(Owner owner, bool resets_last) {
    float *training, *evaluation;
    training = evaluation = workspace();
    if (owner == EACH_GRAPH) CHECK(cudaMalloc(&evaluation, N * sizeof(float)));
    cudaGraphExec_t train = captured([&] { product(training); }), evaluate = captured([&] { product(evaluation); });
    replay(train), replay(evaluate);
    auto reset = [&] {
        CHECK(cudaGraphExecDestroy(evaluate));
        CHECK(cudaFree(evaluation));
    };
    if (!resets_last) reset();
    replay(train);
    if (resets_last) reset();
}

// Hidden states of a layer. Whoever is done with them disposes of their memory, and the tensor is empty from then on.
struct Tensor {
    float *data = nullptr;
    void fill() {
        if (!data) CHECK(cudaMalloc(&data, N * sizeof(float)));
    }
    void dispose() {
        if (data) CHECK(cudaFree(data));
        data = nullptr;
    }
};
__global__ void normalise(const float *from, float *to) { to[threadIdx.x] = 2 * from[threadIdx.x]; }
__global__ void add_residual(const float *from, float *to) {
    if (from) to[threadIdx.x] += from[threadIdx.x];
}

enum Disposal { EACH_TIME, NOT_BESIDE_GRAPHS, INTO_A_COPY };
static void layer(Disposal disposal, bool warm) {
    Tensor hidden, kept;
    hidden.fill(), kept.fill();
    cudaGraphExec_t attention = captured([&] { normalise<<<1, 256, 0, stream>>>(x, hidden.data); });
    auto experts = [&] {
        normalise<<<1, 256, 0, stream>>>(hidden.data, y);
        if (disposal == INTO_A_COPY)
            CHECK(cudaMemcpyAsync(kept.data, hidden.data, N * sizeof(float), cudaMemcpyDeviceToDevice, stream));
        if (disposal != NOT_BESIDE_GRAPHS) {
            CHECK(cudaStreamSynchronize(stream));
            hidden.dispose();
        }
    };
    // A first run without the graph behind it: what it captures is an empty tensor.
    if (warm) experts();
    Tensor &residual = disposal == INTO_A_COPY ? kept : hidden;
    cudaGraphExec_t rest = captured([&] { add_residual<<<1, 256, 0, stream>>>(residual.data, y); });
    if (!warm) {
        replay(attention);
        experts();
    }
    replay(rest);
}

struct Case {
    const char *name, *expect;
    void (*go)();
};
static const Case cases[] = {
    {"arguments-of-dropped-vectors", "certain", [] { arguments(true, false); }},
    {"arguments-in-dropped-buffers", "certain certain", [] { arguments(false, true); }},
    {"arguments-in-a-capture-pool", "", [] { arguments(false, false); }},
    {"workspace-of-the-stream", "certain certain", [] { workspace_of(THE_STREAM, false); }},
    {"workspace-of-each-graph", "", [] { workspace_of(EACH_GRAPH, false); }},
    {"workspace-of-the-stream-reset-last", "", [] { workspace_of(THE_STREAM, true); }},
    {"disposed-hidden-states", "certain", [] { layer(EACH_TIME, false); }},
    {"disposed-into-a-copy", "", [] { layer(INTO_A_COPY, false); }},
    {"disposed-not-beside-graphs", "", [] { layer(NOT_BESIDE_GRAPHS, false); }},
    {"disposed-before-the-capture", "", [] { layer(EACH_TIME, true); }},
};

int main(int argc, char **argv) {
    if (argc < 2) {
        for (const Case &c : cases) printf("%s %s\n", c.name, c.expect);
        return 0;
    }
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&x, N * sizeof(float)));
    CHECK(cudaMalloc(&y, N * sizeof(float)));
    CHECK(cudaMemset(x, 0, N * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    for (const Case &c : cases)
        if (!strcmp(c.name, argv[1])) {
            c.go();
            puts("done");
        }
    fflush(stdout);
    _Exit(0);
}
