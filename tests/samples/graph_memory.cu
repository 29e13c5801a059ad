// expect: clean
// pair: kernel sum / cudaFreeAsync
// needs: none
// racy: race WAR
// why: A graph allocates memory and does not free it: it is launched again each time after cudaFreeAsync or cudaFree. With `racy` another stream frees it, and nothing makes that wait for the kernel.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void fill(int *p, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) p[i] = i % 7;
}

__global__ void sum(const int *p, int n, int *out) {
    int mine = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine += p[i];
    atomicAdd(out, mine);
}

int main(int argc, char **argv) {
    bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 16;
    cudaStream_t work, other;
    cudaEvent_t used;
    int *out, *memory, got = 0;
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
    CHECK(cudaMalloc(&out, 4));
    CHECK(cudaMemset(out, 0, 4));
    CHECK(cudaDeviceSynchronize());

    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(work, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync(&memory, n * 4, work));
    fill<<<8, 128, 0, work>>>(memory, n);
    CHECK(cudaStreamEndCapture(work, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    cudaError_t again = cudaSuccess;
    for (int round = 0; round < 4; round++) {
        CHECK(cudaGraphLaunch(exec, work));
        again = cudaGraphLaunch(exec, work);
        sum<<<1, 256, 0, work>>>(memory, n, out);
        switch (round) {
        case 0: CHECK(cudaFreeAsync(memory, work)); break;
        case 1:
            CHECK(cudaStreamSynchronize(work));
            CHECK(cudaFree(memory));
            break;
        default: // in another stream, and the next launch behind that
            if (!racy) {
                CHECK(cudaEventRecord(used, work));
                CHECK(cudaStreamWaitEvent(other, used, 0));
            }
            CHECK(cudaFreeAsync(memory, other));
            CHECK(cudaEventRecord(used, other));
            CHECK(cudaStreamWaitEvent(work, used, 0));
        }
    }
    cudaGetLastError();
    CHECK(cudaMemcpyAsync(&got, out, 4, cudaMemcpyDeviceToHost, work));
    CHECK(cudaStreamSynchronize(work));
    int wanted = 0;
    for (int i = 0; i < n; i++) wanted += i % 7;
    printf("%s, unfreed it is refused: %s\n", racy || got == 4 * wanted ? "summed" : "wrong", cudaGetErrorName(again));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaDeviceGraphMemTrim(0));
    size_t used_bytes = 1, reserved = 1;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used_bytes));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
    printf("held: %zu %zu\n", used_bytes, reserved);
    return 0;
}
