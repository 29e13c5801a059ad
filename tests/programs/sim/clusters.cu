// Blocks of a cluster share memory: by pointers, by PTX's addresses, at the cluster's barrier. What the kernels
// compute is compared with the host's. The last result is copied on another stream, which waits or does not.
// Usage: clusters race|clean
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            return 1;                                                               \
        }                                                                           \
    } while (0)

constexpr int BINS = 256, PART = 64;

// Each block of four holds a quarter of the bins; all count into all of them.
__global__ void __cluster_dims__(4, 1, 1) histogram(int *out, const int *in, int n) {
    __shared__ int bins[PART];
    auto cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < PART; i += blockDim.x) bins[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int *theirs = cluster.map_shared_rank(bins, in[i] / PART);
        atomicAdd(theirs + in[i] % PART, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < PART; i += blockDim.x) atomicAdd(out + cluster.block_rank() * PART + i, bins[i]);
}

// A ring: everyone adds what its neighbour holds, again and again. Arrives first and waits later.
__global__ void ring(int *out, int rounds) {
    extern __shared__ int both[];
    auto cluster = cg::this_cluster();
    int now = blockIdx.x * 100 + threadIdx.x, *mine = both, *other = both + blockDim.x;
    mine[threadIdx.x] = now;
    for (int round = 0; round < rounds; round++) {
        auto token = cluster.barrier_arrive();
        now = now * 3 + round;
        cluster.barrier_wait(static_cast<decltype(token) &&>(token));
        int *next = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % cluster.num_blocks());
        now += next[blockDim.x - 1 - threadIdx.x] + (cluster.query_shared_rank(next) != cluster.block_rank());
        other[threadIdx.x] = now;
        int *spare = mine;
        mine = other, other = spare;
    }
    cluster.sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = now;
}

// Rows and columns of clusters, and PTX's own instructions: each block stores into its mirror image's memory, and
// counts in the first block's.
__global__ void mirror(int *out, int *counts) {
    __shared__ int got[32];
    __shared__ int count[2];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), blocks = cluster.num_blocks(), t = threadIdx.x;
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    if (t < 2) count[t] = 0;
    cluster.sync();
    unsigned there, first, before, value, owner;
    unsigned own = (unsigned)__cvta_generic_to_shared(got + t), counter = (unsigned)__cvta_generic_to_shared(count);
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(blocks - 1 - rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(first) : "r"(counter));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(there));
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(there), "r"(block * 1000 + t) : "memory");
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(first), "r"(1) : "memory");
    asm volatile("red.shared::cluster.max.u32 [%0], %1;" :: "r"(first + 4), "r"(rank * 100 + t) : "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    int bad = (before >= (unsigned)blocks * 32) + (value != (unsigned)(block * 1000 + t));
    bad += owner != (unsigned)(blocks - 1 - rank);
    auto at = cluster.block_index();
    out[block * 32 + t] = got[t] + bad * 1000000 + at.x * 3 + at.y * 5 + cluster.dim_blocks().x;
    if (rank == 0 && t < 2) counts[block * 2 + t] = count[t];
}

static cudaLaunchConfig_t config(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, dim3 cluster,
                                 cudaLaunchAttribute *attribute) {
    cudaLaunchConfig_t c = {};
    c.gridDim = grid, c.blockDim = block, c.dynamicSmemBytes = shared, c.stream = stream;
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim = {cluster.x, cluster.y, cluster.z};
    c.attrs = attribute, c.numAttrs = 1;
    return c;
}

static std::vector<int> ring_of(int blocks, int threads, int size, int rounds) {
    std::vector<int> now(blocks * threads), next;
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < threads; t++) now[b * threads + t] = b * 100 + t;
    std::vector<int> held = now;
    for (int r = 0; r < rounds; r++) {
        next = now;
        for (int b = 0; b < blocks; b++)
            for (int t = 0; t < threads; t++) {
                int neighbour = b / size * size + (b + 1) % size;
                int theirs = held[neighbour * threads + threads - 1 - t];
                next[b * threads + t] = now[b * threads + t] * 3 + r + theirs + (size > 1);
            }
        held = now = next;
    }
    return now;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const bool race = !strcmp(argv[1], "race");
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    int *in, *out, *counts;
    CHECK(cudaMalloc(&in, 20000 * 4));
    CHECK(cudaMalloc(&out, 4096 * 4));
    CHECK(cudaMalloc(&counts, 256 * 4));

    std::vector<int> values(20000), want(BINS), got(4096);
    for (int i = 0; i < 20000; i++) want[values[i] = i * 37 % 251 * (i % 3) % BINS]++;
    CHECK(cudaMemcpy(in, values.data(), 20000 * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, 4096 * 4));
    CHECK(cudaDeviceSynchronize());
    histogram<<<8, 96, 0, a>>>(out, in, 20000);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(got.data(), out, BINS * 4, cudaMemcpyDeviceToHost, a));
    CHECK(cudaStreamSynchronize(a));
    printf("histogram %s\n", memcmp(got.data(), want.data(), BINS * 4) ? "wrong" : "right");

    cudaLaunchAttribute attribute;
    for (int size : {1, 3, 6, 8}) {
        cudaLaunchConfig_t c = config(2 * size, 64, 2 * 64 * 4, a, size, &attribute);
        int clusters = 0;
        CHECK(cudaOccupancyMaxActiveClusters(&clusters, ring, &c));
        CHECK(cudaLaunchKernelEx(&c, ring, out, 5));
        CHECK(cudaMemcpyAsync(got.data(), out, 2 * size * 64 * 4, cudaMemcpyDeviceToHost, a));
        CHECK(cudaStreamSynchronize(a));
        want = ring_of(2 * size, 64, size, 5);
        const bool differs = memcmp(got.data(), want.data(), want.size() * 4);
        printf("ring of %d %s, %s\n", size, differs ? "wrong" : "right", clusters > 0 ? "fits" : "does not fit");
    }

    // More than eight blocks have to be allowed; the size has to divide the grid.
    cudaLaunchConfig_t sixteen = config(16, 32, 2 * 32 * 4, a, 16, &attribute);
    printf("sixteen: %s, ", cudaGetErrorName(cudaLaunchKernelEx(&sixteen, ring, out, 3)));
    CHECK(cudaFuncSetAttribute(ring, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    printf("%s, ", cudaGetErrorName(cudaLaunchKernelEx(&sixteen, ring, out, 3)));
    CHECK(cudaMemcpyAsync(got.data(), out, 16 * 32 * 4, cudaMemcpyDeviceToHost, a));
    CHECK(cudaStreamSynchronize(a));
    want = ring_of(16, 32, 16, 3);
    printf("%s\n", memcmp(got.data(), want.data(), want.size() * 4) ? "wrong" : "right");
    cudaLaunchConfig_t odd = config(7, 32, 2 * 32 * 4, a, 2, &attribute);
    printf("odd: %s\n", cudaGetErrorName(cudaLaunchKernelEx(&odd, ring, out, 3)));
    cudaGetLastError();

    cudaLaunchConfig_t flat = config(dim3(4, 6), 32, 0, a, dim3(2, 3), &attribute);
    CHECK(cudaLaunchKernelEx(&flat, mirror, out, counts));
    CHECK(cudaEventRecord(done, a));
    if (!race) CHECK(cudaStreamWaitEvent(b, done, 0));
    std::vector<int> counted(48);
    CHECK(cudaMemcpyAsync(got.data(), out, 24 * 32 * 4, cudaMemcpyDeviceToHost, b));
    CHECK(cudaMemcpyAsync(counted.data(), counts, 48 * 4, cudaMemcpyDeviceToHost, a));
    CHECK(cudaDeviceSynchronize());
    int bad = 0;
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 4; x++) {
            int from = (y / 3 * 3 + 2 - y % 3) * 4 + x / 2 * 2 + 1 - x % 2;
            int block = y * 4 + x;
            for (int t = 0; t < 32; t++) bad += got[block * 32 + t] != from * 1000 + t + x % 2 * 3 + y % 3 * 5 + 2;
            if (x % 2 == 0 && y % 3 == 0) bad += counted[block * 2] != 6 * 32 || counted[block * 2 + 1] != 531;
        }
    printf("mirror %s\n", bad && !race ? "wrong" : "right");
    return 0;
}
