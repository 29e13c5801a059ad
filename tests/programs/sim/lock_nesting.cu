// Critical sections under one lock of an array and under several that nest, on two streams that
// nothing orders: by each way of taking and giving back, inlined and called, with the fences that
// a section needs and without. What else a section does wrong, a parameter says. Each case guards an allocation with a size that no other has. For each,
// the program prints the size, what the section is excused by ("locks"; "race": by nothing;
// "either": by locks, unless it is seen that they are two), and the case.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Nest { ONE, TWO, SOME, THREE, NESTS };
static const char *const nests[] = {"one lock", "two locks", "one or two locks", "three locks"};
enum Form { SWAP, SLEEP, EXCHANGE, LOOK, TRY, TICKET, SERVED, FORMS };
static const char *const forms[] = {"swap", "swap with sleep", "exchange", "look, then swap", "try all", "ticket", "ticket, number looked at"};
enum Release { STORED, SWAPPED_OUT, CLEARED, RELEASES };
static const char *const releases[] = {"store", "exchange", "and"};
enum Wrong { RIGHT, OTHER_LOCKS, OTHER_HASH, LOOK_BEFORE, WRITE_BEFORE, WRITE_AFTER, WRONGS };
static const char *const wrongs[] = {"right", "other locks", "other stripes", "look before", "write before", "write after"};
// Which fences there are, as bits.
enum Fences { NONE, TAKING = 1, GIVING = 2, BOTH = 3 };
static const char *const fences[] = {"no fence", "no fence at the giving back", "no fence at the taking", ""};
constexpr int STRIPES = 8, ACCOUNTS = 64, WORDS = 2 * 3 * STRIPES;

template <int F> __device__ __forceinline__ bool take_once(int *lock) {
    if (F == EXCHANGE) return atomicExch(lock, 1) == 0;
    return atomicCAS(lock, 0, 1) == 0;
}

template <int F> __device__ __forceinline__ void take_inlined(int *lock) {
    if (F == TICKET || F == SERVED) {
        int own = atomicAdd(lock, 1);
        if (F == TICKET) while (atomicAdd(lock + 1, 0) != own) {}
        if (F == SERVED) while (*(volatile int *)(lock + 1) != own) {}
        return;
    }
    if (F == LOOK) {
        do {
            while (*(volatile int *)lock != 0) {}
        } while (!take_once<F>(lock));
    } else {
        while (!take_once<F>(lock))
            if (F == SLEEP) __nanosleep(50);
    }
}

template <int F, int R> __device__ __forceinline__ void give_inlined(int *lock) {
    if (F == TICKET || F == SERVED) atomicAdd(lock + 1, 1);
    else if (R == STORED) asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(lock) : "memory");
    else if (R == SWAPPED_OUT) atomicExch(lock, 0);
    else atomicAnd(lock, 0);
}

template <int F, int FENCES> __device__ __noinline__ void take_called(int *lock) {
    take_inlined<F>(lock);
    if (FENCES & TAKING) __threadfence();
}

template <int F, int R, int FENCES> __device__ __noinline__ void give_called(int *lock) {
    if (FENCES & GIVING) __threadfence();
    give_inlined<F, R>(lock);
}

template <int F, bool CALLED, int FENCES> __device__ __forceinline__ void take(int *lock) {
    if (CALLED) return take_called<F, FENCES>(lock);
    take_inlined<F>(lock);
    if (FENCES & TAKING) __threadfence();
}

template <int F, int R, bool CALLED, int FENCES> __device__ __forceinline__ void give(int *lock) {
    if (CALLED) return give_called<F, R, FENCES>(lock);
    if (FENCES & GIVING) __threadfence();
    give_inlined<F, R>(lock);
}

template <int N, int F, int R, bool CALLED, int FENCES> __global__ void move(int *locks, int *accounts, int wrong) {
    // No two blocks go to one account: they would need one lock for it.
    int from = blockIdx.x * 7 % (ACCOUNTS / 2), to = ACCOUNTS / 2 + (from * 4 + 3) % (ACCOUNTS / 2);
    int s = from % STRIPES, t = to % STRIPES;
    if (wrong == OTHER_HASH) s = (s + 1) % STRIPES, t = (t + 1) % STRIPES;
    if (wrong == OTHER_LOCKS) locks += WORDS;
    // What SOME takes first is the lower one; the others have a row of stripes for each level.
    int *first = locks + 2 * (N == SOME ? min(s, t) : s);
    int *second = locks + 2 * (N == SOME ? max(s, t) : STRIPES + t), *third = locks + 2 * (2 * STRIPES + (s + t) % STRIPES);
    bool both = N == TWO || N == THREE || N == SOME && s != t;
    int before = 0;
    if (wrong == LOOK_BEFORE) before = accounts[from];
    if (wrong == WRITE_BEFORE) accounts[from] = 1;
    if (F == TRY) {
        for (bool done = false; !done;) {
            if (!take_once<F>(first)) continue;
            if (!both || take_once<F>(second)) {
                if (FENCES & TAKING) __threadfence();
                accounts[from] -= 10 + before;
                if (N != ONE) accounts[to] += 10;
                if (both) give<F, R, CALLED, FENCES>(second);
                done = true;
            }
            give<F, R, CALLED, FENCES>(first);
        }
    } else {
        take<F, CALLED, FENCES>(first);
        if (both) take<F, CALLED, FENCES>(second);
        if (N == THREE) take<F, CALLED, FENCES>(third);
        accounts[from] -= 10 + before;
        if (N != ONE) accounts[to] += 10;
        if (N == THREE) give<F, R, CALLED, FENCES>(third);
        if (both) give<F, R, CALLED, FENCES>(second);
        give<F, R, CALLED, FENCES>(first);
    }
    if (wrong == WRITE_AFTER) accounts[from] = 1;
}

static int *locks, cases;
static cudaStream_t streams[2];

template <int N, int F, int W, int FENCES = BOTH> __attribute__((noinline)) void pair() {
    constexpr int R = (N + F) % RELEASES;
    constexpr bool CALLED = (N + F / 2) % 2;
    size_t size = 4096 + 16 * ++cases;
    int *accounts;
    CHECK(cudaMalloc(&accounts, size));
    CHECK(cudaMemset(accounts, 0, size));
    CHECK(cudaMemset(locks, 0, 2 * WORDS * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    move<N, F, R, CALLED, FENCES><<<8, 1, 0, streams[0]>>>(locks, accounts, RIGHT);
    move<N, F, R, CALLED, FENCES><<<8, 1, 0, streams[1]>>>(locks, accounts, W);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    // Which lock is which element's is seen where it is certain that the section is come to.
    bool followed = F == SLEEP && !CALLED;
    bool released = FENCES & GIVING || R == STORED && F != TICKET && F != SERVED;
    bool right = W == RIGHT && FENCES & TAKING && released;
    bool either = W == OTHER_HASH && !followed || W == OTHER_LOCKS && F == TRY && N != ONE;
    printf("%zu %s %s: %s, given back by %s, %s%s\n", size, right ? "locks" : either ? "either" : "race",
           FENCES == BOTH ? wrongs[W] : fences[FENCES], nests[N], releases[R], forms[F], CALLED ? ", called" : "");
}

template <int N, int F> void form() {
    pair<N, F, RIGHT>(), pair<N, F, OTHER_LOCKS>(), pair<N, F, OTHER_HASH>(), pair<N, F, LOOK_BEFORE>();
    pair<N, F, WRITE_BEFORE>(), pair<N, F, WRITE_AFTER>(), pair<N, F, RIGHT, F == TRY ? NONE : (N + 2 * F) % BOTH>();
    if constexpr (F + 1 < FORMS) form<N, F + 1>();
}

int main() {
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&locks, 2 * WORDS * sizeof(int)));
    form<ONE, 0>(), form<TWO, 0>(), form<SOME, 0>(), form<THREE, 0>();
    puts("done");
    return 0;
}
