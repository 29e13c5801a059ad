// A kernel that launches a graph, which the simulator refuses.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void launcher(cudaGraphExec_t graph) {
    if (threadIdx.x == 0) cudaGraphLaunch(graph, cudaStreamGraphTailLaunch);
}

int main() {
    launcher<<<1, 32>>>(nullptr);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
