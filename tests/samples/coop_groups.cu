// expect: clean
// pair: kernel groups / cudaMemcpy
// needs: none
// why: One stream. Tiles, coalesced and partitioned groups, reductions, scans.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__global__ void groups(const int *in, int *out) {
    cg::thread_block block = cg::this_thread_block();
    int t = block.thread_rank(), v = in[t], *mine = out + t * 8;
    auto warp = cg::tiled_partition<32>(block);
    auto four = cg::tiled_partition<4>(warp);
    mine[0] = cg::reduce(warp, v, cg::plus<int>());
    mine[1] = cg::reduce(four, v, cg::greater<int>());
    mine[2] = four.shfl(v, 2) + four.shfl_xor(v, 1) * 1000;
    mine[3] = cg::exclusive_scan(warp, v) + cg::inclusive_scan(four, v) * 10000;
    mine[4] = warp.any(v == 7) + 2 * warp.all(v >= 0) + 4 * warp.ballot(v % 2 == 0) % 1000003u;
    mine[5] = mine[6] = -1;
    if (v % 3 == 0) {
        auto together = cg::coalesced_threads();
        mine[5] = together.size() * 100 + together.thread_rank();
    }
    auto kind = cg::labeled_partition(warp, v % 5);
    mine[6] = kind.size() * 1000 + cg::reduce(kind, v, cg::plus<int>());
    auto half = cg::binary_partition(warp, v % 2 == 1);
    mine[7] = half.size() + (int)half.meta_group_size() * 100;
    block.sync();
}

int main() {
    const int n = 96;
    std::vector<int> in(n), out(n * 8);
    for (int i = 0; i < n; i++) in[i] = i * 37 % 101;
    int *a, *b;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 32));
    CHECK(cudaMemcpy(a, in.data(), n * 4, cudaMemcpyHostToDevice));
    groups<<<1, n>>>(a, b);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), b, n * 32, cudaMemcpyDeviceToHost));
    int wrong = 0;
    unsigned sums[8] = {};
    for (int t = 0; t < n; t++) {
        int w = t / 32 * 32, f = t / 4 * 4, sum = 0, most = 0, scan = 0, scan4 = 0, threes = 0, rank = 0, fives = 0, fiver = 0;
        for (int i = w; i < w + 32; i++) {
            sum += in[i];
            if (i < t) scan += in[i];
            threes += in[i] % 3 == 0;
            rank += i < t && in[i] % 3 == 0;
            if (in[i] % 5 == in[t] % 5) fives++, fiver += in[i];
        }
        for (int i = f; i < f + 4; i++) {
            most = std::max(most, in[i]);
            if (i <= t) scan4 += in[i];
        }
        int *o = &out[t * 8];
        wrong += o[0] != sum || o[1] != most || o[2] != in[f + 2] + in[t ^ 1] * 1000 || o[3] != scan + scan4 * 10000;
        wrong += o[5] != (in[t] % 3 ? -1 : threes * 100 + rank) || o[6] != fives * 1000 + fiver;
        for (int i = 0; i < 8; i++) sums[i] += o[i];
    }
    printf("sums");
    for (unsigned s : sums) printf(" %u", s);
    printf(", %d wrong\n", wrong);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return 0;
}
