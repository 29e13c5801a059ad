// expect: clean
// pair: cudaMemcpyAsync host to device in solve / host write in solve
// needs: none
// racy: race host WAR
// why: A solver computes one part of its work on the host, in a pinned workspace of its caller's, and uploads it asynchronously. A caller that solves a stack of matrices hands over the same workspace each time; with `racy` nothing waits for the last upload before the next part is computed over it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void apply(float *vectors, const float *shifts, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) vectors[i] += shifts[i];
}

// Returns while its upload may still run, as solvers do that are given a stream.
static void solve(float *vectors, float *device_workspace, float *host_workspace, int matrix, int n, cudaStream_t stream) {
    for (int i = 0; i < n; i++) host_workspace[i] = float(matrix * 100 + i % 50);
    CHECK(cudaMemcpyAsync(device_workspace, host_workspace, n * sizeof(float), cudaMemcpyHostToDevice, stream));
    apply<<<n / 256, 256, 0, stream>>>(vectors, device_workspace, n);
    CHECK(cudaGetLastError());
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int matrices = 4, n = 1 << 14;
    float *vectors, *device_workspace, *host_workspace;
    CHECK(cudaMalloc(&vectors, matrices * n * sizeof(float)));
    CHECK(cudaMalloc(&device_workspace, n * sizeof(float)));
    CHECK(cudaMallocHost(&host_workspace, n * sizeof(float)));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemsetAsync(vectors, 0, matrices * n * sizeof(float), stream));

    for (int m = 0; m < matrices; m++) {
        if (!racy) CHECK(cudaStreamSynchronize(stream));
        solve(vectors + m * n, device_workspace, host_workspace, m, n, stream);
    }

    float *result = (float *)malloc(matrices * n * sizeof(float));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(result, vectors, matrices * n * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int m = 0; m < matrices; m++)
        for (int i = 0; i < n; i++) wrong += result[m * n + i] != float(m * 100 + i % 50);
    printf("%d matrices, %d wrong\n", matrices, racy ? 0 : wrong);
    free(result);
    CHECK(cudaFreeHost(host_workspace));
    CHECK(cudaFree(device_workspace));
    CHECK(cudaFree(vectors));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
