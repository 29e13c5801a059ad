// Pairs of kernels of one stream, the second launched with the attribute that lets it overlap the first: forms of what
// programs do about `griddepcontrol.wait`, after public reports of such races. A kernel that begins with `racy_`
// touches what the kernel before it may still write or read; its twin `mended_` does not, nor does any `silent_`. A
// `moved_` one does in machine code only, where the compiler has moved the access, and a `lanes_` one does not in
// machine code, where the lanes of a warp join behind the branch in which some of them wait.
//   programmatic stream|capture [NAME|-PART]
// With a name one pair only; with a part of names all but those.
// Prints the name of each second kernel, and a hash of what the kernels left in memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

constexpr int N = 1024, THREADS = 256;

// What each kernel gets: `x` is written by the kernel before it, which reads `z`; `y` is its own, `w` was written long
// ago, `shape` belongs to `x`. `flag` is 1.
struct Args {
    int *x, *y, *z;
    const int *w;
    int *shape;
    cudaTextureObject_t texture;
    int flag;
};

__device__ __forceinline__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void trigger() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ __forceinline__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __noinline__ void wait_elsewhere(int *y, int i) {
    if (y[N + i] == -7) y[N + i] = 0;
    wait();
}

// --- The first kernels.
__device__ __forceinline__ void fill(const Args &a) {
    int i = index();
    a.x[i] = a.z[i] + i;
    if (i == 0) *a.shape = N;
}
__global__ void triggers(Args a) { trigger(); fill(a); }
__global__ void triggers_late(Args a) { fill(a); trigger(); }
__global__ void never_triggers(Args a) { fill(a); }
__global__ void one_thread_triggers(Args a) {
    if (threadIdx.x == 0) trigger();
    fill(a);
}
__global__ void releases_early(Args a) {
    fill(a);
    if (threadIdx.x == 0) trigger();
}
// Between the first kernel and the last one of a chain.
__global__ void waits_then_triggers(Args a) { wait(); trigger(); a.y[2 * N + index()] = 1; }
__global__ void triggers_then_waits(Args a) { trigger(); wait(); a.y[2 * N + index()] = 1; }
__global__ void waits_only(Args a) { wait(); a.y[2 * N + index()] = 1; }
__global__ void does_neither(Args a) { a.y[2 * N + index()] = 1; }
__global__ void triggers_only(Args a) { trigger(); a.y[2 * N + index()] = 1; }

#define KERNEL(name) __global__ void name(Args a)

// --- Never waits (CUTLASS 2760, llama.cpp 23690).
KERNEL(racy_never_waits) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(mended_never_waits) { int i = index(); wait(); a.y[i] = a.x[i]; }

// The wait is compiled out by a macro, or for older code (FlashInfer 2708, CCCL 9134).
template <bool ENABLED> __device__ __forceinline__ void wait_if_enabled() {
    if constexpr (ENABLED) wait();
}
KERNEL(racy_compiled_out) { int i = index(); wait_if_enabled<false>(); a.y[i] = a.x[i]; }
KERNEL(mended_compiled_out) { int i = index(); wait_if_enabled<true>(); a.y[i] = a.x[i]; }

// Reads the problem's shape before the wait, in a constructor (CUTLASS 2962; TensorRT-LLM 17842: lengths).
struct Scheduler {
    int size;
    __device__ explicit Scheduler(const int *shape) : size(*(volatile const int *)shape) {}
};
KERNEL(racy_shape) {
    int i = index();
    Scheduler scheduler(a.shape);
    wait();
    if (i < scheduler.size) a.y[i] = a.x[i];
}
KERNEL(mended_shape) {
    int i = index();
    wait();
    Scheduler scheduler(a.shape);
    if (i < scheduler.size) a.y[i] = a.x[i];
}

// One warp has no wait (CUTLASS 3279: scale factors).
KERNEL(racy_one_warp) {
    int i = index();
    if (threadIdx.x / 32 == 3) {
        a.y[i] = a.x[i];
    } else {
        wait();
        a.y[i] = 2 * a.x[i];
    }
}
KERNEL(mended_one_warp) {
    int i = index();
    if (threadIdx.x / 32 == 3) {
        wait();
        a.y[i] = a.x[i];
    } else {
        wait();
        a.y[i] = 2 * a.x[i];
    }
}

// The warp that loads waits; the one that writes the result over what the first kernel reads does not (FlashInfer 4685).
KERNEL(racy_epilogue) {
    int i = index();
    if (threadIdx.x < 128) {
        wait();
        a.y[i] = a.x[i];
    } else {
        a.z[i] = i;
    }
}
KERNEL(mended_epilogue) {
    int i = index();
    if (threadIdx.x < 128) {
        wait();
        a.y[i] = a.x[i];
    } else {
        wait();
        a.z[i] = i;
    }
}

// A norm that loads residual and weight before the wait (FlashInfer 5081): the weight was written long ago.
KERNEL(racy_residual) {
    int i = index();
    int residual = a.x[i], weight = __ldg(a.w + i);
    wait();
    a.y[i] = residual * weight;
}
KERNEL(mended_residual) {
    int i = index();
    int weight = __ldg(a.w + i);
    wait();
    a.y[i] = a.x[i] * weight;
}

// The load of the first turn is hoisted above the wait in the loop (Triton 11905).
KERNEL(racy_pipelined) {
    int sum = 0, next = ((volatile int *)a.x)[threadIdx.x];
    for (int k = 0; k < N / THREADS; k++) {
        int now = next;
        wait();
        if (k + 1 < N / THREADS) next = ((volatile int *)a.x)[(k + 1) * THREADS + threadIdx.x];
        sum += now;
    }
    a.y[index()] = sum;
}
KERNEL(mended_pipelined) {
    int sum = 0;
    for (int k = 0; k < N / THREADS; k++) {
        wait();
        sum += ((volatile int *)a.x)[k * THREADS + threadIdx.x];
    }
    a.y[index()] = sum;
}

// A load through the read-only cache that is above the wait in the code that runs (llama.cpp 23825).
KERNEL(racy_moved) {
    __shared__ int kept[THREADS];
    int i = index();
    kept[threadIdx.x ^ 1] = __ldg(a.x + i);
    wait();
    __syncthreads();
    a.y[i] = kept[threadIdx.x];
}
KERNEL(mended_moved) {
    __shared__ int kept[THREADS];
    int i = index();
    wait();
    kept[threadIdx.x ^ 1] = __ldg(a.x + i);
    __syncthreads();
    a.y[i] = kept[threadIdx.x];
}

// A new kernel of a library that launches all of its kernels with the attribute (llama.cpp 23690).
KERNEL(racy_new_kernel) {
    for (int i = index(); i < N; i += gridDim.x * blockDim.x) a.y[i] = max(a.x[i], 0);
}
KERNEL(mended_new_kernel) {
    wait();
    for (int i = index(); i < N; i += gridDim.x * blockDim.x) a.y[i] = max(a.x[i], 0);
}
// The code is built for a device without the instruction, and its wait is empty there (CCCL 9134).
template <int ARCH> __device__ __forceinline__ void wait_from_90() {
    if constexpr (ARCH >= 900) wait();
}
KERNEL(racy_old_code) { int i = index(); wait_from_90<800>(); a.y[i] = a.x[i] + 1; }
KERNEL(mended_old_code) { int i = index(); wait_from_90<900>(); a.y[i] = a.x[i] + 1; }
// The kernel in front triggers before it stores what this one reads (TensorRT-LLM 14668).
KERNEL(racy_published) { int i = index(); a.y[i] = a.x[i] - 1; }
KERNEL(mended_published) { int i = index(); wait(); a.y[i] = a.x[i] - 1; }
// Lengths of rows that are read before the wait (TensorRT-LLM 17842).
KERNEL(racy_lengths) {
    int i = index(), length = ((volatile int *)a.x)[blockIdx.x * THREADS];
    wait();
    if (threadIdx.x < length) a.y[i] = a.x[i];
}
KERNEL(mended_lengths) {
    int i = index();
    wait();
    int length = ((volatile int *)a.x)[blockIdx.x * THREADS];
    if (threadIdx.x < length) a.y[i] = a.x[i];
}
// The kernel in front triggers behind stores of its own thread, without a barrier (FlashInfer 3361: copies that are
// under way).
KERNEL(racy_released) { int i = index(); a.y[i] = a.x[i ^ 64]; }
KERNEL(mended_released) { int i = index(); wait(); a.y[i] = a.x[i ^ 64]; }
// Registered for overlapping though it does not wait: harmless as long as no kernel in front triggers (imp 1655, 1833).
KERNEL(racy_registered) { int i = index(); a.y[i] = 3 * a.x[i]; }
KERNEL(mended_registered) { int i = index(); a.y[i] = 3 * a.x[i]; }
// Launched to overlap by default, and not any more (SGLang 23765).
KERNEL(racy_by_default) { int i = index(); a.y[i] = 4 * a.x[i]; }
KERNEL(mended_by_default) { int i = index(); a.y[i] = 4 * a.x[i]; }

// Writes before the wait what the first kernel still reads, or writes.
KERNEL(racy_overwrites) { int i = index(); a.z[i] = i; wait(); a.y[i] = a.x[i]; }
KERNEL(mended_overwrites) { int i = index(); wait(); a.z[i] = i; a.y[i] = a.x[i]; }
// Loads behind the wait what it has written in front of it.
KERNEL(racy_rereads) { int i = index(); a.z[i] = i; wait(); a.y[i] = a.x[i] + ((volatile int *)a.z)[i]; }
KERNEL(mended_rereads) { int i = index(); wait(); a.z[i] = i; a.y[i] = a.x[i] + ((volatile int *)a.z)[i]; }
KERNEL(racy_adds) { int i = index(); atomicAdd(a.x + i, 1); wait(); a.y[i] = i; }
KERNEL(mended_adds) { int i = index(); wait(); atomicAdd(a.x + i, 1); a.y[i] = i; }
KERNEL(racy_texture) { int i = index(); int value = tex1Dfetch<int>(a.texture, i); wait(); a.y[i] = value; }
// The compiler moves the fetch above the wait, which it takes for no store to the texture.
KERNEL(moved_texture) {
    int i = index();
    wait();
    a.y[i] = tex1Dfetch<int>(a.texture, i);
}

// A launch decides whether the kernel waits.
KERNEL(racy_switched_off) { int i = index(); if (!a.flag) wait(); a.y[i] = a.x[i]; }
KERNEL(mended_switched_off) { int i = index(); if (a.flag) wait(); a.y[i] = a.x[i]; }

// One thread waits for the block, and a barrier hands that on; without the barrier, or in some blocks only, it does not.
KERNEL(racy_without_barrier) { int i = index(); if (threadIdx.x == 0) wait(); a.y[i] = a.x[i]; }
KERNEL(racy_in_one_block) { int i = index(); if (blockIdx.x == 0) wait(); __syncthreads(); a.y[i] = a.x[i]; }
KERNEL(racy_barrier_first) { int i = index(); __syncthreads(); if (threadIdx.x == 0) wait(); a.y[i] = a.x[i]; }
KERNEL(mended_without_barrier) { int i = index(); if (threadIdx.x == 0) wait(); __syncthreads(); a.y[i] = a.x[i]; }
KERNEL(silent_one_warp_for_all) { int i = index(); if (threadIdx.x < 32) wait(); __syncthreads(); a.y[i] = a.x[i]; }
// Machine code for 9.0 leaves the barrier of the warp to the place where the branch joins.
KERNEL(silent_lane_for_warp) {
    int i = index();
    if (threadIdx.x % 32 == 0) wait();
    __syncwarp();
    a.y[i] = a.x[i];
}

// The waits of threads that read, and of others.
KERNEL(racy_other_half) {
    int i = index();
    if (threadIdx.x < 128) wait();
    if (threadIdx.x >= 128) a.y[i] = a.x[i];
}
KERNEL(mended_other_half) {
    int i = index();
    if (threadIdx.x < 128) wait();
    if (threadIdx.x < 128) a.y[i] = a.x[i];
}
KERNEL(silent_both_branches) {
    int i = index(), k = 2;
    if (i & 1) { wait(); k = 3; } else { wait(); }
    a.y[i] = k * a.x[i];
}
KERNEL(lanes_one_branch) {
    int i = index(), k = 2;
    if (i & 1) { wait(); k = 3; }
    a.y[i] = k * a.x[i];
}
KERNEL(silent_called) { int i = index(); wait_elsewhere(a.y, i); a.y[i] = a.x[i]; }
KERNEL(silent_first_turn) {
    int sum = 0;
    for (int k = 0; k < N / THREADS; k++) {
        if (k == 0) wait();
        sum += ((volatile int *)a.x)[k * THREADS + threadIdx.x];
    }
    a.y[index()] = sum;
}
KERNEL(racy_second_turn) {
    int sum = 0;
    for (int k = 0; k < a.flag + 1; k++) {
        if (k == 1) wait();
        sum += ((volatile int *)a.x)[k * THREADS + threadIdx.x];
    }
    a.y[index()] = sum;
}
KERNEL(silent_leaves_first) { int i = index(); if (i >= N / 2) return; wait(); a.y[i] = a.x[i]; }
KERNEL(silent_prefetches) {
    int i = index();
    asm volatile("prefetch.global.L2 [%0];" :: "l"(a.x + i));
    wait();
    a.y[i] = a.x[i];
}
KERNEL(silent_weights) { int i = index(); int weight = a.w[i]; wait(); a.y[i] = a.x[i] * weight; }
KERNEL(silent_own) { int i = index(); int before = a.y[i]; wait(); a.y[i] = a.x[i] + before; }
KERNEL(silent_shared) {
    __shared__ int kept[THREADS];
    int i = index();
    kept[threadIdx.x] = a.w[i];
    __syncthreads();
    wait();
    a.y[i] = a.x[i] + kept[(threadIdx.x + 1) % THREADS];
}

// --- Behind other first kernels.
KERNEL(racy_one_trigger) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(racy_late_trigger) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(silent_no_trigger) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(silent_fill_between) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(racy_record_between) { int i = index(); a.y[i] = a.x[i]; }

// --- Behind two kernels, of which the first writes `x`. What lies in between may let this one begin before that.
KERNEL(racy_behind_trigger) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(racy_behind_early_trigger) { int i = index(); int value = a.x[i]; wait(); a.y[i] = value; }
KERNEL(racy_behind_neither) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(silent_behind_late_trigger) { int i = index(); int value = a.x[i]; wait(); a.y[i] = value; }
KERNEL(silent_behind_wait) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(silent_behind_ordinary) { int i = index(); a.y[i] = a.x[i]; }
KERNEL(silent_waits_for_both) { int i = index(); wait(); a.y[i] = a.x[i]; }

typedef void (*Kernel)(Args);
struct Case {
    const char *name;
    Kernel second, first, between;
    // 'm': a fill comes between; 'e': the record of an event; 'o': what is between is launched without the attribute,
    // 's': so is the second.
    char extra;
};
#define PAIR(name) {#name, name, triggers, nullptr, 0}
#define TWINS(name) PAIR(racy_##name), PAIR(mended_##name)
static const Case cases[] = {
    TWINS(never_waits), TWINS(compiled_out), TWINS(shape), TWINS(one_warp), TWINS(epilogue), TWINS(residual),
    TWINS(pipelined), TWINS(moved), TWINS(new_kernel), TWINS(old_code), TWINS(published), TWINS(lengths),
    {"racy_released", racy_released, releases_early}, {"mended_released", mended_released, releases_early},
    PAIR(racy_registered), {"mended_registered", mended_registered, never_triggers},
    PAIR(racy_by_default), {"mended_by_default", mended_by_default, triggers, nullptr, 's'},
    TWINS(overwrites), TWINS(rereads), TWINS(adds), PAIR(racy_texture),
    PAIR(moved_texture), TWINS(switched_off),
    TWINS(without_barrier), PAIR(racy_in_one_block), PAIR(racy_barrier_first), PAIR(silent_one_warp_for_all),
    PAIR(silent_lane_for_warp), TWINS(other_half), PAIR(silent_both_branches), PAIR(lanes_one_branch),
    PAIR(silent_called), PAIR(silent_first_turn), PAIR(racy_second_turn), PAIR(silent_leaves_first),
    PAIR(silent_prefetches), PAIR(silent_weights), PAIR(silent_own), PAIR(silent_shared),
    {"racy_one_trigger", racy_one_trigger, one_thread_triggers},
    {"racy_late_trigger", racy_late_trigger, triggers_late},
    {"silent_no_trigger", silent_no_trigger, never_triggers},
    {"silent_fill_between", silent_fill_between, triggers, nullptr, 'm'},
    {"racy_record_between", racy_record_between, triggers, nullptr, 'e'},
    {"racy_behind_trigger", racy_behind_trigger, triggers, triggers_only},
    {"racy_behind_early_trigger", racy_behind_early_trigger, triggers, triggers_then_waits},
    {"racy_behind_neither", racy_behind_neither, triggers, does_neither},
    {"silent_behind_late_trigger", silent_behind_late_trigger, triggers, waits_then_triggers},
    {"silent_behind_wait", silent_behind_wait, triggers, waits_only},
    {"silent_behind_ordinary", silent_behind_ordinary, triggers, triggers_only, 'o'},
    {"silent_waits_for_both", silent_waits_for_both, triggers, triggers_only},
};

static void launch(Kernel kernel, Args a, cudaStream_t stream, bool overlaps) {
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = N / THREADS, config.blockDim = THREADS, config.stream = stream;
    config.attrs = &attribute, config.numAttrs = overlaps;
    CHECK(cudaLaunchKernelEx(&config, kernel, a));
}

int main(int argc, char **argv) {
    bool captures = argc > 1 && !strcmp(argv[1], "capture");
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (const Case &one : cases) {
        if (argc > 2 && (argv[2][0] == '-' ? !!strstr(one.name, argv[2] + 1) : strcmp(argv[2], one.name))) continue;
        Args a = {};
        int *w, *other;
        for (int **p : {&a.x, &a.y, &a.z, &w, &a.shape, &other}) {
            CHECK(cudaMalloc(p, 4 * N * sizeof(int)));
            CHECK(cudaMemset(*p, p == &w, 4 * N * sizeof(int)));
        }
        a.w = w, a.flag = 1;
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeLinear, resource.res.linear.devPtr = a.x;
        resource.res.linear.desc = cudaCreateChannelDesc<int>(), resource.res.linear.sizeInBytes = N * sizeof(int);
        cudaTextureDesc how = {};
        CHECK(cudaCreateTextureObject(&a.texture, &resource, &how, nullptr));
        CHECK(cudaDeviceSynchronize());
        if (captures) CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        launch(one.first, a, stream, false);
        if (one.between) launch(one.between, a, stream, one.extra != 'o');
        if (one.extra == 'm') CHECK(cudaMemsetAsync(other, 0, 64, stream));
        if (one.extra == 'e') CHECK(cudaEventRecord(event, stream));
        launch(one.second, a, stream, one.extra != 's');
        if (captures) {
            cudaGraph_t graph;
            cudaGraphExec_t exec;
            CHECK(cudaStreamEndCapture(stream, &graph));
            CHECK(cudaGraphInstantiate(&exec, graph, 0));
            CHECK(cudaGraphLaunch(exec, stream));
        }
        CHECK(cudaDeviceSynchronize());
        unsigned hash = 2166136261u;
        for (int *p : {a.x, a.y, a.z, a.shape}) {
            static unsigned char left[4 * N * sizeof(int)];
            CHECK(cudaMemcpy(left, p, sizeof left, cudaMemcpyDeviceToHost));
            for (unsigned char byte : left) hash = (hash ^ byte) * 16777619u;
        }
        printf("%s %08x\n", one.name, hash);
    }
    return 0;
}
