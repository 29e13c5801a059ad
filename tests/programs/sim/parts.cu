// A program in two parts, each with its own runtime: with -DLIBRARY a library that launches a kernel, otherwise the
// program that opens it and has it launch on two streams: `parts LIBRARY [waits]`.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <dlfcn.h>

__global__ void write(int *p, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = value;
}

#ifdef LIBRARY
extern "C" int launch(int *p, int n, int value, cudaStream_t stream) {
    write<<<(n + 255) / 256, 256, 0, stream>>>(p, n, value);
    return cudaGetLastError();
}
#else
#define REQUIRE(what)                                                                                                  \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK(call) REQUIRE((call) == cudaSuccess)

int main(int argc, char **argv) {
    const int n = 4096;
    int *p, *own, first[2];
    cudaStream_t a, b;
    cudaEvent_t written;
    CHECK(cudaMalloc(&p, n * sizeof(int)));
    CHECK(cudaMalloc(&own, n * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    write<<<n / 256, 256, 0, a>>>(own, n, 7);
    // Loaded, used and closed twice: its runtime comes and goes.
    for (int round = 0; round < 2; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        REQUIRE(library);
        auto launch = reinterpret_cast<int (*)(int *, int, int, cudaStream_t)>(dlsym(library, "launch"));
        REQUIRE(launch && launch(p, n, 1, a) == 0);
        if (argc > 2) {
            CHECK(cudaEventRecord(written, a));
            CHECK(cudaStreamWaitEvent(b, written, 0));
        }
        REQUIRE(launch(p, n, 2, b) == 0);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(&first[0], p, sizeof(int), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(&first[1], own, sizeof(int), cudaMemcpyDeviceToHost));
        REQUIRE((argc == 2 || first[0] == 2) && first[1] == 7);
        dlclose(library);
    }
    puts("done");
}
#endif
