// Waits for values in memory, behind everything that can leave a value there: each fill of driver
// and runtime, copies of a few bytes, and writes by a stream. Each with the four conditions, on 32
// and on 64 bits, by a call or in a batch. The argument says how the wait stands to what was left:
// "found" (memory satisfies it already), "awaited" (only the write of the other stream does),
// "touched" (a kernel may have changed what was left). Prints the number of waits.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int code_ = (int)(call);                                                                                      \
        if (code_ != 0) {                                                                                             \
            printf("line %d: %d\n", __LINE__, code_);                                                                 \
            exit(3);                                                                                                  \
        }                                                                                                             \
    } while (0)

template <class F> F *driver(F *, const char *name) {
    void *found = nullptr;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, nullptr));
    return (F *)found;
}
#define DRIVER(name) driver((decltype(&name)) nullptr, #name)

static const int N = 64;

__global__ void fill(int *p, int value) { p[threadIdx.x] = value; }
__global__ void keep(unsigned *p) { p[threadIdx.x] = p[threadIdx.x] | 1; }

// What a way leaves in the word.
struct Way {
    void (*leave)(CUdeviceptr word, cudaStream_t);
    unsigned long long left;
};

static const unsigned long long BYTES = 0x0101010101010101, HALVES = 0x0001000100010001, WORDS = 0x0000000100000001;

static void copied(CUdeviceptr word, size_t bytes, bool asynchronous, cudaStream_t s) {
    unsigned source[16];
    for (unsigned &w : source) w = 1;
    if (asynchronous) CHECK(cudaMemcpyAsync((void *)word, source, bytes, cudaMemcpyHostToDevice, s));
    else CHECK(cudaMemcpy((void *)word, source, bytes, cudaMemcpyHostToDevice));
}

static const Way WAYS[] = {
    {[](CUdeviceptr p, cudaStream_t) { CHECK(cudaMemset((void *)p, 1, 8)); }, BYTES},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(cudaMemsetAsync((void *)p, 1, 8, s)); }, BYTES},
    {[](CUdeviceptr p, cudaStream_t) { CHECK(cudaMemset2D((void *)(p - 64), 64, 1, 16, 3)); }, BYTES},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(cudaMemset2DAsync((void *)(p - 64), 64, 1, 16, 3, s)); }, BYTES},
    {[](CUdeviceptr p, cudaStream_t) { CHECK(DRIVER(cuMemsetD8)(p, 1, 8)); }, BYTES},
    {[](CUdeviceptr p, cudaStream_t) { CHECK(DRIVER(cuMemsetD16)(p, 1, 4)); }, HALVES},
    {[](CUdeviceptr p, cudaStream_t) { CHECK(DRIVER(cuMemsetD32)(p, 1, 2)); }, WORDS},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(DRIVER(cuMemsetD8Async)(p, 1, 8, s)); }, BYTES},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(DRIVER(cuMemsetD16Async)(p, 1, 4, s)); }, HALVES},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(DRIVER(cuMemsetD32Async)(p, 1, 2, s)); }, WORDS},
    {[](CUdeviceptr p, cudaStream_t) { CHECK(DRIVER(cuMemsetD2D8)(p - 64, 64, 1, 16, 3)); }, BYTES},
    {[](CUdeviceptr p, cudaStream_t) { CHECK(DRIVER(cuMemsetD2D16)(p - 64, 64, 1, 8, 3)); }, HALVES},
    {[](CUdeviceptr p, cudaStream_t) { CHECK(DRIVER(cuMemsetD2D32)(p - 64, 64, 1, 4, 3)); }, WORDS},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(DRIVER(cuMemsetD2D16Async)(p - 64, 64, 1, 8, 3, s)); }, HALVES},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(DRIVER(cuMemsetD2D32Async)(p - 64, 64, 1, 4, 3, s)); }, WORDS},
    {[](CUdeviceptr p, cudaStream_t s) { copied(p, 8, false, s); }, WORDS},
    {[](CUdeviceptr p, cudaStream_t s) { copied(p - 16, 64, false, s); }, WORDS},
    {[](CUdeviceptr p, cudaStream_t s) { copied(p, 12, true, s); }, WORDS},
    {[](CUdeviceptr p, cudaStream_t s) { CHECK(DRIVER(cuStreamWriteValue64)(s, p, WORDS, 0)); }, WORDS},
};

static CUstreamBatchMemOpParams wait_of(CUdeviceptr word, unsigned long long value, unsigned flags, int width) {
    CUstreamBatchMemOpParams op = {};
    op.waitValue.operation = width == 4 ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WAIT_VALUE_64;
    op.waitValue.address = word;
    op.waitValue.value64 = width == 4 ? (unsigned)value : value;
    op.waitValue.flags = flags;
    return op;
}

static void wait(cudaStream_t s, CUdeviceptr word, unsigned long long value, unsigned flags, int width, int form) {
    CUstreamBatchMemOpParams op = wait_of(word, value, flags, width);
    if (form == 0 && width == 4) CHECK(DRIVER(cuStreamWaitValue32)(s, word, (unsigned)value, flags));
    if (form == 0 && width == 8) CHECK(DRIVER(cuStreamWaitValue64)(s, word, value, flags));
    if (form == 1) CHECK(DRIVER(cuStreamBatchMemOp)(s, 1, &op, 0));
}

int main(int, char **args) {
    bool found = strcmp(args[1], "awaited") != 0, touched = !strcmp(args[1], "touched");
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    int *x, waits = 0;
    CHECK(cudaMalloc(&x, N * sizeof(int)));
    // The last way is no fill: its value counts, whatever kernels do.
    unsigned ways = sizeof WAYS / sizeof *WAYS - touched;
    for (unsigned n = 0; n < ways * 4 * 2; n++) {
        const Way &way = WAYS[n % ways];
        unsigned flags = n / ways % 4;
        int width = n / ways / 4 ? 8 : 4, form = n % 2;
        unsigned long long left = width == 4 ? (unsigned)way.left : way.left, value, writes;
        switch (flags) {
        case CU_STREAM_WAIT_VALUE_AND: value = writes = found ? 1 : 2; break;
        case CU_STREAM_WAIT_VALUE_NOR: value = found ? 2 : ~left, writes = 0; break;
        default: value = writes = found ? left : left + 1;
        }
        char *room;
        CHECK(cudaMalloc(&room, 256));
        CUdeviceptr word = (CUdeviceptr)room + 64;
        way.leave(word, a);
        CHECK(cudaDeviceSynchronize());
        if (touched) keep<<<1, 2, 0, a>>>((unsigned *)word);
        CHECK(cudaDeviceSynchronize());

        fill<<<1, N, 0, a>>>(x, 1);
        if (width == 4) CHECK(DRIVER(cuStreamWriteValue32)(a, word, (unsigned)writes, 0));
        else CHECK(DRIVER(cuStreamWriteValue64)(a, word, writes, 0));
        wait(b, word, value, flags | (n % 5 ? 0 : CU_STREAM_WAIT_VALUE_FLUSH), width, form);
        fill<<<1, N, 0, b>>>(x, 2);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaFree(room));
        waits++;
    }
    printf("%d\n", waits);
    return 0;
}
