// expect: clean
// pair: kernel apply / kernel apply
// needs: none
// why: One stream. Constants and device variables, copied by symbol and by address; functions called through device pointers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

typedef int (*Rule)(int, int);
__device__ int plus_(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int least(int a, int b) { return a < b ? a : b; }
__device__ Rule rules[3] = {plus_, times, least};
__constant__ int weights[64];
__constant__ float4 corner = {1, 2, 3, 4};
__device__ unsigned long long total = 100;
__device__ int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ const char *text = "streams";

__global__ void apply(const int *in, int *out, int n, int rule) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = rules[rule](in[i], weights[i % 64]) + table[i % 2][i % 3] + text[i % 7] + (int)corner.z;
    out[i] = v;
    atomicAdd(&total, (unsigned long long)v);
}

int main() {
    const int n = 10000;
    std::vector<int> in(n), out(n), w(64);
    for (int i = 0; i < n; i++) in[i] = i % 321;
    for (int i = 0; i < 64; i++) w[i] = i * 3 % 50;
    int *a, *b, wrong = 0;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMemcpy(a, in.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(weights, w.data(), 256));
    int changed = 50;
    CHECK(cudaMemcpyToSymbol(table, &changed, 4, 4 * 4));
    unsigned long long want = 100, got;
    for (int rule = 0; rule < 3; rule++) {
        apply<<<(n + 127) / 128, 128>>>(a, b, n, rule);
        CHECK(cudaMemcpy(out.data(), b, n * 4, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++) {
            int x = in[i], y = w[i % 64], tab[6] = {1, 2, 3, 4, 50, 6};
            int v = (rule == 0 ? x + y : rule == 1 ? x * y : x < y ? x : y) + tab[i % 2 * 3 + i % 3] + "streams"[i % 7] + 3;
            wrong += out[i] != v;
            want += v;
        }
    }
    CHECK(cudaMemcpyFromSymbol(&got, total, 8));
    void *address;
    size_t size;
    CHECK(cudaGetSymbolAddress(&address, total));
    CHECK(cudaGetSymbolSize(&size, weights));
    CHECK(cudaMemset(address, 0, 8));
    unsigned long long cleared = 1;
    CHECK(cudaMemcpyFromSymbol(&cleared, total, 8));
    printf("total %llu, cleared %llu, size %zu, %d wrong\n", got, cleared, size, wrong + (got != want));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return 0;
}
