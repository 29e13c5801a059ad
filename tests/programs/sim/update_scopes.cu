// Two kernels update one word, each of them another one beside it, with scopes of their own, or one
// hands data over to the other by the word. The words of the command line: the kind of the memory
// (`shared`: two processes; `late`: managed, and the other device comes later), the two forms, where
// the second kernel runs (another device or the same), and whether it waits for the first. Prints
// "done".
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                         \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

#define FORMS(each)                                                                                \
    each(red_gpu, "red.relaxed.gpu.global.add.u32 [%0], %1;")                                      \
    each(red_sys, "red.relaxed.sys.global.add.u32 [%0], %1;")                                      \
    each(atom_gpu, "{ .reg .u32 old; atom.relaxed.gpu.global.add.u32 old, [%0], %1; }")            \
    each(atom_sys, "{ .reg .u32 old; atom.relaxed.sys.global.add.u32 old, [%0], %1; }")            \
    each(swap_gpu, "{ .reg .u32 old; atom.relaxed.gpu.global.cas.b32 old, [%0], 0, %1; }")         \
    each(swap_sys, "{ .reg .u32 old; atom.relaxed.sys.global.cas.b32 old, [%0], 0, %1; }")         \
    each(store_gpu, "st.relaxed.gpu.global.u32 [%0], %1;")                                         \
    each(store_sys, "st.relaxed.sys.global.u32 [%0], %1;")                                         \
    each(default_, "{ .reg .u32 old; atom.global.add.u32 old, [%0], %1; }")                        \
    each(gpu_beside_sys, "red.relaxed.gpu.global.add.u32 [%0], %1;\n"                              \
                         "red.relaxed.sys.global.add.u32 [%0+64], %1;")                            \
    each(sys_beside_gpu, "red.relaxed.sys.global.add.u32 [%0], %1;\n"                              \
                         "red.relaxed.gpu.global.add.u32 [%0+128], %1;")                           \
    each(load_sys, "{ .reg .u32 old; ld.relaxed.sys.global.u32 old, [%0]; "                        \
                   "st.global.u32 [%0+256], old; }")                                               \
    each(fenced_gpu, "fence.acq_rel.sys; red.relaxed.gpu.global.add.u32 [%0], %1;")

#define KERNEL(name, code)                                                                         \
    __global__ void by_##name(unsigned *word, unsigned by) {                                       \
        asm volatile(code ::"l"(word), "r"(by) : "memory");                                        \
    }
FORMS(KERNEL)

#define GIVES(name, scope)                                                                         \
    __global__ void by_##name(unsigned *word, unsigned by) {                                       \
        if (threadIdx.x) return;                                                                   \
        word[64] = by;                                                                             \
        asm volatile("st.release." scope ".global.u32 [%0], %1;" ::"l"(word), "r"(by) : "memory"); \
    }
GIVES(gives_gpu, "gpu")
GIVES(gives_sys, "sys")
__global__ void by_takes(unsigned *word, unsigned) {
    if (threadIdx.x) return;
    unsigned found = 0;
    while (!found) asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(word) : "memory");
    word[128] = word[64];
}

static void go(const std::string &form, unsigned *word, cudaStream_t on) {
#define GO(name, code)                                                                             \
    if (form == #name) by_##name<<<1, 32, 0, on>>>(word, 1);
    FORMS(GO)
    GO(gives_gpu, )
    GO(gives_sys, )
    GO(takes, )
    CHECK(cudaGetLastError());
}

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) exit(4);                                                                 \
    } while (0)

static void in_two_processes(const std::string &first, const std::string &second, int other, bool waits) {
    int there[2], back[2], status;
    cudaIpcMemHandle_t handle;
    unsigned *word;
    char end;
    REQUIRE(!pipe(there) && !pipe(back));
    pid_t child = fork();
    if (!child) {
        REQUIRE(read(there[0], &handle, sizeof handle) == sizeof handle);
        CHECK(cudaSetDevice(other));
        CHECK(cudaIpcOpenMemHandle((void **)&word, handle, cudaIpcMemLazyEnablePeerAccess));
        go(second, word, nullptr);
        CHECK(cudaDeviceSynchronize());
        REQUIRE(write(back[1], "", 1) == 1);
        exit(0);
    }
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&word, 1 << 21));
    CHECK(cudaMemset(word, 0, 1 << 21));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaIpcGetMemHandle(&handle, word));
    go(first, word, nullptr);
    if (waits) CHECK(cudaDeviceSynchronize());
    REQUIRE(write(there[1], &handle, sizeof handle) == sizeof handle);
    REQUIRE(read(back[0], &end, 1) == 1);
    CHECK(cudaDeviceSynchronize());
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

int main(int, char **args) {
    std::string kind = args[1], first = args[2], second = args[3], where = args[4], order = args[5];
    const int other = where == "other";
    if (kind == "shared") {
        in_two_processes(first, second, other, order == "waits");
        puts("done");
        return 0;
    }
    unsigned *word;
    cudaStream_t a, b;
    cudaEvent_t done;
    if (kind != "late") {
        CHECK(cudaSetDevice(1));
        CHECK(cudaFree(nullptr));
    }
    if (kind == "peer") CHECK(cudaDeviceEnablePeerAccess(0, 0));
    CHECK(cudaSetDevice(0));
    if (kind == "managed" || kind == "late") CHECK(cudaMallocManaged(&word, 4096));
    else if (kind == "mapped") CHECK(cudaHostAlloc(&word, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    else CHECK(cudaMalloc(&word, 4096));
    CHECK(cudaMemset(word, 0, 4096));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    go(first, word, a);
    CHECK(cudaEventRecord(done, a));
    CHECK(cudaSetDevice(other));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    if (order == "waits") CHECK(cudaStreamWaitEvent(b, done, 0));
    go(second, word, b);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceSynchronize());
    puts("done");
}
