// Copies behind waits of their stream for words that the host writes, and a host that touches the copies'
// memory before it writes the words (late, and so in order) or when it has written them (early). Each case uses
// memory of a size that no other has. For each of them, the program prints the size, the confidence of its race,
// why it is not more, and the case.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <utility>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int error = (int)(call);                                                                                       \
        if (error) printf("line %d: %d\n", __LINE__, error), exit(1);                                                 \
    } while (0)

// Where the words are: in pinned memory of their own, behind the copy's bytes, or in registered memory.
// One word, two that come together, two of which one comes late.
enum Where { APART, BEHIND, REGISTERED, WHERES };
static const char *const wheres[] = {"apart", "behind the bytes", "in registered memory"};
enum Words { ONE, BOTH, HALF, WORDS };
static const char *const words_of[] = {"one word", "two words", "one word of two"};
enum Compare { GEQ, EQ, AND, COMPARES };
static const char *const compares[] = {">=", "==", "&"};

static cudaStream_t stream;
static char *device, *far, *registered;
static int cases;

template <class F> static F entry(const char *name) {
    void *f = nullptr;
    cudaDriverEntryPointQueryResult r;
    CHECK(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &r));
    return (F)f;
}

static void wait(char *host_word, bool wide, Compare compare) {
    void *word;
    CHECK(cudaHostGetDevicePointer(&word, host_word, 0));
    static auto narrow = entry<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32");
    static auto full = entry<CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned)>("cuStreamWaitValue64");
    unsigned flags = compare == GEQ ? CU_STREAM_WAIT_VALUE_GEQ : compare == EQ ? CU_STREAM_WAIT_VALUE_EQ : CU_STREAM_WAIT_VALUE_AND;
    if (wide) CHECK(full(stream, (CUdeviceptr)word, 5ull << 32, flags));
    else CHECK(narrow(stream, (CUdeviceptr)word, 5, flags));
}

// A value that ends the wait.
static void end(char *word, bool wide, Compare compare) {
    unsigned long long value = (compare == EQ ? 5ull : compare == GEQ ? 6ull : 4ull) << (wide ? 32 : 0);
    if (wide) __atomic_store_n((unsigned long long *)word, value, __ATOMIC_RELEASE);
    else __atomic_store_n((unsigned *)word, (unsigned)value, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void one(Where where, Words words, Compare compare, bool wide, bool down, bool early) {
    size_t bytes = 3 * 4096 + 64 * ++cases, size = bytes + 64;
    char *pinned;
    CHECK(cudaHostAlloc(&pinned, size, cudaHostAllocMapped));
    memset(pinned, 0, size);
    memset(far, 0, 64);
    memset(registered, 0, 64);
    CHECK(cudaDeviceSynchronize());
    char *first = where == APART ? far : where == BEHIND ? pinned + bytes : registered;
    char *second = first + 16;
    wait(first, wide, compare);
    if (words != ONE) wait(second, wide, compare);
    if (down) CHECK(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream));
    else CHECK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
    if (early) end(first, wide, compare);
    if (early && words == BOTH) end(second, wide, compare);
    int sum = 0;
    for (size_t i = 0; i < bytes / 4; i += 64) {
        if (down) sum += ((volatile int *)pinned)[i];
        else ((volatile int *)pinned)[i] = (int)i + 1;
    }
    if (!early) end(first, wide, compare);
    if (words != ONE && !(early && words == BOTH)) end(second, wide, compare);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFreeHost(pinned));
    bool readable = where == APART || where == BEHIND, over = early && words != HALF;
    // What copies write behind such a wait is not judged where pages are watched in place.
    const char *verdict = down ? "none null" : readable && over ? "certain null" : "possible open-wait";
    printf("%zu %s %s, %s%s, %s, %s, the host %s %s\n", size, verdict, wheres[where],
        words_of[words], wide ? " of eight bytes" : "", compares[compare], down ? "downloaded" : "uploaded", down ? "reads" : "writes", early ? "early" : "late");
}

// Findings of one place in the program are one: each case has its place.
template <int N> __attribute__((noinline)) void in_case() {
    constexpr bool early = N & 1, down = N & 2, wide = N & 4;
    constexpr int rest = N >> 3;
    constexpr Where where = Where(rest / (COMPARES * WORDS));
    one(where, Words(rest / COMPARES % WORDS), Compare(rest % COMPARES), wide, down, early);
    asm volatile("");
}
template <int... N> void in_cases(std::integer_sequence<int, N...>) { (in_case<N>(), ...); }

int main() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, 1 << 20));
    CHECK(cudaHostAlloc(&far, 64, cudaHostAllocMapped));
    registered = (char *)aligned_alloc(4096, 4096);
    memset(registered, 0, 4096);
    CHECK(cudaHostRegister(registered, 4096, cudaHostRegisterMapped));
    in_cases(std::make_integer_sequence<int, 8 * WHERES * COMPARES * WORDS>());
    puts("done");
}
