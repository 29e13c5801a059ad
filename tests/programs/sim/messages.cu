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

// Waits for the host and takes the input; `early`: takes it first.
template <bool acquires, bool early>
__global__ void take(int *command, const int *in, int *out, int count) {
    if (early) for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = in[i] + 1;
    if (threadIdx.x == 0) {
        int seen = 0;
        while (seen == 0) {
            if (acquires) asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(seen) : "l"(command) : "memory");
            else asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(seen) : "l"(command) : "memory");
        }
    }
    __syncthreads();
    if (!early) for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = in[i] + 1;
}

// Leaves a value again and again until it is told to stop. With a flag, and unless `say` forbids it, it tells how far it
// is by a release of system scope.
enum Release { STORE, FENCE, EXCHANGE };
template <Release release>
__global__ void sweep(int *left, int *flag, const int *say, const int *stop, int rounds) {
    for (int i = 1; i <= rounds; i++) {
        int told = 0;
        if (stop) asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(told) : "l"(stop) : "memory");
        if (told) break;
        *left = 3 * i;
        if (!flag || (say && !*say)) continue;
        if (release == STORE) asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(i) : "memory");
        if (release == FENCE)
            asm volatile("fence.sc.sys; st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(i) : "memory");
        int old;
        if (release == EXCHANGE)
            asm volatile("atom.release.sys.global.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(flag), "r"(i) : "memory");
    }
}
static void sweep_by(const std::string &how, int *left, int *flag, const int *say = nullptr, const int *stop = nullptr) {
    if (how == "store") sweep<STORE><<<1, 1, 0, s>>>(left, flag, say, stop, 3);
    else if (how == "fence") sweep<FENCE><<<1, 1, 0, s>>>(left, flag, say, stop, 3);
    else sweep<EXCHANGE><<<1, 1, 0, s>>>(left, flag, say, stop, 3);
}

// Looks at words that tell it to stop.
enum Load { ACQUIRE, RELAXED, VOLATILE, DEVICE, PLAIN };
template <Load load> __global__ void obey(const int *stops, int *out, int words) {
    int told = 0;
    for (int i = 0; i < words; i++) {
        const int *stop = stops + i;
        if (load == ACQUIRE) asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(told) : "l"(stop) : "memory");
        if (load == RELAXED) asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(told) : "l"(stop) : "memory");
        if (load == VOLATILE) told = *(const volatile int *)stop;
        if (load == DEVICE) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(told) : "l"(stop) : "memory");
        if (load == PLAIN) asm volatile("ld.global.u32 %0, [%1];" : "=r"(told) : "l"(stop) : "memory");
        out[i] = told;
    }
}
static void obey_by(const std::string &how, const int *stop, int *out, int words = 1) {
    if (how == "acquire") obey<ACQUIRE><<<1, 1, 0, s>>>(stop, out, words);
    else if (how == "relaxed") obey<RELAXED><<<1, 1, 0, s>>>(stop, out, words);
    else if (how == "volatile") obey<VOLATILE><<<1, 1, 0, s>>>(stop, out, words);
    else if (how == "device") obey<DEVICE><<<1, 1, 0, s>>>(stop, out, words);
    else obey<PLAIN><<<1, 1, 0, s>>>(stop, out, words);
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
    } else if (form.rfind("taken", 0) == 0) {       // "relaxed", "early": races
        auto kernel = form == "taken" ? take<true, false> : form == "taken_early" ? take<true, true> : take<false, false>;
        kernel<<<1, 128, 0, s>>>(second, in, kept, n);
        for (int i = 0; i < n; i++) in[i] = i;
        __atomic_store_n(second, 1, __ATOMIC_RELEASE);
    } else if (form.rfind("switched_", 0) == 0) {
        // off, again, silenced: races; on, back: a later launch tells the host.
        std::string switched = form.substr(9, form.rfind('_') - 9), how = form.substr(form.rfind('_') + 1);
        int *say;
        CHECK(cudaMalloc(&say, 2 * sizeof(int)));
        CHECK(cudaMemset(say, 0, 2 * sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        bool told = switched == "on" || switched == "back";
        if (switched != "on") sweep_by(how, out, switched == "silenced" ? flag : nullptr, say);
        if (switched == "again") {
            CHECK(cudaStreamSynchronize(s));
            sweep_by(how, out, nullptr, say);
        }
        if (told) sweep_by(how, out, flag);
        while (told && __atomic_load_n(flag, __ATOMIC_ACQUIRE) < 3) std::this_thread::yield();
        found = load(out);
    } else if (form.rfind("stopped_", 0) == 0) {
        sweep_by(form.substr(8), out, nullptr, nullptr, second);
        __atomic_store_n(second, 1, __ATOMIC_RELEASE);
    } else if (form.rfind("obeyed_", 0) == 0) {     // "device", "plain": races
        obey_by(form.substr(7), second, kept);
        __atomic_store_n(second, 1, __ATOMIC_RELEASE);
    } else if (form.rfind("array_", 0) == 0) {      // "volatile": a race
        obey_by(form.substr(6), second, kept, 4);
        __atomic_store_n(second + 1, 1, __ATOMIC_RELEASE);
    } else if (form == "wide") {                    // race: more bytes than one atomic store has
        obey_by("acquire", second, kept);
        static void *(*volatile set)(void *, int, size_t) = memset;
        set(second, 0, 256);
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
