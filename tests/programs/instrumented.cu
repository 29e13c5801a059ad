// Host code that is compiled with -fsanitize=thread: each case is a program with a known verdict.
//
//   instrumented CASE [racy]
//
// With `racy` one piece of synchronisation is left out. The cases whose names begin with `silent_`
// have no racy form.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <mutex>
#include <thread>

#define CHECK(call)                                                                      \
    do {                                                                                 \
        cudaError_t r_ = (call);                                                         \
        if (r_ != cudaSuccess) {                                                         \
            fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(r_));               \
            exit(99);                                                                    \
        }                                                                                \
    } while (0)

static const int N = 4096;
static bool racy;
static cudaStream_t a, b;
static volatile float sink;

struct Particle {
    float x, y;
    int id, pad;
};

__global__ void fill(float *p, int n, float v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = v;
}
__global__ void sum(const float *p, int n, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = p[i];
}
__global__ void move(Particle *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i].x = 1;
}
__global__ void count(int *p) { atomicAdd_system(p, 1); }
__global__ void count_on_device(int *p) { atomicAdd(p, 1); }
__global__ void count_both(int *p, int *q) {
    atomicAdd(p, 1);
    atomicAdd_system(q, 1);
}
__global__ void announce(float *data, int n, int *flag) {
    for (int i = 0; i < n; i++) data[i] = 2;
    __threadfence_system();
    *(volatile int *)flag = 1;
}
__managed__ float variable[N];

static void wait() {
    if (!racy) CHECK(cudaStreamSynchronize(a));
}
template <class T> static T *managed(size_t n) {
    T *p;
    CHECK(cudaMallocManaged(&p, n * sizeof(T)));
    memset(p, 0, n * sizeof(T));
    return p;
}

static void managed_read() {
    float *p = managed<float>(N);
    fill<<<N / 256, 256, 0, a>>>(p, N, 1);
    wait();
    sink = p[17];
}
static void managed_write() {
    float *p = managed<float>(N), *out = managed<float>(N);
    sum<<<N / 256, 256, 0, a>>>(p, N, out);
    wait();
    p[17] = 3;
}
static void managed_loop() {
    float *p = managed<float>(N), total = 0;
    fill<<<N / 256, 256, 0, a>>>(p, N, 1);
    wait();
    for (int i = 0; i < N; i++) total += p[i];
    sink = total;
}
static void managed_backwards() {
    float *p = managed<float>(N), total = 0;
    fill<<<1, 256, 0, a>>>(p, 256, 1);
    wait();
    for (int i = N; i--;) total += p[i];
    sink = total;
}
static void mapped_read() {
    float *p, *d;
    CHECK(cudaHostAlloc(&p, N * sizeof(float), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&d, p, 0));
    fill<<<N / 256, 256, 0, a>>>(d, N, 1);
    wait();
    sink = p[17];
}
static void pinned_download() {
    float *p, *d;
    CHECK(cudaMallocHost(&p, N * sizeof(float)));
    CHECK(cudaMalloc(&d, N * sizeof(float)));
    CHECK(cudaMemcpyAsync(p, d, N * sizeof(float), cudaMemcpyDeviceToHost, a));
    wait();
    sink = p[17];
}
static void pinned_refill() {
    float *p, *d;
    CHECK(cudaMallocHost(&p, N * sizeof(float)));
    CHECK(cudaMalloc(&d, N * sizeof(float)));
    CHECK(cudaMemcpyAsync(d, p, N * sizeof(float), cudaMemcpyHostToDevice, a));
    wait();
    for (int i = 0; i < N; i++) p[i] = (float)i;
    CHECK(cudaStreamSynchronize(a));
}
static void registered_write() {
    float *p = (float *)aligned_alloc(4096, N * sizeof(float)), *d;
    CHECK(cudaHostRegister(p, N * sizeof(float), cudaHostRegisterDefault));
    CHECK(cudaMalloc(&d, N * sizeof(float)));
    CHECK(cudaMemcpyAsync(d, p, N * sizeof(float), cudaMemcpyHostToDevice, a));
    wait();
    p[17] = 3;
    CHECK(cudaStreamSynchronize(a));
}
static void struct_member() {
    Particle *p = managed<Particle>(N);
    float total = 0;
    move<<<N / 256, 256, 0, a>>>(p, N);
    wait();
    for (int i = 0; i < N; i++) total += p[i].x;
    sink = total;
}
static void struct_copy() {
    Particle *p = managed<Particle>(N), one;
    move<<<N / 256, 256, 0, a>>>(p, N);
    wait();
    one = p[5];
    sink = one.x;
}
static void copy_out() {
    static float mine[N];
    float *p = managed<float>(N);
    fill<<<N / 256, 256, 0, a>>>(p, N, 1);
    wait();
    memcpy(mine, p, sizeof mine);
    sink = mine[3];
}
static void set_memory() {
    float *p = managed<float>(N), *out = managed<float>(N);
    sum<<<N / 256, 256, 0, a>>>(p, N, out);
    wait();
    memset(p, 0, N * sizeof(float));
}
static void host_atomic() {
    std::atomic<int> *p = (std::atomic<int> *)managed<int>(N);
    fill<<<N / 256, 256, 0, a>>>((float *)p, N, 1);
    wait();
    p[5].fetch_add(1);
}
static void managed_variable() {
    fill<<<N / 256, 256, 0, a>>>(variable, N, 1);
    wait();
    sink = variable[17];
}
static void other_thread() {
    float *p = managed<float>(N);
    fill<<<N / 256, 256, 0, a>>>(p, N, 1);
    wait();
    std::thread([p] { sink = p[17]; }).join();
}
static void wrong_stream() {
    float *p = managed<float>(N), *q = managed<float>(N);
    fill<<<N / 256, 256, 0, a>>>(p, N, 1);
    fill<<<N / 256, 256, 0, b>>>(q, N, 1);
    CHECK(cudaStreamSynchronize(racy ? b : a));
    sink = p[17];
    CHECK(cudaDeviceSynchronize());
}
static float *shared_with_function;
static void CUDART_CB read_in_function(void *) { sink = shared_with_function[17]; }
static void host_function() {
    shared_with_function = managed<float>(N);
    fill<<<N / 256, 256, 0, a>>>(shared_with_function, N, 1);
    CHECK(cudaLaunchHostFunc(racy ? b : a, read_in_function, nullptr));
}

// Threads: what one writes, another hands to a kernel. Seen with --host-order threads only.
static std::mutex mutex;
static std::atomic<int> ready;
static void handed_over_by_atomic() {
    float *p = managed<float>(N), *out = managed<float>(N);
    std::thread writer([p] {
        for (int i = 0; i < N; i++) p[i] = (float)i;
        ready.store(1, racy ? std::memory_order_relaxed : std::memory_order_release);
    });
    while (!ready.load(racy ? std::memory_order_relaxed : std::memory_order_acquire)) std::this_thread::yield();
    sum<<<N / 256, 256, 0, a>>>(p, N, out);
    CHECK(cudaStreamSynchronize(a));
    writer.join();
}
static void handed_over_by_mutex() {
    float *p = managed<float>(N), *out = managed<float>(N);
    std::thread writer([p] {
        if (racy) {
            for (int i = 0; i < N; i++) p[i] = (float)i;
            ready.store(1, std::memory_order_relaxed);
            return;
        }
        std::lock_guard<std::mutex> lock(mutex);
        for (int i = 0; i < N; i++) p[i] = (float)i;
        ready.store(1, std::memory_order_relaxed);
    });
    while (!ready.load(std::memory_order_relaxed)) std::this_thread::yield();
    {
        std::lock_guard<std::mutex> lock(mutex);
        sum<<<N / 256, 256, 0, a>>>(p, N, out);
    }
    CHECK(cudaStreamSynchronize(a));
    writer.join();
}

// What must stay silent.
static void silent_other_half() {
    float *p = managed<float>(2 * N), total = 0;
    fill<<<N / 256, 256, 0, a>>>(p, N, 1);
    for (int i = N; i < 2 * N; i++) total += p[i];
    for (int i = N; i < 2 * N; i++) p[i] = total;
}
static void silent_two_readers() {
    float *p = managed<float>(N), *out = managed<float>(N), total = 0;
    sum<<<N / 256, 256, 0, a>>>(p, N, out);
    for (int i = 0; i < N; i++) total += p[i];
    sink = total;
}
static void silent_other_member() {
    Particle *p = managed<Particle>(N);
    move<<<N / 256, 256, 0, a>>>(p, N);
    for (int i = 0; i < N; i++) p[i].id = i;
}
static void silent_before_launch() {
    float *p = managed<float>(N), *q = managed<float>(N);
    fill<<<N / 256, 256, 0, a>>>(q, N, 1);
    for (int i = 0; i < N; i++) p[i] = (float)i;
    sum<<<N / 256, 256, 0, b>>>(p, N, managed<float>(N));
}
static void silent_event() {
    float *p = managed<float>(N);
    cudaEvent_t e;
    CHECK(cudaEventCreate(&e));
    fill<<<N / 256, 256, 0, a>>>(p, N, 1);
    CHECK(cudaEventRecord(e, a));
    fill<<<N / 256, 256, 0, a>>>(p + N / 2, 1, 1);
    CHECK(cudaEventSynchronize(e));
    sink = p[17];
}
static void device_update() {
    int *p = managed<int>(64);
    if (racy) count_on_device<<<1, 1, 0, a>>>(p);
    else count<<<1, 1, 0, a>>>(p);
    __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
}
// Another word of the kernel has the scope that this one lacks.
static void device_update_beside() {
    int *p = managed<int>(64);
    if (racy) count_both<<<1, 1, 0, a>>>(p, p + 32);
    else count_both<<<1, 1, 0, a>>>(p + 32, p);
    __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
}
static void device_update_polled() {
    int *p = managed<int>(64);
    if (racy) count_on_device<<<1, 1, 0, a>>>(p);
    else count<<<1, 1, 0, a>>>(p);
    while (!__atomic_load_n(p, __ATOMIC_ACQUIRE)) std::this_thread::yield();
}
static void silent_system_atomics() {
    std::atomic<int> *p = (std::atomic<int> *)managed<int>(1);
    count<<<1, 1, 0, a>>>((int *)p);
    p->fetch_add(1);
}
static void silent_doorbell() {
    float *p = managed<float>(N);
    std::atomic<int> *flag = (std::atomic<int> *)managed<int>(1024);
    announce<<<1, 1, 0, a>>>(p, N, (int *)flag);
    while (!flag->load(std::memory_order_acquire)) std::this_thread::yield();
    sink = p[17];
}
static void silent_freed() {
    float *p = managed<float>(N), *q = managed<float>(N);
    CHECK(cudaFree(p));
    fill<<<N / 256, 256, 0, a>>>(q, N, 1);
    float *mine = (float *)malloc(N * sizeof(float));
    for (int i = 0; i < N; i++) mine[i] = (float)i;
    sink = mine[17];
}
static void silent_neighbour_on_page() {
    float *p = (float *)aligned_alloc(4096, 2 * N * sizeof(float)), *d;
    CHECK(cudaHostRegister(p, 100 * sizeof(float), cudaHostRegisterDefault));
    CHECK(cudaMalloc(&d, N * sizeof(float)));
    CHECK(cudaMemcpyAsync(d, p, 100 * sizeof(float), cudaMemcpyHostToDevice, a));
    for (int i = 100; i < 2 * N; i++) p[i] = (float)i;
    CHECK(cudaStreamSynchronize(a));
}
static void silent_function_in_order() {
    shared_with_function = managed<float>(N);
    fill<<<N / 256, 256, 0, a>>>(shared_with_function, N, 1);
    CHECK(cudaLaunchHostFunc(a, read_in_function, nullptr));
    fill<<<N / 256, 256, 0, a>>>(shared_with_function, N, 2);
}

static const struct Case {
    const char *name;
    void (*run)();
} CASES[] = {
#define CASE(name) {#name, name}
    CASE(managed_read),          CASE(managed_write),      CASE(managed_loop),
    CASE(managed_backwards),     CASE(mapped_read),        CASE(pinned_download),
    CASE(pinned_refill),         CASE(registered_write),   CASE(struct_member),
    CASE(struct_copy),           CASE(copy_out),           CASE(set_memory),
    CASE(device_update),         CASE(device_update_beside), CASE(device_update_polled),
    CASE(host_atomic),           CASE(managed_variable),   CASE(other_thread),
    CASE(wrong_stream),          CASE(host_function),      CASE(handed_over_by_atomic),
    CASE(handed_over_by_mutex),  CASE(silent_other_half),  CASE(silent_two_readers),
    CASE(silent_other_member),   CASE(silent_before_launch), CASE(silent_event),
    CASE(silent_system_atomics), CASE(silent_doorbell),    CASE(silent_freed),
    CASE(silent_neighbour_on_page), CASE(silent_function_in_order),
};

int main(int argc, char **argv) {
    racy = argc > 2 && !strcmp(argv[2], "racy");
    for (const Case &c : CASES) {
        if (argc > 1 && !strcmp(argv[1], c.name)) {
            CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
            CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
            c.run();
            CHECK(cudaDeviceSynchronize());
            return 0;
        }
    }
    for (const Case &c : CASES) puts(c.name);
    return 2;
}
