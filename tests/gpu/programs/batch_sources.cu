// Measures when batched copies read their source, and what failing calls wait for. Each row enqueues a kernel that spins for 60 ms, then makes
// one call. For copies it tells whether the call returned before the kernel ended, and which bytes arrived: those that the source held at the
// call ("at the call"), or those that were stored after it returned ("later"). Two more parts: alignments of allocations by size, and
// which source bytes a copy reads that an earlier copy of the same stream writes. Build: nvcc -O2 -arch=native batch_sources.cu -o batch_sources
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <functional>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define DRIVER(name)                                                                                                   \
    decltype(&name) p_##name = nullptr;                                                                                \
    CHECK(cudaGetDriverEntryPointByVersion(#name, (void **)&p_##name, CUDA_VERSION, cudaEnableDefault, nullptr))

__global__ void spin(long long ns) {
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

static double now() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static cudaError_t batch(void *to, const void *from, size_t size, cudaMemcpySrcAccessOrder order, cudaStream_t s) {
    void *dst[] = {to};
    const void *src[] = {from};
    size_t sizes[] = {size}, index[] = {0};
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = order;
    return cudaMemcpyBatchAsync(dst, src, sizes, 1, &attributes, index, 1, s);
}

int main() {
    cudaStream_t s, t;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    const size_t most = 8 << 20;
    char *device, *check = (char *)malloc(most), *pinned, *managed, *pageable = (char *)malloc(most), *registered = (char *)aligned_alloc(4096, most);
    CHECK(cudaMalloc(&device, most));
    CHECK(cudaMallocHost(&pinned, most));
    CHECK(cudaMallocManaged(&managed, most));
    CHECK(cudaHostRegister(registered, most, 0));
    spin<<<1, 1>>>(1);
    CHECK(cudaDeviceSynchronize());
    struct { const char *name; char *at; } sources[] = {{"pageable", pageable}, {"pinned", pinned}, {"registered", registered}, {"managed", managed}};
    const char *orders[] = {"plain", "Stream", "DuringApiCall", "Any"};
    for (auto &source : sources)
        for (int order = 0; order < 4; order++)
            for (size_t size : {1000ul, 60000ul, 65536ul, 1ul << 20, 8ul << 20}) {
                memset(source.at, 1, size);
                CHECK(cudaMemset(device, 9, size));
                CHECK(cudaDeviceSynchronize());
                spin<<<1, 1, 0, s>>>(60 * 1000 * 1000);
                double began = now();
                cudaError_t r = order ? batch(device, source.at, size, (cudaMemcpySrcAccessOrder)order, s)
                                      : cudaMemcpyAsync(device, source.at, size, cudaMemcpyHostToDevice, s);
                double took = now() - began;
                if (r == cudaSuccess) memset(source.at, 2, size);
                CHECK(cudaDeviceSynchronize());
                CHECK(cudaMemcpy(check, device, size, cudaMemcpyDeviceToHost));
                size_t first = 0, later = 0;
                for (size_t i = 0; i < size; i++) first += check[i] == 1, later += check[i] == 2;
                printf("copy of %-10s %8zu bytes, %-13s %s (%.1f ms), %s\n", source.name, size, orders[order], took > 40 ? "waits  " : "returns", took,
                       r ? cudaGetErrorName(r) : first == size ? "at the call" : later == size ? "later" : "mixed");
                (void)cudaGetLastError();
            }
    // A source that an earlier copy of the same stream writes.
    char *from;
    CHECK(cudaMalloc(&from, most));
    for (int order = 1; order < 4; order++)
        for (int where = 0; where < 2; where++) { // 0: pinned, 1: device
            CHECK(cudaMemset(from, 7, most));
            memset(pinned, 1, most);
            char *middle = pinned, *device_middle;
            CHECK(cudaMalloc(&device_middle, most));
            CHECK(cudaMemset(device_middle, 1, most));
            CHECK(cudaDeviceSynchronize());
            if (where) middle = device_middle;
            spin<<<1, 1, 0, s>>>(60 * 1000 * 1000);
            CHECK(cudaMemcpyAsync(middle, from, most, cudaMemcpyDefault, s));
            double began = now();
            cudaError_t r = batch(device, middle, most, (cudaMemcpySrcAccessOrder)order, s);
            double took = now() - began;
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaMemcpy(check, device, most, cudaMemcpyDeviceToHost));
            size_t old = 0;
            for (size_t i = 0; i < most; i++) old += check[i] == 1;
            printf("%s source written by the copy before, %-13s %s (%.1f ms), %s: %zu of %zu old bytes\n", where ? "device" : "pinned", orders[order], took > 40 ? "waits" : "returns", took,
                   cudaGetErrorName(r), old, most);
            CHECK(cudaFree(device_middle));
        }
    // Calls that fail, behind work of a non-blocking stream.
    auto failing = [&](const char *name, const std::function<int()> &call) {
        CHECK(cudaDeviceSynchronize());
        spin<<<1, 1, 0, s>>>(60 * 1000 * 1000);
        double began = now();
        int r = call();
        double took = now() - began;
        (void)cudaGetLastError();
        printf("failing %-44s %s (%.1f ms), answer %d\n", name, took > 40 ? "waits" : "returns", took, r);
        CHECK(cudaDeviceSynchronize());
    };
    DRIVER(cuMemFree); DRIVER(cuMemFreeHost); DRIVER(cuMemHostUnregister); DRIVER(cuMemUnmap); DRIVER(cuArrayDestroy); DRIVER(cuMemcpyDtoH);
    DRIVER(cuMemFreeAsync); DRIVER(cuMemsetD8);
    char stack[64];
    failing("cudaFree(inside an allocation)", [&] { return cudaFree(device + 256); });
    failing("cudaFree(host memory)", [&] { return cudaFree(stack); });
    failing("cuMemFree(inside an allocation)", [&] { return p_cuMemFree((CUdeviceptr)device + 256); });
    failing("cuMemFree(0)", [&] { return p_cuMemFree(0); });
    failing("cudaFree(0)", [&] { return cudaFree(0); });
    failing("cudaFreeHost(pageable)", [&] { return cudaFreeHost(pageable); });
    failing("cudaFreeHost(inside)", [&] { return cudaFreeHost(pinned + 4096); });
    failing("cudaHostUnregister(pageable)", [&] { return cudaHostUnregister(pageable); });
    failing("cudaHostUnregister(inside)", [&] { return cudaHostUnregister(registered + 4096); });
    failing("cudaFreeArray(0)", [&] { return cudaFreeArray(0); });
    failing("cudaFreeAsync(inside)", [&] { return cudaFreeAsync(device + 256, t); });
    failing("cudaMemcpy D2H beyond the allocation", [&] { return cudaMemcpy(check, device, (size_t)1 << 40, cudaMemcpyDeviceToHost); });
    failing("cudaMemcpy D2H of a wrong kind", [&] { return cudaMemcpy(check, device, 16, (cudaMemcpyKind)77); });
    failing("cudaMemset beyond the allocation", [&] { return cudaMemset(device, 0, (size_t)1 << 40); });
    failing("cudaMemset of no memory", [&] { return cudaMemset((void *)16, 0, 16); });
    failing("cuMemcpyDtoH of no memory", [&] { return p_cuMemcpyDtoH(check, 16, 16); });
    failing("cuMemUnmap of no mapping", [&] { return p_cuMemUnmap((CUdeviceptr)device, 2 << 20); });
    failing("cudaMemcpyAsync D2H pageable beyond", [&] { return cudaMemcpyAsync(check, device, (size_t)1 << 40, cudaMemcpyDeviceToHost, t); });
    cudaEvent_t gone;
    CHECK(cudaEventCreate(&gone));
    failing("cudaEventSynchronize(recorded, cannot fail)", [&] { cudaEventRecord(gone, s); return cudaEventSynchronize(gone); });
    // Alignment of allocations.
    for (size_t size : {1ul, 512ul, 4096ul, 65536ul, 1ul << 20, (1ul << 20) + 1, (2ul << 20) - 1, 2ul << 20, 3ul << 20, 22ul << 20, 64ul << 20}) {
        unsigned long long low = ~0ull, low_async = ~0ull;
        for (int k = 0; k < 8; k++) {
            void *p, *small, *q;
            CHECK(cudaMalloc(&small, 3072));
            CHECK(cudaMalloc(&p, size));
            CHECK(cudaMallocAsync(&q, size, s));
            auto lowest = [](void *at) { return (unsigned long long)(uintptr_t)at & -(unsigned long long)(uintptr_t)at; };
            low = std::min(low, lowest(p));
            low_async = std::min(low_async, lowest(q));
        }
        printf("alignment of %9zu bytes: cudaMalloc %llu, cudaMallocAsync %llu\n", size, low, low_async);
    }
    return 0;
}
