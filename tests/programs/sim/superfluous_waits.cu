// Chains of kernels that wait for those in front (`griddepcontrol.wait`) and let those behind begin
// (`griddepcontrol.launch_dependents`). What gains nothing is named in the line of its kernel; all else is needed.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

constexpr int N = 1024, THREADS = 256;

#define WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#define TRIGGER() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define AT (blockIdx.x * blockDim.x + threadIdx.x)

__global__ void fill(int *to, const int *) { TRIGGER(); to[AT] = AT; }
__global__ void reads_it(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }
__global__ void reads_other(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }  // superfluous: wait-orders-nothing
__global__ void sometimes(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }
__global__ void relied_on(int *to, const int *from) { WAIT(); TRIGGER(); to[AT] = from[AT]; }
__global__ void relies(int *to, const int *from) { to[AT] = from[AT]; }
__global__ void overwrites(int *to, const int *) { WAIT(); to[AT] = 7; }
__global__ void quiet(int *to, const int *) { to[AT] = AT; }
__global__ void behind_quiet(int *to, const int *from) { WAIT(); to[AT] = from[AT]; }  // superfluous: wait-orders-nothing
__global__ void unused(int *to, const int *) { TRIGGER(); to[AT] = AT; }  // superfluous: trigger-without-dependent
__global__ void late(int *to, const int *) { to[AT] = AT; __syncthreads(); TRIGGER(); }  // superfluous: trigger-at-the-end
__global__ void by_warps(int *to, const int *) { to[AT] = AT; if (threadIdx.x == 0) TRIGGER(); }

typedef void (*Kernel)(int *, const int *);
static cudaStream_t stream;

static void launch(Kernel kernel, bool overlaps, int *to, const int *from) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = N / THREADS, config.blockDim = THREADS, config.stream = stream;
    config.attrs = &attribute, config.numAttrs = overlaps;
    CHECK(cudaLaunchKernelEx(&config, kernel, to, from));
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *x, *y, *z, *w;
    for (int **p : {&x, &y, &z, &w}) {
        CHECK(cudaMalloc(p, N * sizeof(int)));
        CHECK(cudaMemset(*p, 0, N * sizeof(int)));
    }
    CHECK(cudaDeviceSynchronize());
    launch(fill, false, x, nullptr), launch(reads_it, true, y, x);
    launch(fill, false, x, nullptr), launch(reads_other, true, y, z);
    launch(fill, false, x, nullptr), launch(sometimes, true, y, z);
    launch(fill, false, x, nullptr), launch(sometimes, true, y, x);
    launch(fill, false, x, nullptr), launch(relied_on, true, y, z), launch(relies, true, w, x);
    launch(fill, false, x, nullptr), launch(overwrites, true, x, nullptr);
    launch(quiet, false, x, nullptr), launch(behind_quiet, true, y, x);
    launch(unused, false, x, nullptr), launch(quiet, false, y, nullptr);
    launch(late, false, x, nullptr), launch(reads_it, true, y, x);
    launch(by_warps, false, x, nullptr), launch(reads_it, true, y, x);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
