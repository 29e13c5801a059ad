// Kernels of which some threads wait for the kernel in front (`griddepcontrol.wait`), and hand that on to the others:
// where the wait stands, by how it is handed on, each as a twin that does so behind the wait (`MENDED`) and one that
// does so in front of it. And kernels that let the next one begin in a branch.
//   handed_waits
// Prints a line for each pair of kernels.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

constexpr int N = 1024, THREADS = 128;

// `x` is written by the kernel in front, `y` by the one behind; `w` holds zeros, `flag` is 1, `off` is 0, `turns` is 2.
struct Args {
    int *x, *y;
    const int *w;
    int flag, off, turns;
};

enum Where { LANE, WARP, ELECTED, LOOP, PARAMETER, DATA, EARLY_RETURN, THREAD, WHERES };
enum How { NOTHING, SYNCWARP, BARRIER, NAMED, CLUSTER, MBARRIER, FLAG, HOWS };

__device__ __forceinline__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ bool elected() {
    unsigned yes;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(yes));
    return yes;
}
__device__ __forceinline__ unsigned rank() {
    unsigned r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

template <int HOW> __device__ __forceinline__ void hand_on(unsigned long long *object, int *flag, bool first) {
    unsigned at = (unsigned)__cvta_generic_to_shared(object);
    if (HOW == SYNCWARP) __syncwarp();
    if (HOW == BARRIER) __syncthreads();
    if (HOW == NAMED) asm volatile("bar.sync 3, %0;" ::"r"(THREADS) : "memory");
    if (HOW == CLUSTER) {
        asm volatile("barrier.cluster.arrive;" ::: "memory");
        asm volatile("barrier.cluster.wait;" ::: "memory");
    }
    if (HOW == MBARRIER) {
        if (threadIdx.x == 0 && first) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
        asm volatile("{\n.reg .pred p;\nAGAIN%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
                     "@!p bra AGAIN%=;\n}" ::"r"(at) : "memory");
    }
    if (HOW == FLAG) {
        if (threadIdx.x == 0 && first) {
            __threadfence_block();
            *(volatile int *)flag = 1;
        }
        while (!*(volatile int *)flag) {}
        __threadfence_block();
    }
}

template <int WHERE, int HOW> __device__ __forceinline__ void wait_somewhere(const Args &a, int turn) {
    if (HOW == CLUSTER && rank() != 0) return;
    bool lane = threadIdx.x % 32 == 0;
    if (WHERE == LANE || WHERE == EARLY_RETURN) if (lane) wait();
    if (WHERE == WARP) if (threadIdx.x < 32) wait();
    if (WHERE == ELECTED) if (elected()) wait();
    if (WHERE == LOOP) if (turn == 0 && lane) wait();
    if (WHERE == PARAMETER) if (a.flag) if (lane) wait();
    if (WHERE == DATA) if (a.w[0] == 0) if (lane) wait();
    if (WHERE == THREAD) if (threadIdx.x == 0) wait();
}

template <int WHERE, int HOW, bool MENDED> __global__ void form(Args a) {
    __shared__ unsigned long long object;
    __shared__ int flag;
    int i = index(), sum = 0;
    if (HOW == MBARRIER || HOW == FLAG) {
        if (threadIdx.x == 0) {
            flag = 0;
            unsigned at = (unsigned)__cvta_generic_to_shared(&object);
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        }
        __syncthreads();
    }
    if (WHERE == EARLY_RETURN && HOW != NAMED && HOW != CLUSTER && threadIdx.x >= 64) return;
    for (int turn = 0; turn < (WHERE == LOOP ? a.turns : 1); turn++) {
        if (!MENDED) hand_on<HOW>(&object, &flag, turn == 0);
        wait_somewhere<WHERE, HOW>(a, turn);
        if (MENDED) hand_on<HOW>(&object, &flag, turn == 0);
        sum += ((volatile int *)a.x)[i];
    }
    a.y[i] = sum;
}

__global__ void triggers(Args a) {
    trigger();
    a.x[index()] = index();
}

// When the kernel in front triggers.
enum When { BY_PARAMETER, OFF, IN_ONE_BLOCK, IN_ALL_BUT_ONE, IN_ONE_THREAD, BY_LOADED, BY_SHAPE, BY_OTHER_SHAPE, WHENS };
template <int WHEN> __global__ void triggers_if(Args a) {
    if (WHEN == BY_PARAMETER) if (a.flag) trigger();
    if (WHEN == OFF) if (a.off) trigger();
    if (WHEN == IN_ONE_BLOCK) if (blockIdx.x == 0) trigger();
    if (WHEN == IN_ALL_BUT_ONE) if (blockIdx.x != 3) trigger();
    if (WHEN == IN_ONE_THREAD) if (threadIdx.x == 5) trigger();
    if (WHEN == BY_LOADED) if (a.w[blockIdx.x] == 0) trigger();
    if (WHEN == BY_SHAPE) if (gridDim.x == N / THREADS) trigger();
    if (WHEN == BY_OTHER_SHAPE) if (gridDim.x < 3) trigger();
    a.x[index()] = index();
}
template <int WHEN> __global__ void never_waits(Args a) { a.y[index()] = a.x[index()]; }
template <int WHEN> __global__ void waits(Args a) {
    wait();
    a.y[index()] = a.x[index()];
}

// Blocks that store and end without a trigger, while another one triggers, or none does. The manual promises nothing to
// a kernel that does not wait behind one that triggers.
template <int TRIGGERS> __global__ void stores_in_others(Args a) {
    if (blockIdx.x != 0) a.x[index()] = index();
    else if (TRIGGERS) trigger();
}
template <int TRIGGERS> __global__ void reads_of_others(Args a) { a.y[index()] = a.x[index()]; }
template <int TRIGGERS> __global__ void waits_for_others(Args a) {
    wait();
    a.y[index()] = a.x[index()];
}

typedef void (*Kernel)(Args);
static Args args;
static cudaStream_t stream;

static void launch(Kernel kernel, bool overlaps, bool cluster) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    int n = 0;
    if (overlaps) {
        attributes[n].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[n++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster) {
        attributes[n].id = cudaLaunchAttributeClusterDimension;
        attributes[n].val.clusterDim = {2, 1, 1}, n++;
    }
    config.gridDim = N / THREADS, config.blockDim = THREADS, config.stream = stream;
    config.attrs = attributes, config.numAttrs = n;
    CHECK(cudaLaunchKernelEx(&config, kernel, args));
}

static void pair(Kernel first, Kernel second, bool cluster) {
    launch(first, false, false);
    launch(second, true, cluster);
    CHECK(cudaDeviceSynchronize());
}

template <int WHERE, int HOW> static void twins() {
    // A warp of which some threads have left can not be asked to elect, nor can a named barrier count on them.
    printf("%d %d\n", WHERE, HOW);
    pair(triggers, form<WHERE, HOW, false>, HOW == CLUSTER);
    pair(triggers, form<WHERE, HOW, true>, HOW == CLUSTER);
}
template <int WHERE, int HOW = 0> static void hows() {
    twins<WHERE, HOW>();
    if constexpr (HOW + 1 < HOWS) hows<WHERE, HOW + 1>();
}
template <int WHERE = 0> static void wheres() {
    hows<WHERE>();
    if constexpr (WHERE + 1 < WHERES) wheres<WHERE + 1>();
}
template <int WHEN = 0> static void whens() {
    printf("%d\n", WHEN);
    pair(triggers_if<WHEN>, never_waits<WHEN>, false);
    pair(triggers_if<WHEN>, waits<WHEN>, false);
    if constexpr (WHEN + 1 < WHENS) whens<WHEN + 1>();
}
template <int TRIGGERS> static void others() {
    pair(stores_in_others<TRIGGERS>, reads_of_others<TRIGGERS>, false);
    pair(stores_in_others<TRIGGERS>, waits_for_others<TRIGGERS>, false);
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *w;
    for (int **p : {&args.x, &args.y, &w}) {
        CHECK(cudaMalloc(p, N * sizeof(int)));
        CHECK(cudaMemset(*p, 0, N * sizeof(int)));
    }
    args.w = w, args.flag = 1, args.off = 0, args.turns = 2;
    CHECK(cudaDeviceSynchronize());
    wheres();
    whens();
    others<0>();
    others<1>();
    return 0;
}
