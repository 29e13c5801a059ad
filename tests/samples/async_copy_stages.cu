// expect: clean
// pair: kernel convolve / cudaMemcpy
// needs: none
// why: One stream. cp.async fills the next tile in shared memory while the last one is used, by primitives and by cuda::pipeline.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline_primitives.h>

const int TILE = 256, TILES = 8;

__global__ void primitives(const int4 *in, int4 *out) {
    __shared__ __align__(16) int4 tile[2][TILE];
    const int4 *mine = in + blockIdx.x * TILE * TILES;
    __pipeline_memcpy_async(&tile[0][threadIdx.x], &mine[threadIdx.x], 16);
    __pipeline_commit();
    for (int t = 0; t < TILES; t++) {
        if (t + 1 < TILES) __pipeline_memcpy_async(&tile[(t + 1) % 2][threadIdx.x], &mine[(t + 1) * TILE + threadIdx.x], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        int4 v = tile[t % 2][(threadIdx.x + 1) % TILE];
        out[(blockIdx.x * TILES + t) * TILE + threadIdx.x] = make_int4(v.w, v.z, v.y, v.x + t);
        __syncthreads();
    }
}

__global__ void pipelined(const int *in, int *out) {
    __shared__ int tile[2][TILE];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
    const int *mine = in + blockIdx.x * TILE * TILES;
    for (int t = 0; t <= TILES; t++) {
        if (t < TILES) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[t % 2][threadIdx.x], &mine[t * TILE + threadIdx.x], cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        }
        if (t > 0) {
            pipe.consumer_wait();
            out[(blockIdx.x * TILES + t - 1) * TILE + threadIdx.x] = 2 * tile[(t - 1) % 2][TILE - 1 - threadIdx.x];
            pipe.consumer_release();
        }
    }
}

__global__ void phases(int *x) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int s[TILE];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    int v = x[threadIdx.x];
    for (int r = 0; r < 5; r++) {
        s[threadIdx.x] = v;
        auto token = bar.arrive();
        int own = v * 2;
        bar.wait(std::move(token));
        v = own + s[(threadIdx.x + 17) % TILE];
        bar.arrive_and_wait();
    }
    x[threadIdx.x] = v;
}

int main() {
    const int blocks = 4, n = blocks * TILES * TILE * 4;
    std::vector<int> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = i * 11;
    int *a, *b, wrong = 0;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMemcpy(a, in.data(), n * 4, cudaMemcpyHostToDevice));
    primitives<<<blocks, TILE>>>((int4 *)a, (int4 *)b);
    CHECK(cudaMemcpy(out.data(), b, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        int tile = i / (4 * TILE), at = i / 4 % TILE, part = i % 4;
        wrong += out[i] != in[(tile * TILE + (at + 1) % TILE) * 4 + 3 - part] + (part == 3 ? tile % TILES : 0);
    }
    pipelined<<<blocks, TILE>>>(a, b);
    CHECK(cudaMemcpy(out.data(), b, n, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n / 4; i++) wrong += out[i] != 2 * in[i / TILE * TILE + TILE - 1 - i % TILE];
    phases<<<1, TILE>>>(a);
    CHECK(cudaMemcpy(out.data(), a, TILE * 4, cudaMemcpyDeviceToHost));
    std::vector<int> v(in.begin(), in.begin() + TILE), next(TILE);
    for (int r = 0; r < 5; r++, v.swap(next))
        for (int i = 0; i < TILE; i++) next[i] = 2 * v[i] + v[(i + 17) % TILE];
    for (int i = 0; i < TILE; i++) wrong += out[i] != v[i];
    printf("last %d, %d wrong\n", out[TILE - 1], wrong);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return 0;
}
