// expect: clean
// pair: kernel work on a thread's stream / kernel join on stream last
// needs: threads
// racy: race RAW
// why: Four host threads, each with a stream and a buffer; the last kernel waits for an event of each, or (`racy`) for all but one.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <thread>

__global__ void work(unsigned *x, int n, unsigned by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 7 + by;
}

__global__ void join(const unsigned *a, const unsigned *b, const unsigned *c, const unsigned *d, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i] + c[i] + d[i];
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int threads = 4, n = 8192, rounds = 10;
    unsigned *x[threads], *out;
    cudaStream_t s[threads], last;
    cudaEvent_t done[threads];
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaStreamCreateWithFlags(&last, cudaStreamNonBlocking));
    for (int t = 0; t < threads; t++) {
        CHECK(cudaMalloc(&x[t], n * 4));
        CHECK(cudaStreamCreateWithFlags(&s[t], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&done[t], cudaEventDisableTiming));
    }
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++)
        all.emplace_back([=] {
            CHECK(cudaMemsetAsync(x[t], t, n * 4, s[t]));
            for (int r = 0; r < rounds; r++) work<<<n / 256, 256, 0, s[t]>>>(x[t], n, t + r);
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(done[t], s[t]));
        });
    for (auto &t : all) t.join();
    for (int t = 0; t < threads; t++)
        if (!racy || t != 2) CHECK(cudaStreamWaitEvent(last, done[t], 0));
    join<<<n / 256, 256, 0, last>>>(x[0], x[1], x[2], x[3], out, n);
    CHECK(cudaGetLastError());
    std::vector<unsigned> got(n);
    CHECK(cudaMemcpyAsync(got.data(), out, n * 4, cudaMemcpyDeviceToHost, last));
    CHECK(cudaDeviceSynchronize());
    unsigned want = 0, wrong = 0;
    for (int t = 0; t < threads; t++) {
        unsigned v = t * 0x01010101u;
        for (int r = 0; r < rounds; r++) v = v * 7 + t + r;
        want += v;
    }
    for (unsigned v : got) wrong += v != want;
    printf("%u, %u wrong\n", got[0], wrong);
    for (int t = 0; t < threads; t++) CHECK(cudaFree(x[t]));
    CHECK(cudaFree(out));
    return 0;
}
