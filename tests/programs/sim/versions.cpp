// Compiled with the headers of CUDA 11, 12 and 13: calls what has another form in each, without any kernel. Then two
// streams write the same bytes; with an argument the second waits.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>

#define REQUIRE(what)                                                                                                  \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK(call) REQUIRE((call) == cudaSuccess)

// Behind a result there is memory that is not the result's.
template <class T> struct Guarded {
    T value;
    unsigned char guard[512];
    Guarded() { memset(this, 0xaa, sizeof *this); }
    ~Guarded() {
        for (unsigned char byte : guard) REQUIRE(byte == 0xaa);
    }
};

static void structs(void *memory) {
    Guarded<cudaDeviceProp> properties;
    CHECK(cudaGetDeviceProperties(&properties.value, 0));
    REQUIRE(properties.value.major == 8 && properties.value.warpSize == 32 && properties.value.name[0] != 0);
    Guarded<cudaPointerAttributes> attributes;
    CHECK(cudaPointerGetAttributes(&attributes.value, memory));
    REQUIRE(attributes.value.type == cudaMemoryTypeDevice && attributes.value.devicePointer == memory);
    Guarded<void *> entry;
#if CUDART_VERSION >= 13000
    CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry.value, 13000, cudaEnableDefault, nullptr));
#elif CUDART_VERSION >= 12000
    Guarded<cudaDriverEntryPointQueryResult> status;
    CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry.value, cudaEnableDefault, &status.value));
    REQUIRE(status.value == cudaDriverEntryPointSuccess);
#else
    CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry.value, cudaEnableDefault));
#endif
    REQUIRE(entry.value != nullptr);
}

static void graphs(void *memory, cudaStream_t stream) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(cudaMemsetAsync(memory, 1, 4096, stream));
    Guarded<cudaStreamCaptureStatus> status;
    Guarded<unsigned long long> id;
#if CUDART_VERSION >= 12000
    Guarded<cudaGraph_t> in;
    Guarded<const cudaGraphNode_t *> last;
    Guarded<size_t> count;
#endif
#if CUDART_VERSION >= 13000
    CHECK(cudaStreamGetCaptureInfo(stream, &status.value, &id.value, &in.value, &last.value, nullptr, &count.value));
#elif CUDART_VERSION >= 12000
    CHECK(cudaStreamGetCaptureInfo(stream, &status.value, &id.value, &in.value, &last.value, &count.value));
#else
    CHECK(cudaStreamGetCaptureInfo(stream, &status.value, &id.value));
#endif
#if CUDART_VERSION >= 12000
    REQUIRE(count.value == 1 && in.value != nullptr);
#endif
    REQUIRE(status.value == cudaStreamCaptureStatusActive && id.value != 0);
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    Guarded<cudaGraphNode_t> node;
#if CUDART_VERSION >= 12000
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    Guarded<cudaGraphExecUpdateResultInfo> updated;
    CHECK(cudaGraphExecUpdate(exec, graph, &updated.value));
    REQUIRE(updated.value.result == cudaGraphExecUpdateSuccess);
#else
    char log[16] = "not written to";
    CHECK(cudaGraphInstantiate(&exec, graph, &node.value, log, sizeof log));
    REQUIRE(node.value == nullptr && log[0] == 0);
    Guarded<cudaGraphExecUpdateResult> updated;
    CHECK(cudaGraphExecUpdate(exec, graph, &node.value, &updated.value));
    REQUIRE(updated.value == cudaGraphExecUpdateSuccess);
#endif
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char **) {
    int version = 0;
    CHECK(cudaRuntimeGetVersion(&version));
    REQUIRE(version / 1000 == CUDART_VERSION / 1000);
    void *memory;
    cudaStream_t a, b;
    cudaEvent_t written;
    CHECK(cudaMalloc(&memory, 4096));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    structs(memory);
    graphs(memory, a);

    CHECK(cudaMemsetAsync(memory, 2, 4096, a));
    if (argc > 1) {
        CHECK(cudaEventRecord(written, a));
        CHECK(cudaStreamWaitEvent(b, written, 0));
    }
    CHECK(cudaMemsetAsync(memory, 3, 4096, b));
    CHECK(cudaDeviceSynchronize());
    unsigned char byte = 0;
    CHECK(cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost));
    REQUIRE(argc == 1 || byte == 3);
    printf("version %d\n", version / 1000);
}
