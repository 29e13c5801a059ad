// Kernels with more than 31 KiB of parameters: in machine code their last parameters lie in the upper half of the bank of
// constants. Prints what the kernels have read. Two launches on two streams write an array: the same half of it ("racy") or
// one half each ("clean").
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

constexpr int WORDS = 8000, N = 64;
struct Large { int words[WORDS]; };

// The first words, the last ones, one at each thread's place, and what comes behind all of them.
__global__ void pick(const __grid_constant__ Large large, int *data, int from, short half, double factor) {
    int i = threadIdx.x, last = large.words[WORDS - 1] - large.words[WORDS - 2];
    data[i] = (large.words[0] + last + large.words[from + i] + half) * factor;
}

int main(int count, char **words) {
    bool racy = count > 1 && !strcmp(words[1], "racy");
    static Large large;
    for (int i = 0; i < WORDS; i++) large.words[i] = i * i;
    int *data, answers[2 * N];
    CHECK(cudaMalloc(&data, sizeof answers));
    CHECK(cudaMemset(data, 0, sizeof answers));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    pick<<<1, N, 0, a>>>(large, data, WORDS - N, 7, 0.5);
    pick<<<1, N, 0, b>>>(large, data + (racy ? 0 : N), WORDS / 2, -9, 2);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(answers, data, sizeof answers, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 2 * N && !racy; i++) {
        int second = i / N, place = (second ? WORDS / 2 : WORDS - N) + i % N;
        int expected = (2 * WORDS - 3 + place * place + (second ? -9 : 7)) * (second ? 2 : 0.5);
        if (answers[i] != expected) return printf("%d: %d in place of %d\n", i, answers[i], expected), 1;
    }
    puts("done");
    return 0;
}
