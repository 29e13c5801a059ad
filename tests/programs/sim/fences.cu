// Launches that execute a fence or do not, where the code has a way with it and one without: a parameter chooses its
// kind, or a word in memory, or each kind is a kernel of its own. The fence is that of a lock, or of a flag for another
// kernel ("kernels"), or of a flag for the host ("host"). Each case has data with a size that no other has: for each, the
// program prints the size, what excuses the pair ("race": nothing), and the case.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Chosen { BY_CODE, BY_PARAMETER, BY_DATA, CHOSEN };
enum Reach { NONE, BLOCK, DEVICE, SYSTEM, REACHES };
enum Place { BETWEEN, BEFORE, BEHIND, PLACES };
enum Who { ONE_BLOCK, LAST_BLOCK, EACH_BLOCK, WHO };
static const char *const chosen[] = {"by code", "by parameter", "by data"};
static const char *const reaches[] = {"no fence", "block", "device", "system"};
static const char *const places[] = {"between data and flag", "before the data", "behind the flag"};
static const char *const who[] = {"one of two blocks", "the last block", "each block"};
constexpr int THREADS = 64;

static size_t count;
static cudaStream_t a, b;

// The fence that is wanted: `known` by code, `given` by parameter, `word` by data.
template <int C, int known> __device__ void fence(int given, const int *word) {
    int reach = C == BY_CODE ? known : C == BY_PARAMETER ? given : *word;
    if (reach == BLOCK) __threadfence_block();
    if (reach == DEVICE) __threadfence();
    if (reach == SYSTEM) __threadfence_system();
}
__device__ void put(int *flag, int value) { asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory"); }
__device__ int look(const int *flag) {
    int seen;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}

template <int C, int T, int G> __global__ void section(int *data, int *lock, int take, int give, const int *words) {
    for (int turn = 0; turn < 3; turn++) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        fence<C, T>(take, words + T);
        data[turn % 2] += turn;
        fence<C, G>(give, words + G);
        atomicExch(lock, 0);
    }
}

// One block, or two that tell of both halves of the data.
template <int C, int F, int P> __global__ void leave(int *data, int *flag, int given, const int *words) {
    if (P == BEFORE) fence<C, F>(given, words + F);
    data[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x) return;
    if (P == BETWEEN) fence<C, F>(given, words + F);
    put(flag, 1);
    if (P == BEHIND) fence<C, F>(given, words + F);
}
template <int W> __global__ void leave_halves(int *data, int *flags, int *counter, int given) {
    data[blockIdx.x * THREADS + threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x) return;
    fence<BY_PARAMETER, 0>(given, nullptr);
    if (W == ONE_BLOCK && blockIdx.x == 0) put(flags, 1);
    if (W == EACH_BLOCK) put(flags + blockIdx.x, 1);
    if (W == LAST_BLOCK && atomicAdd(counter, 1) == gridDim.x - 1) {
        fence<BY_PARAMETER, 0>(given, nullptr);
        put(flags, 1);
    }
}
template <int C, int F, bool BOTH> __global__ void take(const int *data, int *flags, int *out, int given, const int *words) {
    if (threadIdx.x == 0) {
        while (!look(flags)) {}
        if (BOTH) while (!look(flags + 1)) {}
        fence<C, F>(given, words + F);
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x] + data[THREADS + threadIdx.x];
}
// Says after half of the input that it has been read.
__global__ void digest(const int *in, int *out, int *flag, int given) {
    int sum = 0;
    for (int i = 0; i < THREADS; i++) sum += in[i];
    out[0] = sum;
    fence<BY_PARAMETER, 0>(given, nullptr);
    put(flag, 1);
    for (int i = THREADS; i < 2 * THREADS; i++) sum += in[i];
    out[0] = sum;
}

struct Memory {
    size_t size = 4096 + 16 * count++;
    int *data, *flags, *words, *out;
    explicit Memory(bool host) {
        CHECK(cudaMalloc(&words, 4 * REACHES));
        CHECK(cudaMalloc(&out, 4 * THREADS));
        const int all[] = {NONE, BLOCK, DEVICE, SYSTEM};
        CHECK(cudaMemcpy(words, all, sizeof all, cudaMemcpyHostToDevice));
        if (host) {
            CHECK(cudaHostAlloc(&data, size, cudaHostAllocMapped));
            CHECK(cudaHostAlloc(&flags, 64, cudaHostAllocMapped));
            memset(data, 0, size), memset(flags, 0, 64);
        } else {
            CHECK(cudaMalloc(&data, size));
            CHECK(cudaMalloc(&flags, 64));
            CHECK(cudaMemset(data, 0, size));
            CHECK(cudaMemset(flags, 0, 64));
        }
        CHECK(cudaDeviceSynchronize());
    }
};

// (A finding is one pair of call sites.)
template <int C, int T, int G> __attribute__((noinline)) void lock() {
    Memory m(false);
    section<C, T, G><<<1, 1, 0, a>>>(m.data, m.flags, T, G, m.words);
    section<BY_CODE, DEVICE, DEVICE><<<1, 1, 0, b>>>(m.data, m.flags, 0, 0, m.words);
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s lock %s: taken with %s, given back with %s\n", m.size, T >= DEVICE && G >= DEVICE ? "locks" : "race", chosen[C], reaches[T], reaches[G]);
}
template <int C, int F, int P, int R> __attribute__((noinline)) void hand() {
    Memory m(false);
    leave<C, F, P><<<1, THREADS, 0, a>>>(m.data, m.flags, F, m.words);
    take<C, R, false><<<1, THREADS, 0, b>>>(m.data, m.flags, m.out, R, m.words);
    CHECK(cudaDeviceSynchronize());
    bool right = F >= DEVICE && P == BETWEEN && R >= DEVICE;
    printf("%zu %s flag %s: %s %s, looked at with %s\n", m.size, right ? "handover" : "race", chosen[C], reaches[F], places[P], reaches[R]);
}
template <int W, int F> __attribute__((noinline)) void hand_halves() {
    Memory m(false);
    leave_halves<W><<<2, THREADS, 0, a>>>(m.data, m.flags, m.flags + 8, F);
    take<BY_CODE, DEVICE, W == EACH_BLOCK><<<1, THREADS, 0, b>>>(m.data, m.flags, m.out, 0, m.words);
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s flag of %s: %s\n", m.size, F >= DEVICE && W != ONE_BLOCK ? "handover" : "race", who[W], reaches[F]);
}

__attribute__((always_inline)) inline void wait(const int *flag) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) {}
}
template <int C, int F, int P> __attribute__((noinline)) void tell() {
    Memory m(true);
    leave<C, F, P><<<1, THREADS, 0, a>>>(m.data, m.flags, F, m.words);
    wait(m.flags);
    m.out = (int *)(size_t)m.data[3];
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s host %s: %s %s\n", m.size, F == SYSTEM && P == BETWEEN ? "message" : "race", chosen[C], reaches[F], places[P]);
}
template <int W, int F> __attribute__((noinline)) void tell_halves() {
    Memory m(true);
    int *counter;
    CHECK(cudaMalloc(&counter, 4));
    CHECK(cudaMemset(counter, 0, 4));
    CHECK(cudaDeviceSynchronize());
    leave_halves<W><<<2, THREADS, 0, a>>>(m.data, m.flags, counter, F);
    wait(m.flags);
    if (W == EACH_BLOCK) wait(m.flags + 1);
    m.out = (int *)(size_t)m.data[THREADS + 3];
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s host, by %s: %s\n", m.size, F == SYSTEM && W != ONE_BLOCK ? "message" : "race", who[W], reaches[F]);
}
template <int F, bool HALF> __attribute__((noinline)) void refill() {
    Memory m(true);
    digest<<<1, 1, 0, a>>>(m.data, m.out, m.flags, F);
    wait(m.flags);
    *(volatile int *)(m.data + (HALF ? 3 : THREADS + 3)) = 7;
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s host refills %s: %s\n", m.size, F == SYSTEM && HALF ? "message" : "race", HALF ? "what was read" : "what is still read", reaches[F]);
}

template <int C> void locks() {
    lock<C, NONE, NONE>(), lock<C, BLOCK, BLOCK>(), lock<C, DEVICE, DEVICE>(), lock<C, SYSTEM, SYSTEM>();
    lock<C, DEVICE, NONE>(), lock<C, NONE, DEVICE>(), lock<C, SYSTEM, BLOCK>(), lock<C, BLOCK, SYSTEM>(), lock<C, SYSTEM, DEVICE>();
    if constexpr (C + 1 < CHOSEN) locks<C + 1>();
}
template <int C> void hands() {
    hand<C, NONE, BETWEEN, DEVICE>(), hand<C, BLOCK, BETWEEN, DEVICE>(), hand<C, DEVICE, BETWEEN, DEVICE>(), hand<C, SYSTEM, BETWEEN, SYSTEM>();
    hand<C, DEVICE, BEFORE, DEVICE>(), hand<C, DEVICE, BEHIND, DEVICE>(), hand<C, DEVICE, BETWEEN, NONE>(), hand<C, DEVICE, BETWEEN, BLOCK>();
    if constexpr (C + 1 < CHOSEN) hands<C + 1>();
}
template <int W> void halves() {
    hand_halves<W, NONE>(), hand_halves<W, BLOCK>(), hand_halves<W, DEVICE>(), hand_halves<W, SYSTEM>();
    if constexpr (W + 1 < WHO) halves<W + 1>();
}
template <int C> void tells() {
    tell<C, NONE, BETWEEN>(), tell<C, BLOCK, BETWEEN>(), tell<C, DEVICE, BETWEEN>(), tell<C, SYSTEM, BETWEEN>();
    tell<C, SYSTEM, BEFORE>(), tell<C, SYSTEM, BEHIND>();
    if constexpr (C + 1 < CHOSEN) tells<C + 1>();
}
template <int W> void tells_halves() {
    tell_halves<W, NONE>(), tell_halves<W, DEVICE>(), tell_halves<W, SYSTEM>();
    if constexpr (W + 1 < WHO) tells_halves<W + 1>();
}

int main(int, char **arguments) {
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    if (!strcmp(arguments[1], "host")) {
        tells<0>(), tells_halves<0>();
        refill<SYSTEM, true>(), refill<SYSTEM, false>(), refill<DEVICE, true>();
    } else {
        locks<0>(), hands<0>(), halves<0>();
    }
    puts("done");
    return 0;
}
