// Two host threads use their per-thread default streams, which have one handle, with one caching
// allocator. With `distinct` each has a stream of its own, as the allocator wants it.
#include <cub/util_allocator.cuh>
#include <cstring>
#include <thread>

int main(int count, char **arguments) {
    const bool distinct = count > 1 && !strcmp(arguments[1], "distinct");
    const size_t bytes = 1 << 20;
    cub::CachingDeviceAllocator allocator;
    auto work = [&](int value) {
        cudaStream_t stream = cudaStreamPerThread;
        if (distinct) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        void *block;
        allocator.DeviceAllocate(&block, bytes, stream);
        cudaMemsetAsync(block, value, bytes, stream);
        allocator.DeviceFree(block);
    };
    // One behind the other: which of the two is first makes no difference.
    std::thread(work, 1).join();
    std::thread(work, 2).join();
    return cudaDeviceSynchronize();
}
