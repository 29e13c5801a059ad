// A kernel that finds its buffer through a pointer in pinned memory: `pinned_table CASE [fixed]`.
// `other` touches the buffer that it does not use, `changed` a buffer that the host has put there
// before the launch.

#include <cstdio>
#include <cstring>

struct Table {
    int *unused, *used;
};

__global__ void fill(const Table *table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table->used[i] = i;
}

int main(int argc, char **argv) {
    constexpr int N = 4096;
    const char *name = argc > 1 ? argv[1] : "";
    const bool fixed = argc > 2 && !strcmp(argv[2], "fixed");
    cudaStream_t one, two;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    Table *table;
    int *buffers[3];
    cudaHostAlloc(&table, sizeof *table, cudaHostAllocDefault);
    for (auto &buffer : buffers) cudaMalloc(&buffer, N * sizeof(int));
    *table = {buffers[0], buffers[1]};
    if (!strcmp(name, "changed")) {
        fill<<<N / 256, 256, 0, one>>>(table, N);
        cudaStreamSynchronize(one);
        table->used = buffers[2];
    }
    fill<<<N / 256, 256, 0, one>>>(table, N);
    if (fixed) cudaStreamSynchronize(one);
    cudaMemsetAsync(!strcmp(name, "other") ? table->unused : table->used, 0, N * sizeof(int), two);
    cudaDeviceSynchronize();
    puts("done");
    return 0;
}
