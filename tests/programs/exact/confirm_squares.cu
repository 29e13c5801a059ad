// Stores to elements whose numbers are squares (modulo 1024) and loads of elements whose numbers are none, on two streams: no data decides which,
// but no pattern tells it, and there are too many threads to follow each. With `race` the loads are of squares too.
// Usage: confirm_squares race|clean
#include "confirm.h"
#include <vector>

__global__ void put(int *table, int n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < unsigned(n)) table[i * i & 1023] = 1;
}

__global__ void take(const int *table, int *out, int n, int step) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < unsigned(n)) out[i] = table[(i * i & 1023) + step];
}

int main(int argc, char **argv) {
    const bool race = argc > 1 && !strcmp(argv[1], "race");
    const int n = 1 << 19;
    int *table, *out;
    CHECK(cudaMalloc(&table, 1026 * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    CHECK(cudaMemset(table, 0, 1026 * sizeof(int)));
    Pair s;
    CHECK(cudaDeviceSynchronize());
    turns([&](int) {
        put<<<n / 256, 256, 0, s.a>>>(table, n);
        // Squares are 0 or 1 modulo 4.
        take<<<n / 256, 256, 0, s.b>>>(table, out, n, race ? 0 : 2);
    });
    std::vector<int> got(1026);
    CHECK(cudaMemcpy(got.data(), table, 1026 * sizeof(int), cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 1024; i++) right &= got[i * i & 1023] == 1 && got[(i * i & 1023) + 2] == 0;
    puts(right ? "right" : "WRONG");
    return !right;
}
