// Pairs of kernels on two streams that nothing orders: one writes data and then a flag, the other one
// looks at the flag and reads the data. By each kind of store, look and mistake. And critical sections
// whose lock a parameter asks for, or chooses the kind of. Each pair has data with a size that no other has: for each, the program
// prints the size, what excuses the pair ("handover" or "locks"; "race": nothing), and the case.
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Store { OBJECT, INLINE, FENCE_RELAXED, FENCE_EXCHANGE, FENCE_VOLATILE, UPDATE, STORES };
enum Load { BY_OBJECT, BY_INLINE, RELAXED_FENCE, ADD_FENCE, VOLATILE_FENCE, SWAP_FENCE, LOADS };
enum Look { ALL_SPIN, ONE_SPINS, ONE_TRIES, EACH_TRIES, VOTE, LOOKS };
enum How { RIGHT, PEEKS, IGNORES, FLAG_FIRST, OTHER_FLAG, NO_FLAG, TWO_WRITERS, RELAXED_STORE, RELAXED_LOAD, BLOCK_STORE,
           UNORDERED_VOLATILE, NO_BARRIER, READS_ALONE, HOWS };
static const char *const stores[] = {"atomic_ref", "st.release", "fence, st.relaxed", "fence, atomicExch", "fence, volatile", "fetch_add"};
static const char *const loads[] = {"atomic_ref", "ld.acquire", "ld.relaxed, fence", "atomicAdd, fence", "volatile, fence", "atomicCAS, fence"};
static const char *const looks[] = {"all spin", "one spins", "one tries", "each tries", "vote"};
static const char *const hows[] = {"right", "peeks", "ignores", "flag first", "other flag", "no flag", "two writers", "relaxed store",
                                   "relaxed load", "store for the block", "volatile without order", "no barrier of the writer", "no barrier of the reader"};
constexpr int THREADS = 64, SLOTS = 4;

static size_t count;
static cudaStream_t a, b;

template <int S, int H> __device__ void put(unsigned *flag, unsigned value = 1) {
    constexpr bool ordered = H != RELAXED_STORE, block = H == BLOCK_STORE;
    constexpr auto scope = block ? cuda::thread_scope_block : cuda::thread_scope_device;
    constexpr auto order = ordered ? cuda::memory_order_release : cuda::memory_order_relaxed;
    if (H == UNORDERED_VOLATILE) { *(volatile unsigned *)flag = value; return; }
    if (S == OBJECT) cuda::atomic_ref<unsigned, scope>(*flag).store(value, order);
    else if (S == UPDATE) cuda::atomic_ref<unsigned, scope>(*flag).fetch_add(1, order);
    else if (S == INLINE) {
        if (block) asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
        else if (ordered) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
        else asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
    } else {
        if (block) __threadfence_block();
        else if (ordered) __threadfence();
        if (S == FENCE_RELAXED) asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
        if (S == FENCE_EXCHANGE) atomicExch(flag, value);
        if (S == FENCE_VOLATILE) *(volatile unsigned *)flag = value;
    }
}

template <int L, int H> __device__ unsigned look(unsigned *flag) {
    constexpr bool ordered = H != RELAXED_LOAD;
    constexpr auto order = ordered ? cuda::memory_order_acquire : cuda::memory_order_relaxed;
    unsigned seen;
    if (H == UNORDERED_VOLATILE) return *(volatile unsigned *)flag;
    if (L == BY_OBJECT) return cuda::atomic_ref<unsigned, cuda::thread_scope_device>(*flag).load(order);
    if (L == BY_INLINE && ordered) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        return seen;
    }
    if (L == BY_INLINE || L == RELAXED_FENCE) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (L == ADD_FENCE) seen = atomicAdd(flag, 0);
    if (L == VOLATILE_FENCE) seen = *(volatile unsigned *)flag;
    if (L == SWAP_FENCE) seen = atomicCAS(flag, 1, 1);
    if (ordered) __threadfence();
    return seen;
}

template <int S, int H> __global__ void write(int *data, unsigned *flag) {
    if (H == FLAG_FIRST && threadIdx.x == 0) put<S, H>(flag);
    if (H == FLAG_FIRST) __syncthreads();
    data[threadIdx.x] = threadIdx.x + 1;
    if (H != NO_BARRIER) __syncthreads();
    if (H != FLAG_FIRST && H != NO_FLAG && threadIdx.x == 0) put<S, H>(flag);
}

template <int L, int K, int H> __global__ void read(const int *data, unsigned *flag, int *out, int tries) {
    __shared__ unsigned shared;
    unsigned seen = 1;
    int value = -1;
    if (H == PEEKS) value = data[threadIdx.x];
    if (K == ALL_SPIN && H != IGNORES) while (!look<L, H>(flag)) {}
    if (K == EACH_TRIES || H == IGNORES && (K == ALL_SPIN || threadIdx.x == 0))
        for (int i = 0; i < tries && !(seen = look<L, H>(flag)); i++) {}
    if (K == VOTE && H != IGNORES) seen = __syncthreads_or(threadIdx.x == 0 && look<L, H>(flag));
    if (K == ONE_SPINS && H != IGNORES && threadIdx.x == 0) while (!look<L, H>(flag)) {}
    if (K == ONE_TRIES && H != IGNORES && threadIdx.x == 0) {
        for (int i = 0; i < (L == BY_INLINE ? 20 : tries) && !(seen = look<L, H>(flag)); i++) {}
        shared = seen;
    }
    if (H != READS_ALONE) __syncthreads();
    if (K == ONE_TRIES && H != IGNORES) seen = shared;
    if (H == IGNORES || H != PEEKS && seen) value = data[threadIdx.x];
    out[threadIdx.x] = value + seen;
}

template <int S, int L, int K, int H> __attribute__((noinline)) void hand() {
    size_t size = 4096 + 16 * count++;
    int *data, *out;
    unsigned *words;
    CHECK(cudaMalloc(&data, size));
    CHECK(cudaMalloc(&out, 4 * THREADS));
    CHECK(cudaMalloc(&words, 8));
    CHECK(cudaMemset(data, 0, size));
    CHECK(cudaMemset(words, 0, 8));
    // A flag that nobody else sets is set already, so that the reader goes on.
    if (H == OTHER_FLAG || H == NO_FLAG) CHECK(cudaMemset(words, 1, 4));
    CHECK(cudaDeviceSynchronize());
    write<S, H><<<1, THREADS, 0, a>>>(data, words + (H == OTHER_FLAG));
    if (H == TWO_WRITERS) write<S, H><<<1, THREADS, 0, b>>>(data, words);
    else {
        // Who looks once, or a few times, has to come late. StreamSan does not see that the host waits.
        if (K == VOTE || K == ONE_TRIES && L == BY_INLINE) usleep(20000);
        read<L, K, H><<<1, THREADS, 0, b>>>(data, words, out, 1 << 30);
    }
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s %s; %s; %s; %s\n", size, H == RIGHT ? "handover" : "race", stores[S], loads[L], looks[K], hows[H]);
}

// Loads, looks, stores and mistakes take turns: `kernels/tests/handovers.rs` combines them all.
template <int L, int K> void right() {
    if constexpr ((L + K) % 3 == 0) hand<(L + K) % STORES, L, K, RIGHT>();
    if constexpr (K + 1 < LOOKS) right<L, K + 1>();
}

template <int L, int H> void wrong() {
    // A reader without a barrier is one of which one thread looks.
    constexpr int K = H == READS_ALONE ? ONE_SPINS : (L + H) % LOOKS;
    if constexpr (H % LOADS == L) hand<(L + 2 * H) % STORES, L, K, H>();
    if constexpr (H + 1 < HOWS) wrong<L, H + 1>();
}

template <int L> void load() {
    right<L, 0>(), wrong<L, PEEKS>();
    if constexpr (L + 1 < LOADS) load<L + 1>();
}

// A ring of slots: the writer waits until a slot is free, unless it is careless.
template <bool CARELESS> __global__ void fill(int *ring, unsigned *full, unsigned *free, int rounds) {
    for (int i = 0; i < rounds; i++) {
        if (!CARELESS && threadIdx.x == 0) while (look<BY_OBJECT, RIGHT>(free + i % SLOTS) < i / SLOTS) {}
        __syncthreads();
        ring[i % SLOTS * THREADS + threadIdx.x] = i;
        __syncthreads();
        if (threadIdx.x == 0) put<OBJECT, RIGHT>(full + i % SLOTS, i / SLOTS + 1);
    }
}

__global__ void drain(const int *ring, unsigned *full, unsigned *free, int rounds, int *out) {
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
        if (threadIdx.x == 0) while (look<BY_OBJECT, RIGHT>(full + i % SLOTS) < i / SLOTS + 1) {}
        __syncthreads();
        sum += ring[i % SLOTS * THREADS + threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) put<OBJECT, RIGHT>(free + i % SLOTS, i / SLOTS + 1);
    }
    out[threadIdx.x] = sum;
}

template <bool CARELESS> __attribute__((noinline)) void ring() {
    size_t size = 4096 + 16 * count++;
    int *data, *out;
    unsigned *words;
    CHECK(cudaMalloc(&data, size));
    CHECK(cudaMalloc(&out, 4 * THREADS));
    CHECK(cudaMalloc(&words, 8 * SLOTS));
    CHECK(cudaMemset(words, 0, 8 * SLOTS));
    CHECK(cudaDeviceSynchronize());
    fill<CARELESS><<<1, THREADS, 0, a>>>(data, words, words + SLOTS, 10);
    drain<<<1, THREADS, 0, b>>>(data, words, words + SLOTS, 10, out);
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s ring%s\n", size, CARELESS ? "race" : "handover", CARELESS ? ", careless" : "");
}

// A buffer that is handed on, and changed in place, by the kernels between a writer and a reader.
enum Relay { TO_EACH, DOES_NOT_AWAIT, DOES_NOT_GIVE, AWAITS_RELAXED, GIVES_RELAXED, RELAYS };
static const char *const relays[] = {"each hands on", "one does not await", "one does not give", "one awaits without order", "one gives without order"};

template <int R> __global__ void change(int *data, unsigned *from, unsigned *to) {
    if (R != DOES_NOT_AWAIT && threadIdx.x == 0) while (!look<BY_OBJECT, R == AWAITS_RELAXED ? RELAXED_LOAD : RIGHT>(from)) {}
    __syncthreads();
    data[threadIdx.x] += 1;
    __syncthreads();
    if (R != DOES_NOT_GIVE && threadIdx.x == 0) put<OBJECT, R == GIVES_RELAXED ? RELAXED_STORE : RIGHT>(to);
}

// (A call site of their own each: findings at one place are one.)
template <int LENGTH, int R> __attribute__((noinline)) void relay(cudaStream_t (&others)[4]) {
    size_t size = 4096 + 16 * count++;
    int *data, *out;
    unsigned *words;
    CHECK(cudaMalloc(&data, size));
    CHECK(cudaMalloc(&out, 4 * THREADS));
    CHECK(cudaMalloc(&words, 64));
    CHECK(cudaMemset(words, 0, 64));
    // Nobody else sets the flag behind the one that does not give.
    if (R == DOES_NOT_GIVE) CHECK(cudaMemset(words + LENGTH, 1, 4));
    CHECK(cudaDeviceSynchronize());
    write<OBJECT, RIGHT><<<1, THREADS, 0, a>>>(data, words);
    for (int i = 0; i + 1 < LENGTH; i++) change<TO_EACH><<<1, THREADS, 0, others[i]>>>(data, words + i, words + i + 1);
    change<R><<<1, THREADS, 0, others[LENGTH - 1]>>>(data, words + LENGTH - 1, words + LENGTH);
    read<BY_OBJECT, ONE_SPINS, RIGHT><<<1, THREADS, 0, others[3]>>>(data, words + LENGTH, out, 100);
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s relay of %d: %s\n", size, R == TO_EACH ? "handover" : "race", LENGTH, relays[R]);
}

template <int LENGTH, int R> void relay_all(cudaStream_t (&others)[4]) {
    relay<LENGTH, R>(others);
    if constexpr (R + 1 < RELAYS) relay_all<LENGTH, R + 1>(others);
}

// A critical section, if the parameters ask for it, or if the data do.
enum Asked { BY_PARAMETER, BY_NEGATION, BY_DATA, ASKS };
static const char *const asks[] = {"if (asked)", "if (!skip)", "if (*asked)"};

template <int A> __global__ void sum(int *data, int *lock, int take, int give, const int *asked) {
    bool takes = A == BY_PARAMETER ? take > 0 : A == BY_NEGATION ? !take : *asked > 0;
    bool gives = A == BY_PARAMETER ? give > 0 : A == BY_NEGATION ? !give : *asked > 0;
    if (takes) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
    }
    int sum = 0;
    for (int i = 0; i < THREADS; i++) sum += data[i];
    data[THREADS] = sum;
    if (gives) {
        __threadfence();
        atomicExch(lock, 0);
    }
}

template <int A, bool TAKE, bool GIVE> __attribute__((noinline)) void ask() {
    size_t size = 4096 + 16 * count++;
    int *data, *lock;
    CHECK(cudaMalloc(&data, size));
    CHECK(cudaMemset(data, 0, size));
    CHECK(cudaMalloc(&lock, 8));
    CHECK(cudaMemset(lock, 0, 4));
    CHECK(cudaMemset(lock + 1, TAKE, 1));
    CHECK(cudaDeviceSynchronize());
    bool negated = A == BY_NEGATION;
    sum<BY_PARAMETER><<<1, 1, 0, a>>>(data, lock, 1, 1, lock + 1);
    sum<A><<<1, 1, 0, b>>>(data, lock, TAKE != negated, GIVE != negated, lock + 1);
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s asked by %s: taken %d, given back %d\n", size, A != BY_DATA && TAKE && GIVE ? "locks" : "race", asks[A], TAKE, GIVE);
}

template <int A> void ask_all() {
    // (Who takes the lock and keeps it would hang the other one.)
    ask<A, true, true>(), ask<A, false, false>();
    if constexpr (A != BY_DATA) ask<A, false, true>();
    if constexpr (A + 1 < ASKS) ask_all<A + 1>();
}

// A critical section whose lock is of the kind that a parameter says: one of them is none.
enum Way { NO_LOCK, SWAP_FENCES, ACQUIRE_RELEASE, SWAP_VOLATILE, WAYS };
static const char *const ways[] = {"no lock", "atomicCAS with fences", "acquire and release", "atomicCAS, volatile store"};
using WayLock = cuda::atomic_ref<int, cuda::thread_scope_device>;

__device__ bool grab(int *lock, int way) {
    if (way == NO_LOCK) return true;
    if (way == ACQUIRE_RELEASE) {
        int free = 0;
        return WayLock(*lock).compare_exchange_strong(free, 1, cuda::memory_order_acquire, cuda::memory_order_relaxed);
    }
    if (atomicCAS(lock, 0, 1) != 0) return false;
    __threadfence();
    return true;
}

__device__ void drop(int *lock, int way) {
    if (way == NO_LOCK) return;
    if (way == ACQUIRE_RELEASE) return WayLock(*lock).store(0, cuda::memory_order_release);
    __threadfence();
    if (way == SWAP_VOLATILE) *(volatile int *)lock = 0;
    else atomicExch(lock, 0);
}

__global__ void transfer(int *data, int *lock, int way, int seed) {
    for (int turn = 0; turn < 4; turn++) {
        while (!grab(lock, way)) {}
        data[(seed + 5 * turn) % THREADS] += turn + 1;
        data[(seed + 3 * turn) % THREADS] -= turn + 1;
        drop(lock, way);
    }
}

template <int first, int second> __attribute__((noinline)) void choose() {
    size_t size = 4096 + 16 * count++;
    int *data, *lock;
    CHECK(cudaMalloc(&data, size));
    CHECK(cudaMemset(data, 0, size));
    CHECK(cudaMalloc(&lock, 8));
    CHECK(cudaMemset(lock, 0, 8));
    CHECK(cudaDeviceSynchronize());
    transfer<<<1, 1, 0, a>>>(data, lock, first, 0);
    transfer<<<1, 1, 0, b>>>(data, lock, second, 10);
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s chosen: %s, then %s\n", size, first && second ? "locks" : "race", ways[first], ways[second]);
}

// (A finding is one pair of call sites.)
template <int F> void choose_all() {
    choose<F, NO_LOCK>(), choose<F, SWAP_FENCES>(), choose<F, ACQUIRE_RELEASE>(), choose<F, SWAP_VOLATILE>();
    if constexpr (F + 1 < WAYS) choose_all<F + 1>();
}

int main() {
    cudaStream_t others[4];
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    for (cudaStream_t &other : others) CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    load<0>();
    ring<false>(), ring<true>();
    relay_all<1, 0>(others), relay_all<2, 0>(others), relay_all<3, 0>(others);
    ask_all<0>();
    choose_all<0>();
    puts("done");
    return 0;
}
