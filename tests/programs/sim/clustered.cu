// Two launches on two streams, of kernels whose blocks run in clusters, meet at a barrier of the grid, or are many:
//   clustered NAME racy|mended
// The launches write parts of one buffer: parts that share an element, or do not. What blocks put into each other's
// shared memory is nobody else's.
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int code_ = (int)(call);                                                                                       \
        if (code_ != 0) {                                                                                              \
            fprintf(stderr, "line %d: %d\n", __LINE__, code_);                                                         \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

constexpr int THREADS = 64;

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
#define REGISTER(name)                                                                                                 \
    __device__ int name() {                                                                                            \
        int n;                                                                                                         \
        asm volatile("mov.u32 %0, %%" #name ";" : "=r"(n));                                                            \
        return n;                                                                                                      \
    }
REGISTER(cluster_ctarank)
REGISTER(cluster_nctarank)
#define REGISTER_OF_AXIS(name, axis)                                                                                   \
    __device__ int name##_##axis() {                                                                                   \
        int n;                                                                                                         \
        asm volatile("mov.u32 %0, %%" #name "." #axis ";" : "=r"(n));                                                  \
        return n;                                                                                                      \
    }
REGISTER_OF_AXIS(clusterid, x)
REGISTER_OF_AXIS(clusterid, y)
REGISTER_OF_AXIS(nclusterid, x)
REGISTER_OF_AXIS(cluster_ctaid, x)
REGISTER_OF_AXIS(cluster_ctaid, y)
REGISTER_OF_AXIS(cluster_nctaid, x)
REGISTER_OF_AXIS(cluster_nctaid, y)

__device__ unsigned remote(const void *p, int rank) {
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(at(p)), "r"(rank));
    return address;
}
__device__ void prepare(uint64_t *bar, int bytes) {
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(bar)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
    }
    cg::this_cluster().sync();
}
__device__ void await(uint64_t *bar) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(at(bar)) : "memory");
}

// The memory of another block, by a pointer.
__global__ void by_pointer(int *y) {
    __shared__ int got[THREADS];
    auto cluster = cg::this_cluster();
    *cluster.map_shared_rank(got + threadIdx.x, cluster.block_rank() ^ 1) = threadIdx.x;
    cluster.sync();
    y[blockIdx.x * THREADS + threadIdx.x] = got[threadIdx.x];
}

// The same by PTX's addresses: stored, loaded, counted.
__global__ void by_address(int *y) {
    __shared__ int got[THREADS], count;
    if (threadIdx.x == 0) count = 0;
    cg::this_cluster().sync();
    int other = cluster_ctarank() ^ 1, back;
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote(got + threadIdx.x, other)), "r"(threadIdx.x) : "memory");
    asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(remote(&count, other)) : "memory");
    cg::this_cluster().sync();
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(back) : "r"(remote(got + threadIdx.x, other)) : "memory");
    y[blockIdx.x * THREADS + threadIdx.x] = back + count;
    cg::this_cluster().sync();
}

// ... by asynchronous stores.
__global__ void by_async(int *y) {
    __shared__ int got[THREADS];
    __shared__ uint64_t bar;
    prepare(&bar, sizeof got);
    int other = cluster_ctarank() ^ 1;
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(remote(got + threadIdx.x, other)),
                 "r"((int)threadIdx.x), "r"(remote(&bar, other)) : "memory");
    await(&bar);
    y[blockIdx.x * THREADS + threadIdx.x] = got[threadIdx.x];
    cg::this_cluster().sync();
}

// ... by bulk copies.
__global__ void by_bulk(int *y) {
    __shared__ alignas(16) int own[THREADS], got[THREADS];
    __shared__ uint64_t bar;
    own[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async;" ::: "memory");
    prepare(&bar, sizeof got);
    int other = cluster_ctarank() ^ 1;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(remote(got, other)),
                     "r"(at(own)), "r"((int)sizeof got), "r"(remote(&bar, other)) : "memory");
    await(&bar);
    y[blockIdx.x * THREADS + threadIdx.x] = got[threadIdx.x];
    cg::this_cluster().sync();
}

// Addresses of the block's place in its cluster.
__global__ void rank(int *y) { y[(clusterid_x() * cluster_nctarank() + cluster_ctarank()) * THREADS + threadIdx.x] = 1; }
__global__ void reversed(int *y) {
    y[(clusterid_x() * cluster_nctarank() + cluster_nctarank() - 1 - cluster_ctarank()) * THREADS + threadIdx.x] = 1;
}
__global__ void leader(int *y) {
    if (cluster_ctarank() == 0) y[clusterid_x() * THREADS + threadIdx.x] = 1;
}
// Tiles of clusters in rows and columns.
__global__ void places(int *y) {
    int row = clusterid_y() * cluster_nctaid_y() + cluster_ctaid_y(), column = clusterid_x() * cluster_nctaid_x() + cluster_ctaid_x();
    y[(row * nclusterid_x() * cluster_nctaid_x() + column) * THREADS + threadIdx.x] = 1;
}
// The code says how large clusters are, and the launch does not.
__global__ void __cluster_dims__(4, 1, 1) fixed(int *y) {
    y[(blockIdx.x / 4 * 4 + cluster_ctarank()) * THREADS + threadIdx.x] = 1;
}

// One copy for two blocks.
__global__ void __cluster_dims__(2, 1, 1) multicast(const __grid_constant__ CUtensorMap map, int *y, int row) {
    __shared__ alignas(128) int tile[THREADS];
    __shared__ uint64_t bar;
    prepare(&bar, sizeof tile);
    if (cluster_ctarank() == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(at(tile)),
                     "l"(&map), "r"(0), "r"(row), "r"(at(&bar)), "h"((unsigned short)3) : "memory");
    await(&bar);
    y[blockIdx.x * THREADS + threadIdx.x] = tile[threadIdx.x];
    cg::this_cluster().sync();
}

// All blocks meet, twice.
__global__ void together(int *y) {
    auto grid = cg::this_grid();
    int i = blockIdx.x * THREADS + threadIdx.x, n = gridDim.x * THREADS;
    y[i] = 1;
    grid.sync();
    int other = y[n - 1 - i];
    grid.sync();
    y[i] = other;
}

// Blocks that are too many to be looked at one by one, in tiles of clusters.
__global__ void many(int *y, int columns) {
    int cluster = clusterid_x(), row = cluster / columns, column = cluster % columns;
    y[((row * cluster_nctarank() + cluster_ctarank()) * columns + column) * THREADS + threadIdx.x] = 1;
}

static cudaStream_t streams[2];

template <typename... P, typename... A> static void launch(int stream, void (*kernel)(P...), dim3 grid, dim3 cluster, A... args) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster.x, attribute.val.clusterDim.y = cluster.y, attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = THREADS, config.stream = streams[stream];
    config.attrs = &attribute, config.numAttrs = cluster.x * cluster.y > 1;
    CHECK(cudaLaunchKernelEx(&config, kernel, P(args)...));
}

int main(int argc, char **argv) {
    std::string name = argc > 1 ? argv[1] : "";
    bool racy = argc > 2 && !strcmp(argv[2], "racy");
    int blocks = name == "many" ? 6144 : 16, part = (name == "leader" ? blocks / 4 : blocks) * THREADS;
    int *y;
    CHECK(cudaMalloc(&y, 2 * part * sizeof(int)));
    CHECK(cudaMemset(y, 0, 2 * part * sizeof(int)));
    for (auto &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    struct Simple {
        const char *name;
        void (*kernel)(int *);
        dim3 grid, cluster;
    };
    const Simple simple[] = {
        {"by_pointer", by_pointer, 16, 2}, {"by_address", by_address, 16, 2}, {"by_async", by_async, 16, 2}, {"by_bulk", by_bulk, 16, 2},
        {"rank", rank, 16, 4}, {"reversed", reversed, 16, 4}, {"leader", leader, 16, 4}, {"places", places, dim3(4, 4), dim3(2, 2)},
        {"fixed", fixed, 16, 1}};
    // Of places in clusters the bytes are a bound: one element at its edge would say little.
    bool places = name == "rank" || name == "reversed" || name == "leader" || name == "places" || name == "fixed" || name == "many";
    for (int k = 0; k < 2; k++) {
        int *own = y + k * (racy ? places ? part / 2 : part - 1 : part);
        for (const Simple &one : simple)
            if (name == one.name) launch(k, one.kernel, one.grid, one.cluster, own);
        if (name == "many") launch(k, many, blocks, 4, own, 96);
        if (name == "together") {
            void *args[] = {&own};
            CHECK(cudaLaunchCooperativeKernel((void *)together, dim3(16), dim3(THREADS), args, 0, streams[k]));
        }
    }
    if (name == "multicast") {
        // Rows of the tensor are read, and set by the other stream.
        int *tensor;
        CHECK(cudaMalloc(&tensor, 8 * THREADS * sizeof(int)));
        CHECK(cudaMemset(tensor, 0, 8 * THREADS * sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        void *encode = nullptr;
        cudaDriverEntryPointQueryResult found;
        CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
        cuuint64_t sizes[] = {THREADS, 8}, strides[] = {THREADS * sizeof(int)};
        cuuint32_t box[] = {THREADS, 1}, step[] = {1, 1};
        alignas(64) CUtensorMap map;
        CHECK(((decltype(&cuTensorMapEncodeTiled))encode)(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, tensor, sizes, strides, box, step,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        multicast<<<2, THREADS, 0, streams[0]>>>(map, y, 3);
        CHECK(cudaMemsetAsync(tensor + (racy ? 3 : 4) * THREADS, 1, THREADS * sizeof(int), streams[1]));
    }
    CHECK(cudaDeviceSynchronize());
    return 0;
}
