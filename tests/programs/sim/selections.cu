// Two kernels on two streams that nothing orders, each of which touches the elements that words in memory select:
// masks, colours, thresholds. By each type of word and element, each test, and each mistake. Each case uses memory of
// a size that no other has. For each of them, the program prints the size, "silent" or "race", and the case.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

constexpr int N = 600;
static cudaStream_t a, b, c;
static int cases;

enum Test { SET, CLEAR, EQUAL, UNEQUAL, LESS, MORE, AT_LEAST, AT_MOST };
static const char *const tests[] = {"set", "clear", "==", "!=", "<", ">", ">=", "<="};

template <int T, class W> __device__ bool selects(W word, W value) {
    if (T == SET) return word;
    if (T == CLEAR) return !word;
    if (T == EQUAL) return word == value;
    if (T == UNEQUAL) return word != value;
    if (T == LESS) return word < value;
    if (T == MORE) return word > value;
    if (T == AT_LEAST) return word >= value;
    return word <= value;
}

template <int T, class W, class E> __global__ void store(const W *words, E *elements, W value, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (selects<T>(words[i], value)) elements[i] = E(i);
}
template <int T, class W, class E> __global__ void load(const W *words, const E *elements, W value, int n, E *sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    E sum = 0;
    if (i < n && selects<T>(words[i], value)) sum += elements[i];
    if (i < n) sums[i] = sum;
}
// Word and element are members of one structure.
template <class W, class E> struct Both { W word; E element; };
template <int T, class W, class E> __global__ void store_both(Both<W, E> *all, W value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && selects<T>(all[i].word, value)) all[i].element = E(i);
}
// A list says which elements, and its word whether.
template <int T, class W, class E> __global__ void store_listed(const int *list, const W *words, E *elements, W value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = min(max(list[i], 0), n - 1);
    if (selects<T>(words[at], value)) elements[at] = E(i);
}
// The test is that of the element before.
template <int T, class W, class E> __global__ void store_behind(const W *words, E *elements, W value, int n) {
    W last = 1;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        if (selects<T>(last, value)) elements[i] = E(i);
        last = words[i];
    }
}
// One word selects all or nothing.
template <int T, class W, class E> __global__ void store_all(const W *word, E *elements, W value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && selects<T>(*word, value)) elements[i] = E(i);
}
template <class W> __global__ void flip(W *words, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) words[i] = !words[i];
}

template <class W, class E> struct Case {
    W *words, *others;
    E *elements, *sums;
    int *list;
    size_t size;
    const char *name;
    Case(const char *name, int unit = sizeof(E)) : size(size_t(unit) * (N + 8) + 256 * ++cases), name(name) {
        W host[N + 8];
        int numbers[N];
        for (int i = 0; i < N + 8; i++) host[i] = W(i % 3);
        for (int i = 0; i < N; i++) numbers[i] = i;
        for (W **p : {&words, &others}) {
            CHECK(cudaMalloc(p, sizeof host));
            CHECK(cudaMemcpy(*p, host, sizeof host, cudaMemcpyHostToDevice));
        }
        CHECK(cudaMalloc(&elements, size));
        CHECK(cudaMemset(elements, 0, size));
        CHECK(cudaMalloc(&sums, sizeof(E) * N));
        CHECK(cudaMalloc(&list, sizeof numbers));
        CHECK(cudaMemcpy(list, numbers, sizeof numbers, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
    }
    void end(const char *verdict, const char *one, const char *other, const char *how) {
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        printf("%zu %s %s, %s and %s, %s\n", size, verdict, name, one, other, how);
    }
};

template <int S, int T, class W, class E> void pair(const char *name, const char *verdict, int x, int y) {
    Case<W, E> m(name);
    store<S><<<3, 64, 0, a>>>(m.words, m.elements, W(x), N);
    store<T><<<3, 64, 0, b>>>(m.words, m.elements, W(y), N);
    m.end(verdict, tests[S], tests[T], "stored");
}

template <class W, class E> void all(const char *name) {
    pair<SET, CLEAR, W, E>(name, "silent", 0, 0);
    pair<EQUAL, UNEQUAL, W, E>(name, "silent", 1, 1);
    pair<SET, SET, W, E>(name, "race", 0, 0);
    pair<EQUAL, EQUAL, W, E>(name, "race", 1, 1);
    if constexpr (sizeof(W) > 1 || W(2) != W(1)) {
        pair<EQUAL, EQUAL, W, E>(name, "silent", 1, 2);
        pair<LESS, AT_LEAST, W, E>(name, "silent", 2, 2);
        pair<AT_MOST, MORE, W, E>(name, "silent", 1, 1);
        pair<EQUAL, MORE, W, E>(name, "silent", 0, 1);
        pair<LESS, MORE, W, E>(name, "race", 2, 0);
        pair<EQUAL, LESS, W, E>(name, "race", 1, 2);
        pair<UNEQUAL, UNEQUAL, W, E>(name, "race", 1, 2);
    }
    {
        Case<W, E> m(name);
        store<SET><<<3, 64, 0, a>>>(m.words, m.elements, W(0), N);
        load<CLEAR><<<10, 64, 0, b>>>(m.words, m.elements, W(0), N, m.sums);
        m.end("silent", "set", "clear", "loaded");
    }
    {
        Case<W, E> m(name);
        store<SET><<<3, 64, 0, a>>>(m.words, m.elements, W(0), N);
        load<SET><<<10, 64, 0, b>>>(m.words, m.elements, W(0), N, m.sums);
        m.end("race", "set", "set", "loaded");
    }
    {
        Case<W, E> m(name);
        store<SET><<<3, 64, 0, a>>>(m.words, m.elements, W(0), N);
        store<CLEAR><<<3, 64, 0, b>>>(m.words + 1, m.elements, W(0), N);
        m.end("race", "set", "clear", "the words one further on");
    }
    {
        Case<W, E> m(name);
        store<SET><<<3, 64, 0, a>>>(m.words, m.elements, W(0), N);
        store<CLEAR><<<3, 64, 0, b>>>(m.words, m.elements + 1, W(0), N);
        m.end("race", "set", "clear", "the elements one further on");
    }
    {
        Case<W, E> m(name);
        store<SET><<<3, 64, 0, a>>>(m.words + 2, m.elements + 2, W(0), N);
        store<CLEAR><<<3, 64, 0, b>>>(m.words, m.elements, W(0), N);
        m.end("silent", "set", "clear", "both two further on");
    }
    {
        Case<W, E> m(name);
        store<SET><<<3, 64, 0, a>>>(m.words, m.elements, W(0), N);
        store<CLEAR><<<3, 64, 0, b>>>(m.others, m.elements, W(0), N);
        m.end("race", "set", "clear", "other words");
    }
    {
        Case<W, E> m(name);
        store<SET><<<3, 64, 0, a>>>(m.words, m.elements, W(0), N);
        load<CLEAR><<<10, 64, 0, b>>>(m.words, m.elements, W(0), N, m.elements);
        m.end("race", "set", "clear", "all stored");
    }
    {
        Case<W, E> m(name);
        store_behind<SET><<<1, 64, 0, a>>>(m.words, m.elements, W(0), N);
        store<CLEAR><<<3, 64, 0, b>>>(m.words, m.elements, W(0), N);
        m.end("race", "set", "clear", "the test of the element before");
    }
    // A word that is narrower than the element does not say how far apart the members are.
    if constexpr (sizeof(W) >= sizeof(E)) {
        Case<W, E> m(name, sizeof(Both<W, E>));
        auto *both = reinterpret_cast<Both<W, E> *>(m.elements);
        store_both<SET><<<10, 64, 0, a>>>(both, W(0), N);
        store_both<CLEAR><<<10, 64, 0, b>>>(both, W(0), N);
        m.end("silent", "set", "clear", "members");
    }
    {
        Case<W, E> m(name, sizeof(Both<W, E>));
        auto *both = reinterpret_cast<Both<W, E> *>(m.elements);
        store_both<CLEAR><<<10, 64, 0, a>>>(both, W(0), N);
        store_both<CLEAR><<<10, 64, 0, b>>>(both, W(0), N);
        m.end("race", "clear", "clear", "members");
    }
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    all<int, float>("int and float"), all<int, double>("int and double"), all<int, unsigned char>("int and bytes");
    all<unsigned, int>("unsigned and int"), all<unsigned char, float>("bytes and float");
    all<signed char, float>("signed bytes and float"), all<short, float>("short and float");
    all<unsigned short, double>("unsigned short and double"), all<bool, int>("bool and int");
    {
        Case<int, float> m("int and float");
        store_listed<SET><<<10, 64, 0, a>>>(m.list, m.words, m.elements, 0, N);
        store_listed<CLEAR><<<10, 64, 0, b>>>(m.list, m.words, m.elements, 0, N);
        m.end("silent", "set", "clear", "listed");
    }
    for (int apart : {0, 1}) {
        Case<int, float> m("int and float");
        store_all<SET><<<10, 64, 0, a>>>(m.words + 5, m.elements, 0, N);
        store_all<CLEAR><<<10, 64, 0, b>>>(m.words + 5 + apart, m.elements + 1, 0, N);
        m.end(apart ? "race" : "silent", "set", "clear", apart ? "two words for all" : "one word for all");
    }
    {
        // What is written to the words in between is a race of its own.
        Case<int, float> m("int and float"), words("words");
        auto *mask = reinterpret_cast<int *>(words.elements);
        store<SET><<<3, 64, 0, a>>>(mask, m.elements, 0, N);
        flip<<<10, 64, 0, c>>>(mask, N);
        store<CLEAR><<<3, 64, 0, b>>>(mask, m.elements, 0, N);
        words.end("race", "set", "clear", "flipped");
    }
    puts("done");
}
