// Kernels that launch kernels, for --inside: each race with its mended twin (M). Compile with
// -rdc=true. Words: racy or mended, then names of cases (all without).
#include <cstdio>
#include <cstring>

#define T threadIdx.x

__global__ void reader(const int* from, int* to) {
    to[T] = from[T]; // unmet: other // after: other
}

__global__ void writer(int* to, int value) {
    to[T] = value + T; // siblings: both // streams: both
}

// Threads of other warps write what the launched grid reads.
template <bool M> __global__ void unmet(int* d, int* o) {
    d[T] = T * 3; // unmet: one
    if (M) __syncthreads();
    if (T == 0) reader<<<1, 128>>>(d, o);
}

// The launcher writes behind the launch.
template <bool M> __global__ void after(int* d, int* o) {
    if (T == 0) {
        if (M) reader<<<1, 128, 0, cudaStreamTailLaunch>>>(d, o);
        else reader<<<1, 128>>>(d, o);
    }
    d[T] = T * 5; // after: one
}

// Two grids write one place: of two blocks, or of one.
template <bool M> __global__ void siblings(int* d, int* o) {
    if (M) {
        if (blockIdx.x == 0 && T < 2) writer<<<1, 128>>>(o, T);
    } else if (T == 0) {
        writer<<<1, 128>>>(o, blockIdx.x);
    }
}

// In two streams, or in one.
template <bool M> __global__ void streams(int* d, int* o) {
    if (blockIdx.x != 0 || T != 0) return;
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    writer<<<1, 128, 0, first>>>(o, 1);
    writer<<<1, 128, 0, M ? first : second>>>(o, 2);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}

static bool wanted(int count, char** words, const char* name) {
    for (int at = 2; at < count; ++at)
        if (!strcmp(words[at], name)) return true;
    return count <= 2;
}

int main(int count, char** words) {
    bool mended = count > 1 && !strcmp(words[1], "mended");
    int *d, *o;
    cudaMalloc(&d, 512);
    cudaMalloc(&o, 512);
#define CASE(name, blocks)                                             \
    if (wanted(count, words, #name)) {                                 \
        cudaMemset(d, 1, 512);                                         \
        cudaMemset(o, 2, 512);                                         \
        if (mended) name<true><<<blocks, 128>>>(d, o);                 \
        else name<false><<<blocks, 128>>>(d, o);                       \
        int all[128];                                                  \
        cudaMemcpy(all, o, 512, cudaMemcpyDeviceToHost);               \
        printf("%s: %d\n", #name, all[127]);                           \
    }
    CASE(unmet, 1)
    CASE(after, 1)
    CASE(siblings, 2)
    CASE(streams, 2)
    return cudaDeviceSynchronize();
}
