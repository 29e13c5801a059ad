// Structs of many sizes, of which two launches on two streams write different fields in an order that is data: as many
// pieces as threads. With `race` both write the same field. The program prints the sizes of the buffers.
// Usage: unasked_fields race|clean THREADS
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

// An element of so many bytes: a field at its begin, a field of the same type at its end.
template <class T, int BYTES> struct Element {
    T first;
    char between[BYTES - 2 * sizeof(T)];
    T last;
};
template <class T> struct Element<T, 2 * sizeof(T)> {
    T first, last;
};

template <class T, int BYTES> __global__ void write(Element<T, BYTES> *p, const int *index, int n, bool last) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T &field = last ? p[index[i]].last : p[index[i]].first;
    field = T(i);
}

static int *index_of, threads;
static size_t cases;
static cudaStream_t s, t;

template <class T, int BYTES> void run(bool race) {
    size_t size = (size_t(threads) * BYTES | 0xfffff) + 1 + 512 * ++cases;
    Element<T, BYTES> *p;
    CHECK(cudaMalloc(&p, size));
    CHECK(cudaDeviceSynchronize());
    write<T, BYTES><<<(threads + 255) / 256, 256, 0, s>>>(p, index_of, threads, false);
    write<T, BYTES><<<(threads + 255) / 256, 256, 0, t>>>(p, index_of, threads, !race);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(p));
    printf("%zu\n", size);
}

int main(int count, char **words) {
    bool race = count > 1 && !strcmp(words[1], "race");
    threads = count > 2 ? atoi(words[2]) : 1000;
    // Some elements several times, others not at all.
    std::vector<int> index(threads);
    unsigned long long seed = 7;
    for (int &i : index) i = int((seed = seed * 6364136223846793005ull + 1) >> 33) % threads;
    CHECK(cudaMalloc(&index_of, threads * sizeof(int)));
    CHECK(cudaMemcpy(index_of, index.data(), threads * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    run<float, 8>(race);
    if (threads > 10000) return 0;
    run<char, 2>(race);
    run<char, 3>(race);
    run<short, 6>(race);
    run<float, 12>(race);
    run<float, 20>(race);
    run<double, 16>(race);
    run<double, 40>(race);
    run<float, 4096>(race);
    return 0;
}
