// A kernel fills data, and one behind it sets a flag; on another stream, or in another process that has opened the memory (second argument:
// process), a kernel polls the flag, and one behind it reads the data. First argument:
//   right     as said
//   fenced    the same by a fence and a volatile store and load
//   ahead     the kernels that poll and read are launched first
//   inside    filled and set by one kernel, polled and read by another
//   none      nobody polls
//   late      the data is read before the flag is polled
//   within    the same in one kernel
//   relaxed   polled by a relaxed load, and read in the same kernel
//   over      an earlier round had the flag; this one has none
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUIRE(holds) do { if (!(holds)) { fprintf(stderr, "line %d: %s\n", __LINE__, #holds); exit(1); } } while (0)
#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

enum { N = 1024 };

__device__ void release(unsigned *flag) { asm volatile("st.release.sys.global.u32 [%0], 1;" :: "l"(flag) : "memory"); }
__device__ void poll(const unsigned *flag) {
    unsigned seen;
    do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen == 0);
}

__global__ void fill(unsigned *data) { data[threadIdx.x] = 1; }
__global__ void set(unsigned *flag) { release(flag); }
__global__ void await(const unsigned *flag) { poll(flag); }
__global__ void set_fenced(unsigned *flag) {
    __threadfence_system();
    *(volatile unsigned *)flag = 1;
}
__global__ void await_fenced(const unsigned *flag) {
    while (*(volatile const unsigned *)flag == 0) {}
    __threadfence_system();
}
__global__ void gather(const unsigned *data, unsigned *out) { out[threadIdx.x] = data[threadIdx.x]; }
__global__ void fill_and_set(unsigned *data, unsigned *flag) {
    data[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) release(flag);
}
__global__ void await_and_read(const unsigned *flag, const unsigned *data, unsigned *out) {
    poll(flag);
    out[threadIdx.x] = data[threadIdx.x];
}
__global__ void read_and_await(const unsigned *flag, const unsigned *data, unsigned *out) {
    out[threadIdx.x] = data[threadIdx.x];
    poll(flag);
}
__global__ void relaxed_and_read(const unsigned *flag, const unsigned *data, unsigned *out) {
    unsigned seen;
    do {
        asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen == 0);
    out[threadIdx.x] = data[threadIdx.x];
}

static const char *how;
static bool is(const char *name) { return !strcmp(how, name); }

static void produce(unsigned *flag, unsigned *data, cudaStream_t s) {
    if (is("inside")) return fill_and_set<<<1, N, 0, s>>>(data, flag);
    fill<<<1, N, 0, s>>>(data);
    if (is("fenced")) set_fenced<<<1, 1, 0, s>>>(flag);
    else if (!is("over")) set<<<1, 1, 0, s>>>(flag);
}

static void consume(const unsigned *flag, const unsigned *data, unsigned *out, cudaStream_t s) {
    if (is("inside")) return await_and_read<<<1, N, 0, s>>>(flag, data, out);
    if (is("within")) return read_and_await<<<1, N, 0, s>>>(flag, data, out);
    if (is("relaxed")) return relaxed_and_read<<<1, N, 0, s>>>(flag, data, out);
    if (is("late")) gather<<<1, N, 0, s>>>(data, out);
    if (is("fenced")) await_fenced<<<1, 1, 0, s>>>(flag);
    else if (!is("none") && !is("over")) await<<<1, 1, 0, s>>>(flag);
    if (!is("late")) gather<<<1, N, 0, s>>>(data, out);
}

// Flag and data, apart.
static unsigned *memory(unsigned *base, unsigned **data) {
    *data = base + 4096;
    return base;
}

static void one_process(void) {
    unsigned *base, *data, *out;
    cudaStream_t a, b;
    CHECK(cudaMalloc(&base, 1 << 20));
    CHECK(cudaMalloc(&out, 1 << 20));
    CHECK(cudaMemset(base, 0, 1 << 20));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    unsigned *flag = memory(base, &data);
    if (is("over")) {
        set<<<1, 1, 0, a>>>(flag);
        await<<<1, 1, 0, b>>>(flag);
        CHECK(cudaDeviceSynchronize());
    }
    if (is("ahead")) consume(flag, data, out, b);
    produce(flag, data, a);
    if (!is("ahead")) consume(flag, data, out, b);
    CHECK(cudaDeviceSynchronize());
}

static void tell(int to) { REQUIRE(write(to, "", 1) == 1); }
static void hear(int from) {
    char byte;
    REQUIRE(read(from, &byte, 1) == 1);
}

static void producer(int in, int out) {
    unsigned *base, *data;
    cudaStream_t s;
    cudaIpcMemHandle_t handle;
    CHECK(cudaMalloc(&base, 1 << 20));
    CHECK(cudaMemset(base, 0, 1 << 20));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaIpcGetMemHandle(&handle, base));
    REQUIRE(write(out, &handle, sizeof handle) == sizeof handle);
    unsigned *flag = memory(base, &data);
    hear(in); // the other one has opened it
    if (is("over")) {
        set<<<1, 1, 0, s>>>(flag);
        hear(in); // it has waited for that
    }
    if (is("ahead")) hear(in);
    produce(flag, data, s);
    if (!is("ahead")) tell(out);
    hear(in); // it is done
    CHECK(cudaDeviceSynchronize());
}

static void consumer(int in, int out) {
    unsigned *base, *data, *copy;
    cudaStream_t s;
    cudaIpcMemHandle_t handle;
    REQUIRE(read(in, &handle, sizeof handle) == sizeof handle);
    CHECK(cudaIpcOpenMemHandle((void **)&base, handle, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaMalloc(&copy, 1 << 20));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    unsigned *flag = memory(base, &data);
    tell(out);
    if (is("over")) {
        await<<<1, 1, 0, s>>>(flag);
        CHECK(cudaStreamSynchronize(s));
        tell(out);
    }
    if (!is("ahead")) hear(in);
    consume(flag, data, copy, s);
    if (is("ahead")) tell(out);
    CHECK(cudaStreamSynchronize(s));
    tell(out);
    CHECK(cudaIpcCloseMemHandle(base));
}

int main(int argc, char **argv) {
    REQUIRE(argc == 3);
    how = argv[1];
    if (strcmp(argv[2], "process")) {
        one_process();
    } else {
        int there[2], back[2], status;
        REQUIRE(!pipe(there) && !pipe(back));
        pid_t child = fork();
        // One that ends early must not leave the other one waiting.
        close(child ? there[0] : there[1]), close(child ? back[1] : back[0]);
        if (!child) {
            consumer(there[0], back[1]);
            exit(0);
        }
        producer(back[0], there[1]);
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    puts("done");
    return 0;
}
