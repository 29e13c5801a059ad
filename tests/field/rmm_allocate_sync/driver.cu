// allocate_sync() promises memory that every stream may use at once. It comes from a pool in stream
// order, of the default stream.
#include "../rmm_library.hpp"
#include <rmm/mr/cuda_async_memory_resource.hpp>

int main() {
    const size_t bytes = 1 << 20;
    rmm::mr::cuda_async_memory_resource resource{bytes};
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    void *memory = resource.allocate_sync(bytes);
    cudaMemsetAsync(memory, 1, bytes / 2, stream);
    cudaMemsetAsync(static_cast<char *>(memory) + bytes / 2, 2, bytes / 2, stream);
    cudaStreamSynchronize(stream);
    resource.deallocate_sync(memory, bytes);
    return cudaDeviceSynchronize();
}
