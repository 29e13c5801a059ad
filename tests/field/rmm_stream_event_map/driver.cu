// A pool remembers an event for each stream, by its handle. A stream that was created where another
// one had been destroyed has the same handle.
#include "../rmm_library.hpp"
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

int main() {
    const size_t bytes = 1 << 20;
    rmm::mr::cuda_memory_resource upstream;
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool{&upstream, bytes, bytes};
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    void *memory = pool.allocate(rmm::cuda_stream_view{first}, bytes);
    cudaMemsetAsync(memory, 1, bytes, first);
    pool.deallocate(rmm::cuda_stream_view{first}, memory, bytes);
    cudaStreamDestroy(first);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    if (second != first) return 1;
    memory = pool.allocate(rmm::cuda_stream_view{second}, bytes);
    cudaMemsetAsync(memory, 2, bytes, second);
    pool.deallocate(rmm::cuda_stream_view{second}, memory, bytes);
    return cudaDeviceSynchronize();
}
