// expect: clean
// pair: kernel votes / cudaMemcpy
// needs: none
// why: One stream. Shuffles, votes, matches, reductions of one warp, in divergent code too.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void votes(const int *in, unsigned *out) {
    int t = threadIdx.x, lane = t % 32, v = in[t];
    unsigned *o = out + t * 12;
    const unsigned all = 0xffffffff;
    o[0] = __ballot_sync(all, v & 1);
    o[1] = __any_sync(all, v == 50) | __all_sync(all, v < 90) << 1;
    o[2] = __shfl_up_sync(all, v, 3);
    o[3] = __shfl_down_sync(all, v, 5, 8);
    o[4] = __shfl_xor_sync(all, v, 21);
    o[5] = __shfl_sync(all, v, v);
    o[6] = __match_any_sync(all, v % 7);
    int same;
    o[7] = __match_all_sync(all, v / 100, &same) + same;
    o[8] = __reduce_add_sync(all, (unsigned)v) + __reduce_max_sync(all, v - 40) * 10000;
    o[9] = __reduce_xor_sync(all, (unsigned)v * 77u);
    // Two halves of a warp on different paths.
    if (lane < 11) {
        unsigned me = __activemask();
        o[10] = __popc(__ballot_sync(0x7ff, v > 30)) + 100 * (me == 0x7ff);
    } else {
        o[10] = __shfl_sync(0xfffff800, v, 20);
    }
    __syncwarp();
    long long wide = __shfl_down_sync(all, (long long)v << 33, 1);
    double real = __shfl_xor_sync(all, v * 0.5, 1);
    o[11] = (unsigned)(wide >> 33) + (unsigned)(real * 2) * 1000;
}

__global__ void block_votes(const int *in, int *out) {
    int v = in[threadIdx.x];
    out[threadIdx.x * 3] = __syncthreads_count(v % 3 == 0);
    out[threadIdx.x * 3 + 1] = __syncthreads_and(v < 200);
    out[threadIdx.x * 3 + 2] = __syncthreads_or(v == 1000);
}

int main() {
    const int n = 64;
    std::vector<int> in(n), counts(n * 3);
    std::vector<unsigned> out(n * 12);
    for (int i = 0; i < n; i++) in[i] = i * 29 % 97;
    int *a, *c;
    unsigned *b;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 48));
    CHECK(cudaMalloc(&c, n * 12));
    CHECK(cudaMemcpy(a, in.data(), n * 4, cudaMemcpyHostToDevice));
    votes<<<1, n>>>(a, b);
    block_votes<<<1, n>>>(a, c);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), b, n * 48, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(counts.data(), c, n * 12, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 12; k++) {
        unsigned hash = 1;
        for (int t = 0; t < n; t++) hash = hash * 31 + out[t * 12 + k];
        printf("%08x%s", hash, k == 11 ? "\n" : " ");
    }
    printf("%d %d %d\n", counts[0], counts[1], counts[2]);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
    return 0;
}
