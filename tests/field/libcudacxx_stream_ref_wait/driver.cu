// cuda::stream_ref::wait() is to block until the stream has finished. Its result is read by another
// stream right away.
// The header's switch, before it was released for all.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#include <cuda/stream_ref>
#include <unistd.h>

int main() {
    const size_t bytes = 1 << 20;
    char *host, *shared, *copied;
    cudaMallocHost(&host, bytes);
    cudaMalloc(&shared, bytes);
    cudaMalloc(&copied, bytes);
    cudaStream_t producer, consumer;
    cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking);
    // What the producer does takes a while.
    cudaLaunchHostFunc(producer, [](void *) { usleep(500000); }, nullptr);
    cudaMemcpyAsync(shared, host, bytes, cudaMemcpyHostToDevice, producer);
    cuda::stream_ref(producer).wait();
    cudaMemcpyAsync(copied, shared, bytes, cudaMemcpyDeviceToDevice, consumer);
    cudaStreamSynchronize(consumer);
    return cudaDeviceSynchronize();
}
