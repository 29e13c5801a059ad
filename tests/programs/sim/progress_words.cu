// Kernels that write words by which the host learns how far they are. The words of the command line:
// the kind of the memory, how the word is stored, and what the host does. Prints "done".
#include <cuda_runtime.h>
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

static const int rounds = 32;
static std::string kind;

#define STORES(each)                                                                               \
    each(release, "st.release.sys.global.u32 [%0], %1;")                                           \
    each(fenced, "fence.acq_rel.sys; st.relaxed.sys.global.u32 [%0], %1;")                         \
    each(membar, "membar.sys; st.volatile.global.u32 [%0], %1;")                                   \
    each(membar_red, "membar.sys; red.relaxed.sys.global.max.u32 [%0], %1;")                       \
    each(exchange, "{ .reg .u32 old; atom.release.sys.global.exch.b32 old, [%0], %1; }")           \
    each(relaxed, "st.relaxed.sys.global.u32 [%0], %1;")                                           \
    each(volatile_, "st.volatile.global.u32 [%0], %1;")                                            \
    each(red, "red.relaxed.sys.global.max.u32 [%0], %1;")                                          \
    each(atom, "{ .reg .u32 old; atom.relaxed.sys.global.max.u32 old, [%0], %1; }")                \
    each(device_fence, "fence.acq_rel.gpu; st.relaxed.sys.global.u32 [%0], %1;")                   \
    each(device, "st.relaxed.gpu.global.u32 [%0], %1;")                                            \
    each(device_release, "st.release.gpu.global.u32 [%0], %1;")                                    \
    each(device_red, "red.relaxed.gpu.global.max.u32 [%0], %1;")                                   \
    each(plain, "st.global.u32 [%0], %1;")                                                         \
    each(beside, "st.global.u32 [%0], %1; st.relaxed.sys.global.u32 [%0+64], %1;")                 \
    each(device_beside, "st.relaxed.gpu.global.u32 [%0], %1;\n"                                    \
                        "st.relaxed.sys.global.u32 [%0+64], %1;")                                  \
    each(device_beside_release, "st.relaxed.gpu.global.u32 [%0], %1;\n"                            \
                                "st.release.sys.global.u32 [%0+64], %1;")                          \
    each(system_beside_device, "st.relaxed.sys.global.u32 [%0], %1;\n"                             \
                               "st.relaxed.gpu.global.u32 [%0+64], %1;")                           \
    each(release_beside_device, "st.release.sys.global.u32 [%0], %1;\n"                            \
                                "st.relaxed.gpu.global.u32 [%0+64], %1;")

// Each block has a word of its own and results of its own.
#define KERNEL(name, code)                                                                         \
    __global__ void by_##name(int *results, int *words, int apart) {                               \
        int *word = words + blockIdx.x * apart;                                                    \
        for (int i = 1; i <= rounds; i++) {                                                        \
            results[blockIdx.x * rounds + i - 1] = 3 * i;                                          \
            asm volatile(code ::"l"(word), "r"(i) : "memory");                                     \
        }                                                                                          \
    }
STORES(KERNEL)

// Results that are stored so: many words, none of which tells of another.
__global__ void fill(volatile int *results) { results[blockIdx.x * blockDim.x + threadIdx.x] = 7; }

// A kernel of its own that stores the word.
__global__ void say(int *word, int value) { *(volatile int *)word = value; }
__global__ void say_plainly(int *word, int value) { *word = value; }
__global__ void work(int *results) {
    for (int i = 0; i < rounds; i++) results[i] = 3 * i;
}

// A word that the host clears again while the kernel runs.
__global__ void count(int *word) {
    for (int i = 0; i < rounds; i++) atomicAdd_system(word, 1);
}

static int *memory(int count) {
    int *found;
    size_t bytes = (count * sizeof(int) + 65535) / 65536 * 65536;
    if (kind == "managed") {
        CHECK(cudaMallocManaged(&found, bytes));
    } else if (kind == "registered") {
        found = (int *)aligned_alloc(1 << 16, bytes);
        CHECK(cudaHostRegister(found, bytes, cudaHostRegisterMapped));
    } else {
        CHECK(cudaHostAlloc(&found, bytes, cudaHostAllocMapped));
    }
    memset(found, 0, bytes);
    return found;
}

__attribute__((noinline)) static int load(const int *from) { return *(volatile const int *)from; }

int main(int, char **args) {
    kind = args[1];
    std::string store = args[2], form = args[3];
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    const int blocks = form == "blocks" || form == "dense" ? 8 : 1, apart = form == "dense" ? 1 : 32;
    int *results = memory(2048), *words = memory(1024), *kept, sum = 0;
    CHECK(cudaMalloc(&kept, 8192));
    CHECK(cudaDeviceSynchronize());
    int *into = form == "told" || form == "untold" ? results : kept;
    auto go = [&](const char *name, void (*kernel)(int *, int *, int)) {
        if (store == name) kernel<<<blocks, 1, 0, s>>>(into, words, apart);
    };
#define GO(name, code) go(#name, by_##name);
    STORES(GO)
    if (store == "results") fill<<<8, 128, 0, s>>>(results);
    if (store == "before") say<<<1, 1, 0, s>>>(words, rounds);
    if (store == "before" || store.find("after") == 0) work<<<1, 1, 0, s>>>(results);
    if (store == "after") say<<<1, 1, 0, s>>>(words, rounds);
    if (store == "after_plain") say_plainly<<<1, 1, 0, s>>>(words, rounds);
    if (store == "count") count<<<1, 1, 0, s>>>(words);
    auto wait = [&](const int *word) {
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < rounds) std::this_thread::yield();
    };

    if (form == "untold") {               // no look before
        sum = load(results);
    } else if (form == "early") {         // of many words
        sum = load(results + 3) + load(results + 4);
    } else if (form == "cleared") {
        __atomic_store_n(words, 0, __ATOMIC_RELAXED);
    } else if (form == "wiped") {         // more than a word at a time
        static void *(*volatile set)(void *, int, size_t) = memset;
        set(words, 0, 256);
    } else {                              // polled, told, blocks, dense
        for (int block = 0; block < blocks; block++) wait(words + block * apart);
        if (form == "told") for (int i = 0; i < rounds; i++) sum += load(results + i);
    }
    CHECK(cudaDeviceSynchronize());
    puts(sum < 0 ? "lost" : "done");
}
