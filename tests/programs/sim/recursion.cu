// Kernels that recurse into a part of an array, launched twice, each time from the start of the array.
// The first word is how they recurse, the second one "apart" or "common": whether the parts have a byte
// in common. Prints "done".
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <string>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                         \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

constexpr int N = 1024;

// A binary tree: the children of k are 2k and 2k + 1.
__device__ __noinline__ float fold(float *tree, int k) {
    if (k >= N / 2) return tree[k];
    float sum = fold(tree, 2 * k) + fold(tree, 2 * k + 1);
    tree[k] = sum;
    return sum;
}
__global__ void by_tree(float *tree, int root, int) { fold(tree, root); }

// A range, halved until few are left.
__device__ __noinline__ int halve(float *all, int from, int to) {
    if (to - from <= 4) {
        for (int i = from; i < to; i++) all[i] += 1;
        return 1;
    }
    int middle = (from + to) / 2;
    return halve(all, from, middle) + halve(all, middle, to);
}
__global__ void by_range(float *all, int from, int to) {
    if (halve(all, from, to) < 0) all[from] = 0;
}

// Each thread goes down from its own place, by steps of the number of threads.
__device__ __noinline__ int descend(float *all, int at, int from) {
    if (at < from) return 0;
    all[at] = at;
    return 1 + descend(all, at - 32, from);
}
__global__ void by_thread(float *all, int from, int to) {
    if (descend(all, to - 32 + threadIdx.x, from) < 0) all[from] = 0;
}

int main(int, char **words) {
    std::string how = words[1];
    bool common = std::string(words[2]) == "common";
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
    float *all;
    CHECK(cudaMalloc(&all, N * sizeof(float)));
    CHECK(cudaMemset(all, 0, N * sizeof(float)));
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    if (how == "tree") {
        by_tree<<<1, 1, 0, a>>>(all, 4, 0);
        by_tree<<<1, 1, 0, b>>>(all, common ? 2 : 5, 0);
    } else if (how == "range") {
        by_range<<<1, 1, 0, a>>>(all, 0, N / 2);
        by_range<<<1, 1, 0, b>>>(all, common ? N / 2 - 4 : N / 2, N);
    } else {
        by_thread<<<1, 32, 0, a>>>(all, 0, N / 2);
        by_thread<<<1, 32, 0, b>>>(all, common ? N / 2 - 32 : N / 2, N);
    }
    CHECK(cudaDeviceSynchronize());
    puts("done");
}
