// Measures what the host (or another stream) really waits for: each row enqueues a kernel that spins for 60 ms on one stream, makes
// one call, and tells whether the call returned only after the kernel. Prints one line a row: name, "waits" or "returns".
// The rows are the `observed` column of order/src/policy.rs and questions about it. Build: nvcc -O2 -arch=native what_waits.cu -o what_waits
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess && error != cudaErrorNotReady) {                                                      \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define DO(call)                                                                                                       \
    do {                                                                                                               \
        CUresult result = (call);                                                                                      \
        if (result != CUDA_SUCCESS) {                                                                                  \
            fprintf(stderr, "line %d: driver error %d\n", __LINE__, result);                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/// A function of the driver, by way of the runtime.
#define DRIVER(name)                                                                                                   \
    decltype(&name) p_##name = nullptr;                                                                                \
    CHECK(cudaGetDriverEntryPointByVersion(#name, (void **)&p_##name, CUDA_VERSION, cudaEnableDefault, nullptr))

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

/// Another process's memory: as many handles as asked for, until it is told to end.
struct Exporter {
    enum { COUNT = 3 };
    cudaIpcMemHandle_t handles[COUNT];
    int stop;
    pid_t pid;

    /// To be called before this process uses CUDA.
    Exporter() {
        int back[2], forth[2];
        if (pipe(back) || pipe(forth)) exit(1);
        stop = forth[1];
        if ((pid = fork()) == 0) {
            close(forth[1]);
            for (auto &handle : handles) {
                void *p;
                CHECK(cudaMalloc(&p, 4 << 20));
                CHECK(cudaIpcGetMemHandle(&handle, p));
            }
            char end;
            if (write(back[1], handles, sizeof handles) != sizeof handles) _exit(1);
            (void)!read(forth[0], &end, 1);
            _exit(0);
        }
        if (read(back[0], handles, sizeof handles) != sizeof handles) exit(1);
    }
    ~Exporter() { close(stop), waitpid(pid, nullptr, 0); }
};

int main() {
    Exporter exporter;
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
    // Rows of rules that are less used. Driver calls are looked up: the program links no driver.
    CUdeviceptr sync_memops = 0, va = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const size_t page = 2 << 20;
    DRIVER(cuPointerSetAttribute);
    DRIVER(cuMemCreate);
    DRIVER(cuMemAddressReserve);
    DRIVER(cuMemMap);
    DRIVER(cuMemSetAccess);
    DRIVER(cuMemUnmap);
    CHECK(cudaMalloc((void **)&sync_memops, size));
    unsigned one = 1;
    DO(p_cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, sync_memops));
    DO(p_cuMemAddressReserve(&va, page, 0, 0, 0));
    DO(p_cuMemCreate(&handle, page, &prop, 0));
    for (auto &on : busy) {
        char name[128];
        auto label = [&](const char *what) { snprintf(name, sizeof name, "%s, %s stream busy", what, on.name); return name; };
        row(label("cudaMemset device, SYNC_MEMOPS"), on.stream, [&] { CHECK(cudaMemset((void *)sync_memops, 0, size)); });
        row(label("cudaMemcpy D2D, SYNC_MEMOPS"), on.stream,
            [&] { CHECK(cudaMemcpy(device, (void *)sync_memops, size, cudaMemcpyDeviceToDevice)); });
        row(label("cudaFreeHost"), on.stream, [&] { char *p; CHECK(cudaMallocHost(&p, size)); CHECK(cudaFreeHost(p)); });
        row(label("cudaHostUnregister"), on.stream, [&] {
            char *p = (char *)aligned_alloc(4096, size);
            CHECK(cudaHostRegister(p, size, 0));
            CHECK(cudaHostUnregister(p));
            free(p);
        });
        row(label("cudaFree of pool memory"), on.stream, [&] { char *p; CHECK(cudaMallocAsync(&p, size, c)); CHECK(cudaFree(p)); });
        row(label("cuMemUnmap"), on.stream, [&] { DO(p_cuMemMap(va, page, 0, handle, 0)); DO(p_cuMemUnmap(va, page)); });
        row(label("cuMemSetAccess"), on.stream, [&] { DO(p_cuMemMap(va, page, 0, handle, 0)); DO(p_cuMemSetAccess(va, page, &access, 1)); });
        DO(p_cuMemUnmap(va, page));
        void *imported;
        CHECK(cudaIpcOpenMemHandle(&imported, exporter.handles[&on - busy], cudaIpcMemLazyEnablePeerAccess));
        row(label("cudaIpcCloseMemHandle"), on.stream, [&] { CHECK(cudaIpcCloseMemHandle(imported)); });
        for (size_t side : {64, 4096}) {
            cudaArray_t array;
            cudaMipmappedArray_t levels;
            cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
            char what[64];
            CHECK(cudaMallocArray(&array, &format, side, side));
            CHECK(cudaMallocMipmappedArray(&levels, &format, cudaExtent{side, side, 0}, 2));
            snprintf(what, sizeof what, "cudaFreeArray, %zu KiB", side * side * 4 / 1024);
            row(label(what), on.stream, [&] { CHECK(cudaFreeArray(array)); });
            snprintf(what, sizeof what, "cudaFreeMipmappedArray, %zu KiB", side * side * 4 / 1024);
            row(label(what), on.stream, [&] { CHECK(cudaFreeMipmappedArray(levels)); });
        }
        row(label("cudaStreamDestroy"), on.stream, [&] { cudaStream_t s; CHECK(cudaStreamCreate(&s)); CHECK(cudaStreamDestroy(s)); });
    }
    row("record on c after wait(0, completed event), b busy", b, [&] {
        cudaEvent_t old;
        CHECK(cudaEventCreate(&old));
        CHECK(cudaEventRecord(old, n));
        CHECK(cudaEventSynchronize(old));
        CHECK(cudaStreamWaitEvent(0, old, 0));
        CHECK(cudaEventRecord(done, c));
        CHECK(cudaEventSynchronize(done));
    });
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
