// Critical sections of two kernels on two streams that nothing orders, under one lock and under two:
// by each way in which a kernel finds the word of the lock, and by each form of taking it and giving
// it back. Each case guards an allocation with a size that no other has. For each of them, the
// program prints the size, what the section is excused by ("locks", or "race": by nothing), and the case.
#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>
#include <cuda/std/atomic>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Form { SWAP, EXCHANGE, OBJECT, FLAG, INLINE, FORMS };
static const char *const forms[] = {"atomicCAS", "atomicExch", "atomic_ref", "atomic_flag", "acquire and release"};
enum Place { PARAMETER, OFFSET, VARIABLE, MEMBER, BLOCK, THREAD, INTERLEAVED, MAPPED, INNER, OUTER, LOADED, SELECTED, TICKET, PETERSON, TURNS, PLACES };
static const char *const places[] = {"parameter", "offset", "variable", "member", "block", "thread", "interleaved", "another allocation", "inner of two", "outer of two",
                                     "loaded", "loaded index", "ticket", "Peterson", "turns"};
constexpr int BLOCKS = 2, THREADS = 4, MANY = 64;

struct Pair { int before, first, second, behind; };
__device__ int variables[8];
__device__ int one_variable, another_variable;

// Where a kernel finds its words.
struct Words {
    int *locks;       // [MANY]
    int *others;      // [MANY] of another allocation
    Pair *pairs;      // [MANY]
    int **table;      // pointers to locks
    const int *index; // permutation
};

template <int F> __device__ bool try_take(int *word) {
    if (F == SWAP || F == EXCHANGE) {
        int old = F == SWAP ? atomicCAS(word, 0, 1) : atomicExch(word, 1);
        __threadfence();
        return old == 0;
    }
    if (F == OBJECT) return cuda::atomic_ref<int, cuda::thread_scope_device>(*word).exchange(1, cuda::memory_order_acquire) == 0;
    if (F == FLAG) return !reinterpret_cast<cuda::std::atomic_flag *>(word)->test_and_set(cuda::std::memory_order_acquire);
    int old;
    asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(word) : "memory");
    return old == 0;
}

template <int F> __device__ void give(int *word) {
    if (F == SWAP || F == EXCHANGE) __threadfence(), atomicExch(word, 0);
    if (F == OBJECT) cuda::atomic_ref<int, cuda::thread_scope_device>(*word).store(0, cuda::memory_order_release);
    if (F == FLAG) reinterpret_cast<cuda::std::atomic_flag *>(word)->clear(cuda::std::memory_order_release);
    if (F == INLINE) asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(word) : "memory");
}

template <int P, int W> __device__ int *word_of(Words w, int n) {
    if (P == PARAMETER) return w.locks;
    if (P == OFFSET) return w.locks + 3 + 2 * W;
    if (P == VARIABLE) return W ? &another_variable : &one_variable;
    if (P == MEMBER) return W ? &w.pairs[5].second : &w.pairs[5].first;
    if (P == BLOCK) return w.locks + blockIdx.x;
    if (P == THREAD) return w.locks + n;
    if (P == INTERLEAVED) return W ? &w.pairs[n].second : &w.pairs[n].first;
    if (P == MAPPED) return W ? w.others : w.locks;
    if (P == LOADED) return w.table[W];
    return w.locks + w.index[n] + W;
}

template <int F, int P, int W> __global__ void add(Words w, int *data) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    bool each = P == THREAD || P == INTERLEAVED || P == SELECTED;
    if (!each && threadIdx.x != 0) return;
    int *mine = data + (each ? n : P == BLOCK ? blockIdx.x : 0);
    if (P == TICKET) {
        int *ticket = w.locks + 8 * W, *served = ticket + 1, own = atomicAdd(ticket, 1);
        while (atomicAdd(served, 0) != own) {}
        __threadfence();
        *mine += 1;
        __threadfence();
        atomicAdd(served, 1);
    } else if (P == PETERSON) {
        int *flags = w.locks, *turn = w.locks + 2;
        atomicExch(flags + W, 1);
        atomicExch(turn, 1 - W);
        while (atomicAdd(flags + 1 - W, 0) != 0 && atomicAdd(turn, 0) == 1 - W) {}
        __threadfence();
        *mine += 1;
        __threadfence();
        atomicExch(flags + W, 0);
    } else if (P == TURNS) {
        while (atomicCAS(w.locks + W, 1, 0) != 1) {}
        __threadfence();
        *mine += 1;
        __threadfence();
        atomicExch(w.locks + 1 - W, 1);
    } else if (P == INNER || P == OUTER) {
        int *outer = w.locks + (P == INNER ? 0 : 8 * W), *inner = w.others + (P == OUTER ? 0 : 8 * W);
        while (!try_take<F>(outer)) {}
        while (!try_take<F>(inner)) {}
        *mine += 1;
        give<F>(inner);
        give<F>(outer);
    } else {
        int *word = word_of<P, W>(w, n);
        for (bool done = false; !done;)
            if (try_take<F>(word)) {
                *mine += 1;
                give<F>(word);
                done = true;
            }
    }
}

static Words words;
static cudaStream_t streams[2];
static int cases;

// Two launches: kernel of form A and words 0, kernel of form B and words W.
template <int A, int B, int P, int W> __attribute__((noinline)) void pair() {
    size_t size = 4096 + 16 * ++cases;
    int *data, first[MANY] = {P == TURNS};
    CHECK(cudaMalloc(&data, size));
    CHECK(cudaMemset(data, 0, size));
    CHECK(cudaMemcpy(words.locks, first, sizeof first, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    Words other = words;
    if (W && (P == PARAMETER || P == BLOCK || P == THREAD)) other.locks += P == PARAMETER ? 1 : MANY / 2;
    int blocks = P == PETERSON || P == TURNS ? 1 : BLOCKS;
    add<A, P, 0><<<blocks, THREADS, 0, streams[0]>>>(words, data);
    add<B, P, W><<<blocks, THREADS, 0, streams[1]>>>(other, data);
    CHECK(cudaDeviceSynchronize());
    // One of the two locks is the same, or it is not known which ones they are.
    bool excused = !W || P == INNER || P == OUTER || P == LOADED || P == SELECTED || P == PETERSON || P == TURNS;
    printf("%zu %s %s: %s and %s, words %d\n", size, excused ? "locks" : "race", places[P], forms[A], forms[B], W);
}

template <int F, int P> void form() {
    // The number of a form says nothing to those with a code that is fixed.
    constexpr bool fixed = P == TICKET || P == PETERSON || P == TURNS;
    if constexpr (!fixed || F == 0) {
        constexpr int other = (F + P) % FORMS;
        if constexpr (P != TURNS && P != PETERSON) pair<F, fixed ? F : other, P, 0>();
        pair<F, fixed ? F : other, P, 1>();
    }
}

template <int P> void place() {
    form<0, P>(), form<1, P>(), form<2, P>(), form<3, P>(), form<4, P>();
    if constexpr (P + 1 < PLACES) place<P + 1>();
}

int main() {
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int index[MANY];
    for (int i = 0; i < MANY; i++) index[i] = MANY / 2 - 1 - i % (MANY / 2);
    CHECK(cudaMalloc(&words.locks, MANY * sizeof(int)));
    CHECK(cudaMalloc(&words.others, MANY * sizeof(int)));
    CHECK(cudaMalloc(&words.pairs, MANY * sizeof(Pair)));
    CHECK(cudaMalloc(&words.table, 2 * sizeof(int *)));
    CHECK(cudaMalloc((void **)&words.index, sizeof index));
    CHECK(cudaMemset(words.others, 0, MANY * sizeof(int)));
    CHECK(cudaMemset(words.pairs, 0, MANY * sizeof(Pair)));
    int *table[] = {words.locks, words.locks + 1};
    CHECK(cudaMemcpy(words.table, table, sizeof table, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy((void *)words.index, index, sizeof index, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    place<0>();
    puts("done");
    return 0;
}
