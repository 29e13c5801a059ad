// Fences and barriers inside kernels. Each line that has one says whether anything would be
// unordered without it in this run.
#include <cstdio>
#include <cuda_runtime.h>

#define T (int)threadIdx.x
#define PROXY_FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

__global__ void once(const int* d, int* f) {
    __shared__ int tile[128];
    __syncthreads(); // superfluous: nothing has been written
    tile[T] = d[T];
    __syncthreads(); // needed: another thread reads
    f[T] = tile[127 - T];
    __syncthreads(); // superfluous: nothing follows
}

__global__ void turns(const int* d, int* f) {
    __shared__ int tile[128];
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        tile[T] = d[T] + i;
        __syncthreads(); // needed: another thread reads
        sum += tile[127 - T];
        __syncthreads(); // needed: the next turn overwrites
    }
    f[T] = sum;
}

__global__ void two_buffers(const int* d, int* f) {
    __shared__ int tile[2][128];
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        tile[i & 1][T] = d[T] + i;
        __syncthreads(); // needed: another thread reads
        sum += tile[i & 1][127 - T];
        __syncthreads(); // superfluous: the next turn writes the other buffer
    }
    f[T] = sum;
}

// A barrier that is needed in the second launch only is needed.
__global__ void at_times(const int* d, int* f, int other) {
    __shared__ int tile[128];
    tile[T] = d[T];
    __syncthreads(); // needed: if another thread reads
    f[T] = tile[T ^ other];
}

__global__ void own(const int* d, int* f) {
    __shared__ int tile[128];
    tile[T] = d[T];
    __syncthreads(); // superfluous: each thread reads what it has written
    f[T] = tile[T];
}

__global__ void lanes(const int* d, int* f) {
    __shared__ int tile[128];
    tile[T] = d[T];
    __syncwarp(); // needed: another lane reads
    int x = tile[T ^ 1];
    __syncwarp(); // superfluous, in PTX: nobody writes
    f[T] = x + tile[T ^ 2];
}

__global__ void flag(int* data, int* word, int* f) {
    if (T != 0) return;
    if (blockIdx.x == 0) {
        *data = 5;
        __threadfence(); // needed: before the flag
        atomicExch(word, 1);
        __threadfence(); // superfluous, in PTX: nothing follows
    } else {
        while (atomicAdd(word, 0) == 0) {}
        __threadfence(); // needed: behind the flag
        *f = *data;
    }
}

__device__ void store(int* to, const int* tile) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(to),
                 "r"((unsigned)__cvta_generic_to_shared(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void proxies(const int* d, int* f) {
    __shared__ __align__(128) int tile[128];
    tile[T] = d[T];
    PROXY_FENCE; // needed: the store reads what threads have written
    __syncthreads(); // needed: all of them
    if (T == 0) store(f, tile);
    PROXY_FENCE; // superfluous, in PTX: nothing follows
}

int main() {
    int host[128], *d, *f, *words;
    for (int i = 0; i < 128; i++) host[i] = i * 3 + 1;
    cudaMalloc(&d, sizeof host);
    cudaMalloc(&f, sizeof host);
    cudaMalloc(&words, 8);
    cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemset(words, 0, 8);
    once<<<1, 128>>>(d, f);
    turns<<<1, 128>>>(d, f);
    two_buffers<<<1, 128>>>(d, f);
    at_times<<<1, 128>>>(d, f, 0);
    at_times<<<1, 128>>>(d, f, 64);
    own<<<1, 128>>>(d, f);
    lanes<<<1, 128>>>(d, f);
    flag<<<2, 32>>>(words, words + 1, f);
    proxies<<<1, 128>>>(d, f);
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}
