// Pairs of kernels on two streams that nothing orders, on one object of libcu++: each method of
// `cuda::atomic_ref`, for each size and scope, against a load, a store and an update of the other
// kernel, atomic and plain. Each pair prints a line: whether CUDA's memory model calls it a race,
// the template arguments of its two kernels, and what they do. One pair is one finding at most.
//
//   atomics [first] [last]   runs these pairs, all by default
#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Method { LOAD, ACQUIRE, STORE, RELEASE, EXCHANGE, SWAP, ADD, SUB, AND, OR, XOR, MAX, MIN, WAIT, VOLATILE_LOAD, VOLATILE_STORE, READ, WRITE, METHODS };
enum Scope { SYSTEM, DEVICE, BLOCK, SCOPES };
static const char *const names[] = {"load", "acquire", "store", "release", "exchange", "swap", "add", "sub", "and", "or", "xor", "max", "min", "wait", "volatile_load", "volatile_store", "read", "write"};
static const char *const scopes[] = {"system", "device", "block"};

template <int S> struct Of;
template <> struct Of<SYSTEM> { static const cuda::thread_scope scope = cuda::thread_scope_system; };
template <> struct Of<DEVICE> { static const cuda::thread_scope scope = cuda::thread_scope_device; };
template <> struct Of<BLOCK> { static const cuda::thread_scope scope = cuda::thread_scope_block; };

// `SIDE`: two launches of one pair have kernels of their own.
template <class T, int M, int S, int SIDE> __global__ void touch(T *p, T *out) {
    cuda::atomic_ref<T, Of<S>::scope> a(*p);
    const auto relaxed = cuda::memory_order_relaxed;
    T old = 0;
    if (M == LOAD) old = a.load(relaxed);
    if (M == ACQUIRE) old = a.load(cuda::memory_order_acquire);
    if (M == STORE) a.store(T(1), relaxed);
    if (M == RELEASE) a.store(T(1), cuda::memory_order_release);
    if (M == EXCHANGE) old = a.exchange(T(1), relaxed);
    if (M == SWAP) a.compare_exchange_strong(old, T(1), relaxed);
    if (M == ADD) old = a.fetch_add(T(1), relaxed);
    if (M == SUB) old = a.fetch_sub(T(1), relaxed);
    if (M == AND) old = a.fetch_and(T(1), relaxed);
    if (M == OR) old = a.fetch_or(T(1), relaxed);
    if (M == XOR) old = a.fetch_xor(T(1), relaxed);
    if (M == MAX) old = a.fetch_max(T(1), relaxed);
    if (M == MIN) old = a.fetch_min(T(1), relaxed);
    if (M == WAIT) a.wait(T(99), relaxed), a.notify_all();
    if (M == VOLATILE_LOAD) old = *(volatile T *)p;
    if (M == VOLATILE_STORE) *(volatile T *)p = T(1);
    if (M == READ) old = *p;
    if (M == WRITE) *p = T(1);
    *out = old;
}

static bool is_atomic(int method, int scope) {
    return method == VOLATILE_LOAD || method == VOLATILE_STORE || (method < VOLATILE_LOAD && scope != BLOCK);
}
static bool writes(int method) { return method != LOAD && method != ACQUIRE && method != WAIT && method != VOLATILE_LOAD && method != READ; }

template <class T> const char *name();
template <> const char *name<unsigned char>() { return "unsigned char"; }
template <> const char *name<unsigned short>() { return "unsigned short"; }
template <> const char *name<unsigned>() { return "unsigned int"; }
template <> const char *name<unsigned long long>() { return "unsigned long long"; }

static int number, first, last;
static cudaStream_t one, other;

template <class T, int M, int S, int N, int R> void pair() {
    int at = number++;
    if (at < first || at > last) return;
    T *p, *out;
    CHECK(cudaMalloc(&p, 256));
    CHECK(cudaMalloc(&out, 512));
    CHECK(cudaMemset(p, 0, 256));
    CHECK(cudaDeviceSynchronize());
    touch<T, M, S, 0><<<1, 1, 0, one>>>(p, out);
    touch<T, N, R, 1><<<1, 1, 0, other>>>(p, (T *)((char *)out + 256));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(p));
    CHECK(cudaFree(out));
    bool races = (writes(M) || writes(N)) && !(is_atomic(M, S) && is_atomic(N, R));
    printf("%s %s, %d, %d | %s, %d, %d | %s/%s %s/%s\n", races ? "race" : "clean", name<T>(), M, S, name<T>(), N, R,
           names[M], scopes[S], names[N], scopes[R]);
}

// A method against a load, an update, and a plain read or write of the other kernel.
template <class T, int M, int S> void against() {
    pair<T, M, S, LOAD, S>();
    pair<T, M, S, ADD, DEVICE>();
    pair<T, M, S, M % 2 ? READ : WRITE, SYSTEM>();
}

template <class T, int S> void methods() {
    against<T, LOAD, S>();
    against<T, RELEASE, S>();
    against<T, ADD, S>();
    against<T, SWAP, S>();
}

template <class T> void sizes() {
    methods<T, SYSTEM>();
    methods<T, DEVICE>();
    methods<T, BLOCK>();
}

template <int M> void every() {
    pair<unsigned, M, DEVICE, LOAD, SYSTEM>();
    pair<unsigned, M, DEVICE, READ, SYSTEM>();
    pair<unsigned long long, M, DEVICE, SUB, DEVICE>();
}

int main(int argc, char **argv) {
    first = argc > 1 ? atoi(argv[1]) : 0, last = argc > 2 ? atoi(argv[2]) : 1 << 20;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    sizes<unsigned char>();
    sizes<unsigned short>();
    sizes<unsigned>();
    sizes<unsigned long long>();
    every<ACQUIRE>(), every<STORE>(), every<EXCHANGE>(), every<SUB>(), every<AND>();
    every<OR>(), every<XOR>(), every<MAX>(), every<MIN>(), every<WAIT>();
    every<VOLATILE_LOAD>(), every<VOLATILE_STORE>();
    return 0;
}
