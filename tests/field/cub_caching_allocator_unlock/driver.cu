// Two host threads, each with a stream, take a block from one caching allocator and give it back. In
// DeviceFree the block is in the list of free ones before its event is recorded: what the event said
// before is what the other thread asks for. The window between is widened where the allocator itself
// calls out, at the record. With `guarded` no two threads are in the allocator at a time.
#include <atomic>
#include <mutex>
#include <thread>
#include <unistd.h>

std::atomic<int> step{0};
bool guarded = false;

cudaError_t late_record(cudaEvent_t event, cudaStream_t stream) {
    if (step == 1) {
        step = 2;
        for (int i = 0; i < (guarded ? 100 : 20000) && step == 2; i++) usleep(1000);
    }
    return cudaEventRecord(event, stream);
}

#define cudaEventRecord late_record
#include <cub/util_allocator.cuh>
#undef cudaEventRecord

int main(int count, char **) {
    guarded = count > 1;
    std::mutex mutex;
    auto guard = [&] { return guarded ? std::unique_lock(mutex) : std::unique_lock<std::mutex>(); };
    const size_t bytes = 1 << 20;
    cub::CachingDeviceAllocator allocator;
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    void *block, *other;
    allocator.DeviceAllocate(&block, bytes, first);
    std::thread thread([&] {
        while (step != 2) usleep(1000);
        {
            auto held = guard();
            allocator.DeviceAllocate(&other, bytes, second);
        }
        cudaMemsetAsync(other, 2, bytes, second);
        step = 3;
    });
    cudaMemsetAsync(block, 1, bytes, first);
    {
        auto held = guard();
        step = 1;
        allocator.DeviceFree(block);
    }
    thread.join();
    return cudaDeviceSynchronize();
}
