// Kernels that become native code: loops, lanes that part, special functions, shared memory,
// atomics, two shapes of block. Prints a sum of what they computed, and on standard error the
// number of the process. With `fault` a thread reads outside of all memory in the end; with `fork`
// a child ends by itself before the parent does.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__device__ unsigned total;
__constant__ float factors[4];

// Single and double arithmetic, a root and an exponential.
__global__ void waves(const float *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    double sum = 0;
    for (int k = 0; k < 20; k++) {
        x = __expf(-x) + sqrtf(x) * factors[k & 3];
        sum += x / (k + 1.0);
    }
    // Some are no numbers.
    out[i] = i % 97 ? sum : sum / (sum - sum);
}

// Lanes part; sums in shared memory, and an atomic one.
__global__ void count(const float *in, unsigned *bins, int n) {
    __shared__ unsigned own[64];
    int t = threadIdx.y * blockDim.x + threadIdx.x, i = blockIdx.x * blockDim.x * blockDim.y + t;
    if (t < 64) own[t] = 0;
    __syncthreads();
    unsigned steps = 0;
    if (i < n) {
        unsigned value = (unsigned)(in[i] * 1000) + i;
        while (value != 1 && steps < 63) {
            value = value & 1 ? value * 3 + 1 : value / 2;
            steps++;
        }
        atomicAdd(&own[steps], 1);
    }
    __syncthreads();
    if (t < 64) atomicAdd(&bins[t], own[t]);
    if (t == 0) atomicAdd(&total, 1);
}

// Words at addresses that nobody knows before.
__global__ void scatter(const unsigned *from, unsigned *to, int n, size_t far) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[(i * 7919u) % n] = from[(i * 104729u) % n + (i == n / 2 ? far : 0)];
}

int main(int argc, char **argv) {
    const int n = 1 << 16;
    const char *how = argc > 1 ? argv[1] : "";
    fprintf(stderr, "process %d\n", (int)getpid());
    float *in = (float *)malloc(n * sizeof(float)), scale[4] = {1, 0.5f, 0.25f, 2};
    for (int i = 0; i < n; i++) in[i] = (i * 37 % 1009) / 100.0f;
    float *d_in;
    double *d_out, *out = (double *)malloc(n * sizeof(double));
    unsigned *d_bins, *d_to, bins[64], blocks;
    CHECK(cudaMalloc(&d_in, n * sizeof(float)));
    CHECK(cudaMalloc(&d_out, n * sizeof(double)));
    CHECK(cudaMalloc(&d_bins, sizeof bins));
    CHECK(cudaMalloc(&d_to, n * sizeof(unsigned)));
    CHECK(cudaMemset(d_bins, 0, sizeof bins));
    CHECK(cudaMemcpy(d_in, in, n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(factors, scale, sizeof scale));
    for (int turn = 0; turn < 2; turn++) {
        waves<<<n / 128, 128>>>(d_in, d_out, n);
        count<<<n / 128, 128>>>(d_in, d_bins, n);
        count<<<n / 128, dim3(16, 8)>>>(d_in, d_bins, n);
        scatter<<<n / 256, 256>>>((const unsigned *)d_in, d_to, n, 0);
    }
    CHECK(cudaMemcpy(out, d_out, n * sizeof(double), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(bins, d_bins, sizeof bins, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyFromSymbol(&blocks, total, sizeof blocks));
    unsigned long long sum = blocks, bits;
    for (int i = 0; i < n; i++) {
        memcpy(&bits, &out[i], sizeof bits);
        sum = sum * 31 + bits;
    }
    for (unsigned bin : bins) sum = sum * 31 + bin;
    printf("%llx\n", sum);
    fflush(stdout);
    if (!strcmp(how, "fork")) {
        pid_t child = fork();
        if (child == 0) exit(7);
        int status = 0;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) return 2;
    }
    if (!strcmp(how, "fault")) {
        scatter<<<n / 256, 256>>>((const unsigned *)d_in, d_to, n, size_t(1) << 40);
        CHECK(cudaDeviceSynchronize());
    }
    return 0;
}
