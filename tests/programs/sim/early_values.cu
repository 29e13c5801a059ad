// Kernels that store a value while they run, and streams that wait for it (cuStreamWaitValue). The word of the
// command line says when the value is stored, and what the other stream does. Prints "done".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int error = (int)(call);                                                                                       \
        if (error) printf("line %d: %d\n", __LINE__, error), exit(1);                                                 \
    } while (0)

static const int n = 256;

__device__ void release(unsigned *word, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// One block. `early`: the value comes first; `half`: behind the first half of the results.
__global__ void produce(int *results, unsigned *word, int early, int half) {
    if (early && threadIdx.x == 0) release(word, 1);
    if (threadIdx.x < n / 2) results[threadIdx.x] = threadIdx.x + 7;
    if (half) {
        __syncthreads();
        if (threadIdx.x == 0) release(word, 1);
    }
    if (threadIdx.x >= n / 2) results[threadIdx.x] = threadIdx.x + 7;
    __syncthreads();
    if (!early && !half && threadIdx.x == 0) release(word, 1);
}

// Results of several blocks; the first one stores the value, when it is done (or all are: `last`).
__global__ void produce_by_blocks(int *results, unsigned *word, unsigned *arrived, int last) {
    results[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x + 7;
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (!last) {
        if (blockIdx.x == 0) release(word, 1);
        return;
    }
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(arrived) : "memory");
    if (before + 1 == gridDim.x) release(word, 1);
}

// The value comes behind the first half of the results. The second half replaces that, when another value has come.
__global__ void produce_when_told(int *results, unsigned *word, unsigned *told) {
    results[threadIdx.x] = threadIdx.x + 7;
    __syncthreads();
    if (threadIdx.x == 0) {
        release(word, 1);
        unsigned value;
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(told) : "memory");
        while (value == 0);
    }
    __syncthreads();
    results[threadIdx.x] = threadIdx.x + 8;
}

__global__ void consume(const int *results, int *out) { out[threadIdx.x] = results[threadIdx.x] * 2; }
__global__ void store(unsigned *word) { release(word, 2); }

template <class F> static F entry(const char *name) {
    void *f = nullptr;
    cudaDriverEntryPointQueryResult r;
    CHECK(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &r));
    return (F)f;
}

int main(int, char **args) {
    std::string form = args[1];
    auto has = [&](const char *what) { return form.find(what) != std::string::npos; };
    auto wait = entry<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32");
    auto write = entry<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWriteValue32");
    cudaStream_t a, b, c;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    int *results, *out;
    unsigned *word;
    CHECK(cudaMalloc(&results, n * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    if (has("host")) CHECK(cudaHostAlloc(&word, 256, cudaHostAllocMapped));
    else CHECK(cudaMalloc(&word, 256));
    CHECK(cudaMemset(word, 0, 256));
    CHECK(cudaMemset(results, 0, n * sizeof(int)));
    CHECK(cudaDeviceSynchronize());

    unsigned *told = word + 16;
    if (has("told")) produce_when_told<<<1, n, 0, a>>>(results, word, told);
    else if (has("blocks")) produce_by_blocks<<<4, n / 4, 0, a>>>(results, word, word + 32, has("last"));
    else produce<<<1, n, 0, a>>>(results, word, has("early"), has("half"));
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    if (has("event")) {
        CHECK(cudaEventRecord(event, a));
        CHECK(cudaStreamWaitEvent(b, event, 0));
    }
    // Nobody has read the first results yet: a third stream does not wait.
    if (has("told unread")) CHECK(write(c, (CUdeviceptr)told, 1, 0));
    // What the stream waits for comes behind the kernel, or from another stream, or later.
    if (has("next")) store<<<1, 1, 0, a>>>(word);
    CHECK(wait(b, (CUdeviceptr)word, has("later") || has("next") ? 2 : 1, CU_STREAM_WAIT_VALUE_GEQ));
    if (has("copied")) CHECK(cudaMemcpyAsync(out, results, n * sizeof(int), cudaMemcpyDeviceToDevice, b));
    else if (has("front")) consume<<<1, n / 2, 0, b>>>(results, out);
    else consume<<<1, n, 0, b>>>(results, out);
    // The kernel goes on when they have been read; the host may have seen that before.
    if (has("seen")) CHECK(cudaStreamSynchronize(b));
    if (has("told read")) CHECK(write(b, (CUdeviceptr)told, 1, 0));
    if (has("later")) store<<<1, 1, 0, a>>>(word);
    CHECK(cudaStreamSynchronize(b));
    CHECK(cudaDeviceSynchronize());
    puts("done");
}
