// Two streams fill the two pieces of one buffer, the second behind the first. How many elements the first kernel fills is loaded from memory: so all
// that is known is what its threads cover, and that reaches 24 elements into the second piece. With `race` it does fill these.
// Usage: confirm_rim race|clean
#include "confirm.h"

__global__ void fill(int *p, const int *n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < *n) p[i] = 1;
}

__global__ void fill_all(int *p) { p[blockIdx.x * blockDim.x + threadIdx.x] = 2; }

int main(int argc, char **argv) {
    const int first = 1000, covered = 1024, count = argc > 1 && !strcmp(argv[1], "race") ? covered : first;
    int *p, *n, got[first + covered];
    CHECK(cudaMalloc(&p, sizeof got));
    CHECK(cudaMalloc(&n, sizeof *n));
    CHECK(cudaMemcpy(n, &count, sizeof count, cudaMemcpyHostToDevice));
    Pair s;
    CHECK(cudaDeviceSynchronize());
    turns([&](int) {
        fill<<<covered / 128, 128, 0, s.a>>>(p, n);
        fill_all<<<covered / 128, 128, 0, s.b>>>(p + first);
    });
    CHECK(cudaMemcpy(got, p, sizeof got, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < first; i++) right &= got[i] == 1;
    for (int i = count; i < first + covered; i++) right &= got[i] == 2;
    puts(right ? "right" : "WRONG");
    return !right;
}
