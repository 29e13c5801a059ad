// Touches of the host that the program orders before what another thread does next, while further threads make calls
// that may be the ones to log the touches. A host function waits for the touch of the main thread; a kernel comes behind
// the function. With the word "late" the main thread touches when the function has returned: races.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

constexpr int ROUNDS = 100, CALLERS = 3;
static std::atomic<int> told, touched, over;

__global__ void fill(char *to) { to[threadIdx.x] = 1; }

static void tell(void *waits) {
    told = 1;
    while (waits && !touched) std::this_thread::yield();
}
static void call() {
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&event));
    while (!over) CHECK(cudaEventRecord(event, stream));
}

int main(int count, char **) {
    bool late = count > 1;
    cudaStream_t stream;
    char *result;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocManaged(&result, 4096));
    std::thread callers[CALLERS];
    for (std::thread &caller : callers)
        caller = std::thread(call);
    for (int round = 0; round < (late ? 1 : ROUNDS); round++) {
        told = touched = 0;
        CHECK(cudaLaunchHostFunc(stream, tell, late ? nullptr : &touched));
        fill<<<1, 32, 0, stream>>>(result);
        while (!told) std::this_thread::yield();
        if (late) std::this_thread::sleep_for(std::chrono::milliseconds(250));
        ((volatile char *)result)[16] = 1;
        touched = 1;
        CHECK(cudaStreamSynchronize(stream));
    }
    over = 1;
    for (std::thread &caller : callers)
        caller.join();
    puts("done");
    return 0;
}
