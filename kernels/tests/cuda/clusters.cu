// Stores whose places are told by a block's place in its cluster.
#define REGISTER(name, register)                                                                   \
    __device__ unsigned name() {                                                                   \
        unsigned v;                                                                                \
        asm("mov.u32 %0, %%" register ";" : "=r"(v));                                              \
        return v;                                                                                  \
    }
REGISTER(rank, "cluster_ctarank")
REGISTER(ranks, "cluster_nctarank")
REGISTER(cluster_x, "clusterid.x")
REGISTER(cluster_y, "clusterid.y")
REGISTER(clusters_x, "nclusterid.x")
REGISTER(own_x, "cluster_ctaid.x")
REGISTER(own_y, "cluster_ctaid.y")
REGISTER(size_x, "cluster_nctaid.x")
REGISTER(size_y, "cluster_nctaid.y")

extern "C" __global__ void k_ranks(int *y) {
    y[((cluster_y() * clusters_x() + cluster_x()) * ranks() + rank()) * blockDim.x + threadIdx.x] = 1;
}

extern "C" __global__ void k_places(int *y) {
    int row = cluster_y() * size_y() + own_y(), column = cluster_x() * size_x() + own_x();
    y[(row * gridDim.x + column) * blockDim.x + threadIdx.x] = 1;
}

extern "C" __global__ void k_leaders(int *y) {
    if (rank() == 0) y[(cluster_y() * clusters_x() + cluster_x()) * blockDim.x + threadIdx.x] = 1;
}

// Half of each cluster; places of the others stay as they are.
extern "C" __global__ void k_halves(int *y) {
    if (own_x() * 2 < size_x()) y[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = 1;
}

// A warp's number from lane 0, and tiles by clusters in a loop.
extern "C" __global__ void k_walk(int *y, int tiles) {
    int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    for (int tile = cluster_x(); tile < tiles; tile += clusters_x())
        y[(tile * size_x() + own_x()) * blockDim.x + warp * 32 + threadIdx.x % 32] = 1;
}
