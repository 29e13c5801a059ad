// Kernels that read memory which nothing has written, and others that must stay silent.
//
//   unwritten reads|silent|doubtful CASE...    runs these; without names all, and prints each name
//
// The line that reads what nothing wrote ends in `// CASE: reads`.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_pipeline.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cg = cooperative_groups;

#define T (int)threadIdx.x
#define N (int)blockDim.x
#define G ((int)blockIdx.x * N + T)

static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "%s\n", cudaGetErrorString(status));
    exit(3);
}

const int COUNT = 512;
const size_t BYTES = COUNT * sizeof(int);

static int* room(size_t bytes = BYTES) {
    int* at;
    check(cudaMalloc(&at, bytes));
    return at;
}

static int* zeros(size_t bytes = BYTES) {
    int* at = room(bytes);
    check(cudaMemset(at, 0, bytes));
    return at;
}

__device__ int out[4096];
__device__ int begun = 5;
__device__ int plain[COUNT];
__constant__ int fixed[4] = {1, 2, 3, 4};

__global__ void fill(int* to, int n) {
    if (G < n) to[G] = G;
}
__global__ void take(const int* from, int n) {
    if (G < n) out[G] = from[G]; // halo: reads // half_fill: reads // again: reads // pool: reads // graph: reads // offset: reads // rows: reads
}

// Nothing set the counters.
__global__ void count_up(int* bins) {
    atomicAdd(&bins[T & 15], 1); // counters: reads
}
__global__ void lock(int* word) {
    while (atomicCAS(word, 0, 1) != 0) {} // lock: reads
    out[0]++;
    __threadfence();
    atomicExch(word, 0);
}
__global__ void wide(const float4* from) {
    float4 v = from[T]; // vector: reads
    out[T] = (int)(v.x + v.y + v.z + v.w);
}
template <bool ALL> __global__ void shared_part(int* from) {
    __shared__ int part[256];
    if (ALL || T < 200) part[T] = from[T];
    __syncthreads();
    out[T] = part[255 - T]; // shared: reads
}
template <bool ALL> __global__ void dynamic_part(int* from) {
    extern __shared__ int some[];
    if (ALL || T) some[T] = from[T];
    __syncthreads();
    if (T == 1) out[1] = some[0]; // dynamic: reads
}
template <bool ALL> __global__ void heap() {
    int* at = (int*)malloc(64);
    if (ALL) memset(at, 0, 64);
    out[T] = at[T & 15]; // heap: reads
    free(at);
}

struct Padded {
    char small;
    double large;
};
__global__ void members(Padded* to) {
    to[T].small = T;
    to[T].large = T;
}
// Copies by pieces of eight bytes, the padding with them.
__global__ void pieces(const Padded* from, unsigned long long* to) {
    const unsigned long long* words = (const unsigned long long*)from;
    to[T] = words[2 * T]; // padding: reads
}
__global__ void three_of_four(float* to) {
    for (int i = 0; i < 3; i++) to[T * 4 + i] = 1;
}
__global__ void over_read(const float4* from) {
    float4 v = from[T]; // tail: reads
    out[T] = (int)(v.x + v.y + v.z);
}
__global__ void bytes_of_words(unsigned char* to, int n) {
    for (int i = T; i < n; i += N) to[i] = i;
}
// The copy carries on what nobody wrote; what uses it finds it written.
__global__ void copied(const int* from) {
    __shared__ int part[128];
    __pipeline_memcpy_async(&part[T], &from[T], 4); // carried: reads
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[T] = part[127 - T];
}

__global__ void reads_variables() {
    out[T] = begun + plain[T] + fixed[T & 3];
}
__global__ void set_first(int* bins) {
    if (T < 16) atomicExch(&bins[T], 0);
}
__global__ void guarded(const int* from, int n) {
    int v = T < n ? from[T] : 0;
    __shared__ int sums[32];
    v = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), v, cg::plus<int>());
    if (T % 32 == 0) sums[T / 32] = v;
    __syncthreads();
    if (T < 32) {
        v = T < N / 32 ? sums[T] : 0;
        for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
        if (T == 0) out[0] = v;
    }
}
__global__ void of_warps(const int* from) {
    __shared__ int part[256];
    if (T < 32)
        for (int i = T; i < 256; i += 32) part[i] = from[i];
    __syncthreads();
    out[T] = part[T];
}
__global__ void sorted(const int* from) {
    typedef cub::BlockRadixSort<int, 128, 2> Sort;
    typedef cub::BlockScan<int, 128> Scan;
    __shared__ union {
        Sort::TempStorage sort;
        Scan::TempStorage scan;
    } temp;
    int keys[2] = {from[T], from[T + 128]};
    Sort(temp.sort).Sort(keys);
    __syncthreads();
    int sum;
    Scan(temp.scan).ExclusiveSum(keys[0], sum);
    out[T] = sum + keys[1];
}
__global__ void tiles(const int* from) {
    auto tile = cg::tiled_partition<64>(cg::this_thread_block());
    int v = cg::reduce(tile, from[T], cg::plus<int>());
    tile.sync();
    out[T] = v;
}
__global__ void whole(int* words) {
    words[G] = G;
    cg::this_grid().sync();
    out[G] = words[(G + 1) % (N * (int)gridDim.x)];
}
__global__ void halves(unsigned short* to) {
    to[2 * T] = 1;
    __syncthreads();
    to[2 * T + 1] = 2;
    __syncthreads();
    out[T] = ((int*)to)[T];
}

static bool without_names = true;
static int wanted_count;
static char** wanted_names;
static bool wanted(const char* name) {
    bool any = without_names;
    for (int i = 0; i < wanted_count; i++) any |= !strcmp(wanted_names[i], name);
    if (any) {
        check(cudaDeviceSynchronize());
        puts(name);
    }
    return any;
}

static cudaGraphExec_t graph_of(cudaStream_t s, bool sets) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    int* at;
    check(cudaMallocAsync(&at, BYTES, s));
    if (sets) check(cudaMemsetAsync(at, 0, BYTES, s));
    take<<<2, 256, 0, s>>>(at, COUNT);
    check(cudaFreeAsync(at, s));
    check(cudaStreamEndCapture(s, &graph));
    check(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static void reads(cudaStream_t s, int* full) {
    if (wanted("counters")) count_up<<<1, 32>>>(room());
    if (wanted("lock")) {
        int* word = room();
        lock<<<1, 1>>>(word);
    }
    if (wanted("vector")) wide<<<1, 32>>>((float4*)room());
    if (wanted("shared")) shared_part<false><<<1, 256>>>(full);
    if (wanted("dynamic")) dynamic_part<false><<<1, 64, 256>>>(full);
    if (wanted("heap")) heap<false><<<1, 1>>>();
    if (wanted("halo")) {
        int* at = room();
        fill<<<2, 256>>>(at + 1, COUNT - 2);
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("half_fill")) {
        int* at = room();
        check(cudaMemset(at, 0, BYTES / 4));
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("again")) {
        int* old = zeros(1 << 20);
        check(cudaFree(old));
        take<<<2, 256>>>(room(1 << 20), COUNT);
    }
    if (wanted("pool")) {
        int* at;
        check(cudaMallocAsync(&at, BYTES, s));
        fill<<<2, 256, 0, s>>>(at, COUNT);
        take<<<2, 256, 0, s>>>(at, COUNT);
        check(cudaFreeAsync(at, s));
        check(cudaMallocAsync(&at, BYTES, s));
        take<<<2, 256, 0, s>>>(at, COUNT);
    }
    if (wanted("graph")) {
        cudaGraphExec_t exec = graph_of(s, false);
        for (int i = 0; i < 2; i++) check(cudaGraphLaunch(exec, s));
    }
    if (wanted("offset")) {
        int* at = room();
        check(cudaMemcpy(at, full, BYTES / 2, cudaMemcpyDeviceToDevice));
        take<<<1, 2>>>(at + COUNT / 2 - 1, 2);
    }
    if (wanted("rows")) {
        int* at = room();
        check(cudaMemset2D(at, 64, 0, 60, BYTES / 64));
        take<<<2, 256>>>(at, COUNT);
    }
}

static void doubtful(int* full) {
    if (wanted("padding")) {
        Padded* at = (Padded*)room(64 * sizeof(Padded));
        members<<<1, 64>>>(at);
        pieces<<<1, 64>>>(at, (unsigned long long*)full);
    }
    if (wanted("tail")) {
        float* at = (float*)room();
        three_of_four<<<1, 32>>>(at);
        over_read<<<1, 32>>>((float4*)at);
    }
    if (wanted("carried")) copied<<<1, 128>>>(room());
}

static void silent(cudaStream_t s, int* full) {
    if (wanted("set")) take<<<2, 256>>>(zeros(), COUNT);
    if (wanted("set_async")) {
        int* at = room();
        check(cudaMemsetAsync(at, 1, BYTES, s));
        take<<<2, 256, 0, s>>>(at, COUNT);
    }
    if (wanted("set_rows")) {
        size_t pitch;
        char* at;
        check(cudaMallocPitch(&at, &pitch, 100, 8));
        check(cudaMemset2D(at, pitch, 0, 100, 8));
        for (int row = 0; row < 8; row++) take<<<1, 32>>>((int*)(at + row * pitch), 25);
    }
    if (wanted("copy_rows")) {
        size_t pitch;
        char *at, host[8 * 100] = {};
        check(cudaMallocPitch(&at, &pitch, 100, 8));
        check(cudaMemcpy2D(at, pitch, host, 100, 100, 8, cudaMemcpyHostToDevice));
        for (int row = 0; row < 8; row++) take<<<1, 32>>>((int*)(at + row * pitch), 25);
    }
    if (wanted("copies")) {
        int host[COUNT] = {}, *pinned, *at = room();
        check(cudaMallocHost(&pinned, BYTES));
        check(cudaMemcpy(at, host, BYTES, cudaMemcpyHostToDevice));
        take<<<2, 256>>>(at, COUNT);
        at = room();
        check(cudaMemcpyAsync(at, pinned, BYTES, cudaMemcpyHostToDevice, s));
        take<<<2, 256, 0, s>>>(at, COUNT);
        at = room();
        check(cudaMemcpyPeer(at, 0, full, 0, BYTES));
        take<<<2, 256>>>(at, COUNT);
        at = room();
        check(cudaMemcpy(at, full, BYTES, cudaMemcpyDefault));
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("symbol")) {
        int host[COUNT] = {};
        check(cudaMemcpyToSymbol(plain, host, BYTES));
        reads_variables<<<1, 64>>>();
    }
    if (wanted("variables")) reads_variables<<<1, 64>>>();
    if (wanted("kernels")) {
        int* at = room();
        fill<<<2, 256>>>(at, COUNT);
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("bytes")) {
        int* at = room();
        bytes_of_words<<<1, 64>>>((unsigned char*)at, BYTES);
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("halves")) halves<<<1, 64>>>((unsigned short*)room());
    if (wanted("exact_part")) {
        int* at = room();
        fill<<<1, 100>>>(at, 100);
        take<<<1, 100>>>(at, 100);
    }
    if (wanted("exchanged")) {
        int* bins = zeros();
        set_first<<<1, 32>>>(bins);
        count_up<<<1, 32>>>(bins);
    }
    if (wanted("managed")) {
        int* at;
        check(cudaMallocManaged(&at, BYTES));
        for (int i = 0; i < COUNT; i++) at[i] = i;
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("mapped")) {
        int* at;
        check(cudaHostAlloc(&at, BYTES, cudaHostAllocMapped));
        for (int i = 0; i < COUNT; i++) at[i] = i;
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("registered")) {
        int* at = (int*)aligned_alloc(4096, 4096);
        memset(at, 0, 4096);
        check(cudaHostRegister(at, 4096, cudaHostRegisterDefault));
        take<<<2, 256>>>(at, COUNT);
        check(cudaDeviceSynchronize());
        check(cudaHostUnregister(at));
    }
    if (wanted("pool_set")) {
        for (int i = 0; i < 3; i++) {
            int* at;
            check(cudaMallocAsync(&at, BYTES, s));
            check(cudaMemsetAsync(at, 0, BYTES, s));
            take<<<2, 256, 0, s>>>(at, COUNT);
            check(cudaFreeAsync(at, s));
        }
    }
    if (wanted("pool_late")) {
        // The second block is the first one's memory; the first one's readers have not run yet.
        int *one, *other;
        check(cudaMallocAsync(&one, BYTES, s));
        fill<<<2, 256, 0, s>>>(one, COUNT);
        for (int i = 0; i < 8; i++) take<<<2, 256, 0, s>>>(one, COUNT);
        check(cudaFreeAsync(one, s));
        check(cudaMallocAsync(&other, BYTES, s));
        fill<<<2, 256, 0, s>>>(other, COUNT);
        take<<<2, 256, 0, s>>>(other, COUNT);
        check(cudaFreeAsync(other, s));
    }
    if (wanted("graph_set")) {
        cudaGraphExec_t exec = graph_of(s, true);
        for (int i = 0; i < 3; i++) check(cudaGraphLaunch(exec, s));
    }
    if (wanted("handed_out")) {
        // Another process may write it.
        int* at = room(1 << 21);
        cudaIpcMemHandle_t handle;
        check(cudaIpcGetMemHandle(&handle, at));
        take<<<2, 256>>>(at, COUNT);
    }
    if (wanted("heap_set")) heap<true><<<1, 1>>>();
    if (wanted("shared_all")) shared_part<true><<<1, 256>>>(full);
    if (wanted("dynamic_all")) dynamic_part<true><<<1, 64, 256>>>(full);
    if (wanted("warps")) of_warps<<<1, 256>>>(full);
    if (wanted("copied")) copied<<<1, 128>>>(full);
    if (wanted("guarded")) guarded<<<1, 128>>>(full, 100);
    if (wanted("sorted")) sorted<<<1, 128>>>(full);
    if (wanted("tiles")) tiles<<<1, 128>>>(full);
    if (wanted("whole")) {
        int* words = room();
        void* args[] = {&words};
        check(cudaLaunchCooperativeKernel((void*)whole, 4, 64, args, 0, 0));
    }
    if (wanted("device_wide")) {
        size_t bytes = 0;
        int *sums = room(), *keys = room();
        check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, full, sums, COUNT));
        void* temp = room(bytes);
        check(cub::DeviceScan::ExclusiveSum(temp, bytes, full, sums, COUNT));
        check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, full, keys, COUNT));
        temp = room(bytes);
        check(cub::DeviceRadixSort::SortKeys(temp, bytes, full, keys, COUNT));
        int* sum = room(4);
        check(cub::DeviceReduce::Sum(nullptr, bytes, sums, sum, COUNT));
        temp = room(bytes);
        check(cub::DeviceReduce::Sum(temp, bytes, sums, sum, COUNT));
        take<<<1, 1>>>(sum, 1);
        take<<<2, 256>>>(keys, COUNT);
    }
}

int main(int count, char** words) {
    if (count < 2) return 2;
    without_names = count == 2;
    wanted_count = count - 2;
    wanted_names = words + 2;
    cudaStream_t s;
    check(cudaStreamCreate(&s));
    int host[COUNT], *full = room();
    for (int i = 0; i < COUNT; i++) host[i] = i * 7 % 101;
    check(cudaMemcpy(full, host, BYTES, cudaMemcpyHostToDevice));
    if (!strcmp(words[1], "reads")) reads(s, full);
    if (!strcmp(words[1], "doubtful")) doubtful(full);
    if (!strcmp(words[1], "silent")) silent(s, full);
    check(cudaDeviceSynchronize());
    return 0;
}
