// Programmatic dependent launch in programs that are right, whatever overlaps: prints how many of the cases are. Each
// is a sequence of launches of one stream, of which all but the first may overlap the one before it.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__device__ __forceinline__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void fill(int *x) { trigger(); x[index()] = index(); }
// Adds one to each number that the kernel in front has left.
__global__ void step(int *x) { trigger(); wait(); x[index()]++; }
__global__ void step_late(int *x) { wait(); x[index()]++; trigger(); }
// The other half of the threads waits for a barrier of the block.
__global__ void step_by_one(int *x) {
    __shared__ int begun[256];
    begun[threadIdx.x] = index();
    if (threadIdx.x == 0) wait();
    __syncthreads();
    x[begun[threadIdx.x]]++;
}
// The blocks of a cluster wait for each other in front of the wait and behind it.
__global__ void __cluster_dims__(2, 1, 1) step_in_cluster(int *x) {
    trigger();
    cg::this_cluster().sync();
    wait();
    cg::this_cluster().sync();
    x[index()]++;
}
// Block 0 triggers when another block has stored what it stores behind its own trigger.
__global__ void fill_in_turn(int *x, volatile int *flag) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) while (!*flag) __nanosleep(100);
        __syncthreads();
    }
    trigger();
    x[index()] = index();
    __syncthreads();
    __threadfence();
    if (blockIdx.x == 1 && threadIdx.x == 0) *flag = 1;
}
// Sets a flag behind the trigger, and the next kernel spins for it in front of its wait.
__global__ void fill_and_tell(int *x, volatile int *flag) {
    trigger();
    x[index()] = index();
    __threadfence();
    if (index() == 0) *flag = 1;
}
__global__ void spin_and_step(int *x, volatile int *flag) {
    if (threadIdx.x == 0) while (!*flag) __nanosleep(100);
    __syncthreads();
    wait();
    x[index()]++;
}
// Faults before its wait.
__global__ void fault(int *x) { if (index() == 3) x[1ull << 40] = 1; wait(); x[index()]++; }

static cudaStream_t stream;
// A kernel faults: launches may say so.
static bool faults;

template <class... P, class... A> static void launch(void (*kernel)(P...), int blocks, bool overlaps, A... args) {
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = blocks, config.blockDim = 128, config.stream = stream;
    config.attrs = &attribute, config.numAttrs = overlaps;
    cudaError_t error = cudaLaunchKernelEx(&config, kernel, args...);
    if (!faults) CHECK(error);
}

static int *x, *flag;

// Whether each number is its index and so much more.
static bool holds(int blocks, int more) {
    std::vector<int> found(blocks * 128);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(found.data(), x, found.size() * sizeof(int), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < (int)found.size(); i++) wrong += found[i] != i + more;
    if (wrong) fprintf(stderr, "%d blocks, +%d: %d are wrong\n", blocks, more, wrong);
    CHECK(cudaMemset(flag, 0, sizeof(int)));
    return !wrong;
}

int main() {
    const int MOST = 3000;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&x, MOST * 128 * sizeof(int)));
    CHECK(cudaMalloc(&flag, sizeof(int)));
    CHECK(cudaMemset(flag, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    int right = 0;
    launch(fill, 4, false, x), launch(step, 4, true, x);
    right += holds(4, 1);
    launch(fill, 4, false, x);
    for (int n = 0; n < 40; n++) launch(n % 3 ? step : step_late, 4, true, x);
    right += holds(4, 40);
    launch(fill, 4, false, x), launch(step_by_one, 4, true, x), launch(step_by_one, 4, true, x);
    right += holds(4, 2);
    launch(fill, 8, false, x), launch(step_in_cluster, 8, true, x), launch(step_in_cluster, 8, true, x);
    right += holds(8, 2);
    launch(fill, MOST, false, x), launch(step, MOST, true, x), launch(step, MOST, true, x);
    right += holds(MOST, 2);
    launch(fill_in_turn, 4, false, x, (volatile int *)flag), launch(step, 4, true, x);
    right += holds(4, 1);
    launch(fill_and_tell, 4, false, x, (volatile int *)flag);
    launch(spin_and_step, 4, true, x, (volatile int *)flag);
    right += holds(4, 1);
    // In a graph, twice.
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch(fill, 4, false, x), launch(step, 4, true, x), launch(step_late, 4, true, x);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    right += holds(4, 2);
    // The error comes to the host, and the kernel behind the fault ends.
    faults = true;
    launch(fill, 4, false, x), launch(fault, 4, true, x), launch(step, 4, true, x);
    right += cudaStreamSynchronize(stream) == cudaErrorIllegalAddress;
    printf("%d of 9 right\n", right);
    return 0;
}
