// Kernels that tell the host by a flag in memory how far they have come. The first word is the kind
// of the memory, the second one the form. Prints "done" when the form has run through.
#include <cuda_runtime.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                         \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static const int n = 2048;
static std::string kind;
static cudaStream_t s, t;

// One block. `when`: 0: the flag comes behind the results, 1: behind the loads of the input, 2:
// before everything. `plain`: an ordinary store.
__global__ void work(const int *in, int *kept, int *out, int *flag, int when, int plain, int count) {
    if (when == 2 && threadIdx.x == 0) *(volatile int *)flag = 1;
    for (int i = threadIdx.x; i < count; i += blockDim.x) kept[i] = in[i];
    if (when == 1) {
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) *(volatile int *)flag = 1;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = kept[i] * 3 + 1;
    if (when == 0) {
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) {
            if (plain) *flag = 1;
            else *(volatile int *)flag = 1;
        }
    }
}

// Waits for the host, takes the input and answers. Gives up after a while.
__global__ void serve(volatile int *command, const int *in, int *out, volatile int *flag, int count) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < (1 << 22) && *command == 0; i++) {}
        *command = 0;
        __threadfence_system();
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = in[i] + 1;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
}

static int *memory(int count) {
    int *found;
    size_t bytes = (count * sizeof(int) + 4095) / 4096 * 4096;
    if (kind == "managed") {
        CHECK(cudaMallocManaged(&found, bytes));
    } else if (kind == "registered") {
        found = (int *)aligned_alloc(1 << 16, (bytes + 65535) / 65536 * 65536);
        CHECK(cudaHostRegister(found, (bytes + 65535) / 65536 * 65536, cudaHostRegisterMapped));
    } else {
        CHECK(cudaHostAlloc(&found, bytes, cudaHostAllocMapped));
    }
    memset(found, 0, bytes);
    return found;
}

static void wait_for(const int *flag) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
}
static long sum(const int *from, int count) {
    long all = 0;
    for (int i = 0; i < count; i++) all += ((volatile const int *)from)[i];
    return all;
}
__attribute__((noinline)) static int load(const int *from) { return *(volatile const int *)from; }

struct Fill {
    int *in;
    std::atomic<int> may_go{0};
};
static void CUDART_CB run_fill(void *data) {
    Fill *fill = (Fill *)data;
    while (fill->may_go == 0) std::this_thread::yield();
    for (int i = 0; i < n; i++) ((volatile int *)fill->in)[i] = i;
}

int main(int, char **words) {
    kind = words[1];
    std::string form = words[2];
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    int *in = memory(n), *out = memory(2 * n), *flags = memory(2048), *kept;
    CHECK(cudaMalloc(&kept, 2 * n * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    int *flag = flags, *second = flags + 1024;
    long found = 0;
    auto go = [&](int when, bool plain = false) { work<<<1, 128, 0, s>>>(in, kept, out, flag, when, plain, n); };

    if (form == "unwaited") {                       // race
        go(0);
        found = sum(out, n);
    } else if (form == "one_element") {             // race
        go(0);
        found = load(out + n / 2);
    } else if (form == "refilled") {                // race
        go(1);
        for (int i = 0; i < n; i++) in[i] = 2 * i;
    } else if (form == "read_then_polled") {        // race
        go(0);
        found = load(out + 7);
        wait_for(flag);
        found += sum(out, n);
    } else if (form == "too_early") {               // race, not told from `polled`
        go(2);
        wait_for(flag);
        found = sum(out, n);
    } else if (form == "looked_once") {             // race, not told from `polled`
        go(0);
        found = load(flag) + sum(out, n);
    } else if (form == "polled" || form == "plain") {
        go(0, form == "plain");
        wait_for(flag);
        found = sum(out, n);
    } else if (form == "synchronised") {
        go(0);
        CHECK(cudaStreamSynchronize(s));
        found = sum(out, n);
    } else if (form == "refilled_behind") {
        go(1);
        wait_for(flag);
        for (int i = 0; i < n; i++) in[i] = 2 * i;
    } else if (form == "one_instruction") {         // the flag and the results through one load
        go(0);
        while (load(flag) == 0) {}
        for (int i = 0; i < n; i++) found += load(out + i);
    } else if (form == "slots") {                   // a slot that is free, then one behind a flag
        work<<<1, 128, 0, s>>>(in, kept, out, flag, 0, 0, n / 2);
        work<<<1, 128, 0, t>>>(in, kept + n, out + n / 2, second, 0, 0, n / 2);
        for (int round = 0; round < 2; round++) {
            wait_for(round == 0 ? flag : second);
            found += sum(out + round * n / 2, n / 2);
        }
    } else if (form == "free_slot_first") {         // what nobody uses, then what a flag is for
        go(0);
        found = sum(out + n, 40);
        wait_for(flag);
        found += sum(out, n);
    } else if (form == "busy_page") {               // the page of the flag is touched very often
        go(0);
        for (int i = 1; i < 1000; i++) ((volatile int *)flags)[i] = i;
        wait_for(flag);
        found = sum(out, n);
    } else if (form == "another_thread") {
        go(0);
        std::thread([&] { wait_for(flag); }).join();
        found = sum(out, n);
    } else if (form == "mailbox") {
        serve<<<1, 128, 0, s>>>(second, in, out, flag, n);
        for (int i = 0; i < n; i++) in[i] = i;
        __atomic_store_n(second, 1, __ATOMIC_RELEASE);
        wait_for(flag);
        found = sum(out, n);
    } else if (form == "function_beside" || form == "function_before") {
        // The function fills the source of a copy that was enqueued behind it, on another stream.
        // "beside" is a race: that stream does not wait for it.
        static Fill fill;
        fill.in = in;
        cudaEvent_t filled;
        CHECK(cudaEventCreate(&filled));
        CHECK(cudaLaunchHostFunc(s, run_fill, &fill));
        CHECK(cudaEventRecord(filled, s));
        if (form == "function_before") CHECK(cudaStreamWaitEvent(t, filled, 0));
        CHECK(cudaMemcpyAsync(kept, in, n * sizeof(int), cudaMemcpyHostToDevice, t));
        fill.may_go = 1;
    } else {
        return 4;
    }
    CHECK(cudaDeviceSynchronize());
    puts(found < 0 ? "lost" : "done");
}
