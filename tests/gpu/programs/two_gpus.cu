// Races and their mended twins over two devices: peer copies, kernels on peer memory, events across devices.
// Usage: two_gpus CASE; two_gpus --list prints "name race|clean" lines. Exits with 77 when there are not two devices with peer access.
// Build: nvcc -O2 -g -arch=native two_gpus.cu -o two_gpus
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const int N = 1 << 20;
static const size_t BYTES = N * sizeof(float);
static float *a0, *b0, *a1, *b1;
static cudaStream_t s0, t0, s1, t1;
static cudaEvent_t e0, e1;

__global__ void fill(float *p, float v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) p[i] = v;
}
__global__ void add(float *to, const float *from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) to[i] += from[i];
}

static void on(int device) { CHECK(cudaSetDevice(device)); }
static void filled(float *p, int device, cudaStream_t s) { on(device); fill<<<N / 256, 256, 0, s>>>(p, 1); CHECK(cudaGetLastError()); }
static void added(float *to, const float *from, int device, cudaStream_t s) { on(device); add<<<N / 256, 256, 0, s>>>(to, from); CHECK(cudaGetLastError()); }
static void copied(float *to, int d, const float *from, int s, cudaStream_t stream) { CHECK(cudaMemcpyPeerAsync(to, d, from, s, BYTES, stream)); }

// The source is still being filled on its own device.
static void peer_copy(bool mended) {
    filled(a0, 0, s0);
    if (mended) {
        CHECK(cudaEventRecord(e0, s0));
        CHECK(cudaStreamWaitEvent(s1, e0, 0));
    }
    on(1);
    copied(a1, 1, a0, 0, s1);
}
// The copy is enqueued on the source's device, the reader runs on the destination's.
static void peer_copy_read_early(bool mended) {
    filled(a0, 0, s0);
    copied(a1, 1, a0, 0, s0);
    if (mended) {
        CHECK(cudaEventRecord(e0, s0));
        CHECK(cudaStreamWaitEvent(s1, e0, 0));
    }
    added(b1, a1, 1, s1);
}
// The same by cudaMemcpyAsync, which finds out by itself that the two are on different devices.
static void unified_copy(bool mended) {
    filled(a0, 0, s0);
    on(0);
    CHECK(cudaMemcpyAsync(a1, a0, BYTES, cudaMemcpyDefault, s0));
    if (mended) CHECK(cudaStreamSynchronize(s0));
    added(b1, a1, 1, s1);
}
// A kernel reads the other device's memory while that fills it.
static void peer_load(bool mended) {
    filled(a1, 1, s1);
    if (mended) {
        on(1);
        CHECK(cudaEventRecord(e1, s1));
        on(0);
        CHECK(cudaStreamWaitEvent(s0, e1, 0));
    }
    added(b0, a1, 0, s0);
}
// cudaDeviceSynchronize waits for the current device only.
static void wrong_device_synchronised(bool mended) {
    filled(a0, 0, s0);
    on(mended ? 0 : 1);
    CHECK(cudaDeviceSynchronize());
    added(b1, a0, 1, s1);
}
// cudaMemcpyPeer is "serialized with respect to all pending and future asynchronous work" of both devices.
static void peer_copy_synchronous(bool) {
    cudaStream_t blocking0, blocking1;
    on(0);
    CHECK(cudaStreamCreate(&blocking0));
    on(1);
    CHECK(cudaStreamCreate(&blocking1));
    filled(a0, 0, blocking0);
    on(0);
    CHECK(cudaMemcpyPeer(a1, 1, a0, 0, BYTES));
    added(b1, a1, 1, blocking1);
}

static struct Case {
    const char *name;
    void (*run)(bool);
    bool has_race;
} cases[] = {
    {"peer_copy", peer_copy, true},
    {"peer_copy_read_early", peer_copy_read_early, true},
    {"unified_copy", unified_copy, true},
    {"peer_load", peer_load, true},
    {"wrong_device_synchronised", wrong_device_synchronised, true},
    {"peer_copy_synchronous", peer_copy_synchronous, false},
};

static void set_up(int device, float **a, float **b, cudaStream_t *s, cudaStream_t *t, cudaEvent_t *e) {
    on(device);
    CHECK(cudaDeviceEnablePeerAccess(1 - device, 0));
    CHECK(cudaMalloc(a, BYTES));
    CHECK(cudaMalloc(b, BYTES));
    CHECK(cudaMemset(*a, 0, BYTES));
    CHECK(cudaMemset(*b, 0, BYTES));
    CHECK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(t, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "--list";
    bool list = !strcmp(wanted, "--list");
    for (auto &c : cases)
        for (int mended = 0; mended < 2; mended++) {
            if (!mended && !c.has_race) continue;
            char name[64];
            snprintf(name, sizeof name, "%s%s", c.name, c.has_race && mended ? "_mended" : "");
            if (list) printf("%s %s\n", name, mended ? "clean" : "race");
            if (list || strcmp(name, wanted)) continue;
            int count = 0, peer = 0;
            CHECK(cudaGetDeviceCount(&count));
            if (count > 1) CHECK(cudaDeviceCanAccessPeer(&peer, 0, 1));
            if (!peer) return 77;
            set_up(0, &a0, &b0, &s0, &t0, &e0);
            set_up(1, &a1, &b1, &s1, &t1, &e1);
            c.run(mended);
            for (int device = 0; device < 2; device++) {
                on(device);
                CHECK(cudaDeviceSynchronize());
            }
            printf("%s done\n", name);
            return 0;
        }
    if (!list) fprintf(stderr, "no case %s\n", wanted);
    return list ? 0 : 2;
}
