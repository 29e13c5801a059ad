// FlashInfer's plan() fills a pinned buffer of the caller's and enqueues a copy of it. A scheduler
// that prepares the next batch while the device is busy calls it again. With `waits` it first waits
// for the copy, as mini-sglang does now.
#include <flashinfer/attention/scheduler.cuh>

constexpr size_t bytes = 1 << 20;

struct Buffers {
    void *floats, *integers, *pinned;
};

cudaError_t plan_batch(const Buffers &buffers, int first, cudaStream_t stream) {
    int queries[3] = {0, first, 256};
    int pages[3] = {0, 16, 32};
    flashinfer::PrefillPlanInfo info;
    return flashinfer::PrefillPlan<int>(buffers.floats, bytes, buffers.integers, buffers.pinned, bytes, info, queries,
                                        pages, 256, 2, 8, 8, 64, 64, 16, false, 2, -1, -1, true, 0, stream);
}

int main(int count, char **) {
    const bool waits = count > 1;
    Buffers buffers;
    cudaMalloc(&buffers.floats, bytes);
    cudaMalloc(&buffers.integers, bytes);
    cudaMallocHost(&buffers.pinned, bytes);
    cudaStream_t stream;
    cudaEvent_t copied;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
    cudaError_t error = plan_batch(buffers, 16, stream);
    cudaEventRecord(copied, stream);
    if (waits) cudaEventSynchronize(copied);
    if (error == cudaSuccess) error = plan_batch(buffers, 192, stream);
    if (error != cudaSuccess) return error;
    return cudaDeviceSynchronize();
}
