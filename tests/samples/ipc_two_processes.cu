// expect: clean
// pair: kernel first / kernel second
// needs: none
// why: A buffer and two events are shared with another process, which works on the buffer between two kernels of this one.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void first(unsigned *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}
__global__ void theirs(unsigned *x, int n, unsigned by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 3 + by;
}
__global__ void second(unsigned *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 5;
}

struct Sent { cudaIpcMemHandle_t memory; cudaIpcEventHandle_t event; };

template <class T> static void give(int to, const T &what) { if (write(to, &what, sizeof what) != sizeof what) exit(3); }
template <class T> static void take(int from, T &what) { if (read(from, &what, sizeof what) != sizeof what) exit(4); }

static int other_process(int from, int to, int n) {
    Sent sent;
    take(from, sent);
    void *buffer;
    cudaStream_t stream;
    cudaEvent_t before, after;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaIpcOpenMemHandle(&buffer, sent.memory, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenEventHandle(&before, sent.event));
    CHECK(cudaEventCreateWithFlags(&after, cudaEventInterprocess | cudaEventDisableTiming));
    CHECK(cudaStreamWaitEvent(stream, before, 0));
    for (unsigned by = 1; by <= 4; by++) theirs<<<n / 256, 256, 0, stream>>>((unsigned *)buffer, n, by);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(after, stream));
    CHECK(cudaIpcGetEventHandle(&sent.event, after));
    give(to, sent);
    char end;
    (void)!read(from, &end, 1); // until the other side has waited
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaIpcCloseMemHandle(buffer));
    return 0;
}

int main() {
    const int n = 1 << 16;
    int down[2], up[2];
    if (pipe(down) || pipe(up)) return 2;
    pid_t child = fork(); // before the first use of CUDA
    if (child == 0) {
        close(down[1]);
        return other_process(down[0], up[1], n);
    }
    unsigned *buffer;
    cudaStream_t stream;
    cudaEvent_t before, after;
    Sent sent;
    CHECK(cudaMalloc(&buffer, n * 4));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&before, cudaEventInterprocess | cudaEventDisableTiming));
    first<<<n / 256, 256, 0, stream>>>(buffer, n);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(before, stream));
    CHECK(cudaIpcGetMemHandle(&sent.memory, buffer));
    CHECK(cudaIpcGetEventHandle(&sent.event, before));
    give(down[1], sent);
    take(up[0], sent);
    CHECK(cudaIpcOpenEventHandle(&after, sent.event));
    CHECK(cudaStreamWaitEvent(stream, after, 0));
    second<<<n / 256, 256, 0, stream>>>(buffer, n);
    CHECK(cudaGetLastError());
    std::vector<unsigned> got(n);
    CHECK(cudaMemcpyAsync(got.data(), buffer, n * 4, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    unsigned wrong = 0;
    for (int i = 0; i < n; i++) {
        unsigned want = i;
        for (unsigned by = 1; by <= 4; by++) want = want * 3 + by;
        wrong += got[i] != want + 5;
    }
    printf("%u, %u, %u wrong\n", got[1], got[n - 1], wrong);
    CHECK(cudaEventDestroy(after));
    close(down[1]);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(cudaFree(buffer));
    return status ? 5 : 0;
}
