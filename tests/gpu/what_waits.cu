// Measures what the host (or another stream) really waits for: each row enqueues a kernel that spins for 60 ms on one stream, makes
// one call, and tells whether the call returned only after the kernel. Prints one line a row: name, "waits" or "returns".
// The rows are the `observed` column of order/src/policy.rs and questions about it. Build: nvcc -O2 -arch=native what_waits.cu -o what_waits
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <functional>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess && error != cudaErrorNotReady) {                                                      \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

__global__ void spin(long long ns) {
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}
__global__ void mark(int *flag) { *flag = 1; }

static double now() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void row(const char *name, cudaStream_t busy, const std::function<void()> &call) {
    CHECK(cudaDeviceSynchronize());
    spin<<<1, 1, 0, busy>>>(60 * 1000 * 1000);
    double began = now();
    call();
    double took = now() - began;
    printf("%-58s %s (%.1f ms)\n", name, took > 40 ? "waits" : "returns", took);
    CHECK(cudaDeviceSynchronize());
}

int main() {
    cudaStream_t b, c, n;
    CHECK(cudaStreamCreate(&b));
    CHECK(cudaStreamCreate(&c));
    CHECK(cudaStreamCreateWithFlags(&n, cudaStreamNonBlocking));
    cudaEvent_t never, done;
    CHECK(cudaEventCreate(&never));
    CHECK(cudaEventCreate(&done));
    const size_t size = 1 << 20;
    char *device, *other, *pinned, *managed, *pageable = (char *)malloc(size);
    CHECK(cudaMalloc(&device, size));
    CHECK(cudaMalloc(&other, size));
    CHECK(cudaMallocHost(&pinned, size));
    CHECK(cudaMallocManaged(&managed, size));
    spin<<<1, 1>>>(1);
    int *flag;
    CHECK(cudaMalloc(&flag, 4));
    mark<<<1, 1>>>(flag);
    CHECK(cudaDeviceSynchronize());

    struct { const char *name; cudaStream_t stream; } busy[] = {{"blocking", b}, {"non-blocking", n}, {"legacy", 0}};
    for (auto &on : busy) {
        char name[128];
        auto label = [&](const char *what) { snprintf(name, sizeof name, "%s, %s stream busy", what, on.name); return name; };
        row(label("cudaMemcpy H2D pageable"), on.stream, [&] { CHECK(cudaMemcpy(device, pageable, size, cudaMemcpyHostToDevice)); });
        row(label("cudaMemcpy H2D pinned"), on.stream, [&] { CHECK(cudaMemcpy(device, pinned, size, cudaMemcpyHostToDevice)); });
        row(label("cudaMemcpy D2H"), on.stream, [&] { CHECK(cudaMemcpy(pinned, device, size, cudaMemcpyDeviceToHost)); });
        row(label("cudaMemcpy D2D"), on.stream, [&] { CHECK(cudaMemcpy(device, other, size, cudaMemcpyDeviceToDevice)); });
        row(label("cudaMemcpy managed to device"), on.stream, [&] { CHECK(cudaMemcpy(device, managed, size, cudaMemcpyDefault)); });
        row(label("cudaMemset device"), on.stream, [&] { CHECK(cudaMemset(device, 0, size)); });
        row(label("cudaMemset pinned"), on.stream, [&] { CHECK(cudaMemset(pinned, 0, size)); });
        row(label("cudaMemset managed"), on.stream, [&] { CHECK(cudaMemset(managed, 0, size)); });
        row(label("cudaFree"), on.stream, [&] { char *p; CHECK(cudaMalloc(&p, size)); CHECK(cudaFree(p)); });
        row(label("cudaStreamSynchronize(blocking b)"), on.stream, [&] { CHECK(cudaStreamSynchronize(b)); });
        row(label("cudaStreamSynchronize(0)"), on.stream, [&] { CHECK(cudaStreamSynchronize(0)); });
        row(label("cudaMemcpyAsync D2H pageable on blocking c"), on.stream,
            [&] { CHECK(cudaMemcpyAsync(pageable, device, size, cudaMemcpyDeviceToHost, c)); });
    }
    // Is a wait of the legacy stream for an event that was never recorded an action of that stream, and so a barrier among blocking ones?
    row("record on c after wait(0, never recorded), b busy", b, [&] {
        CHECK(cudaStreamWaitEvent(0, never, 0));
        CHECK(cudaEventRecord(done, c));
        CHECK(cudaEventSynchronize(done));
    });
    row("record on c after record on 0, b busy", b, [&] {
        CHECK(cudaEventRecord(never, 0));
        CHECK(cudaEventRecord(done, c));
        CHECK(cudaEventSynchronize(done));
    });
    row("record on c, b busy (no legacy action between)", b, [&] {
        CHECK(cudaEventRecord(done, c));
        CHECK(cudaEventSynchronize(done));
    });
    CHECK(cudaDeviceSynchronize());
    spin<<<1, 1, 0, b>>>(60 * 1000 * 1000);
    printf("cudaStreamQuery(0) with b busy: %s\n", cudaGetErrorName(cudaStreamQuery(0)));
    CHECK(cudaDeviceSynchronize());
    spin<<<1, 1, 0, 0>>>(60 * 1000 * 1000);
    printf("cudaStreamQuery(b) with legacy busy: %s\n", cudaGetErrorName(cudaStreamQuery(b)));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
