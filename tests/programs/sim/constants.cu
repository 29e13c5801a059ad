// Kernels that read `__constant__` variables, each in another way, and kernels that go through pointers in variables. A copy or a fill on another
// stream touches what the kernel touches (racy), or bytes beside it, or another variable (clean). The cases are ordered among each other.
//
//   constants racy|clean
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e) { printf("%d: %s\n", __LINE__, cudaGetErrorString(e)); exit(1); } } while (0)
#define K __global__ void
#define T threadIdx.x

struct Config { int n; float f[15]; };
struct Block { int n; float *data; };
__constant__ float pad[16], weights[64], slots[8];
__constant__ double doubles[8];
__constant__ float4 vectors[8];
__constant__ char bytes[32];
__constant__ Config config;
__constant__ float *target, *ends[2], *rows[4];
__constant__ const float *source;
__constant__ Block block;
__device__ float *device_target, *device_rows[4];
__device__ Block device_block;

__noinline__ __device__ float at(const float *p, int i) { return p[i] + 1; }
__noinline__ __device__ void put(float *p, int i) { p[i] = 5; }

K first(float *o, int) { o[T] = pad[T & 3]; }
K second(float *o, int which) { o[T] = weights[which]; }
K second_all(float *o, int) { o[T] = weights[T]; }
K third(float *o, int which) { o[T] = slots[7 - which]; }
K backwards(float *o, int) { o[T] = weights[31 - T]; }
K before(float *o, int which) { o[T] = weights[which - 1]; }
K both(float *o, int which) { o[T] = pad[which] + weights[which]; }
K guarded(float *o, int which) { if (T < which) o[T] = weights[T]; }
K counted(float *o, int which) { float s = 0; for (int i = 0; i < which; i++) s += weights[i]; o[T] = s; }
K wide(float *o, int which) { o[T] = float(doubles[which]); }
K vector(float *o, int which) { float4 v = vectors[which]; o[T] = v.x + v.y + v.z + v.w; }
K narrow(float *o, int which) { o[T] = bytes[which]; }
K member(float *o, int) { o[T] = config.f[T & 7]; }
K choice(float *o, int which) { const float *p = which ? weights : o + 64; o[T] = p[T] + 1; }
K choice_of_two(float *o, int which) { const float *p = which ? weights : slots; o[T] = p[T & 7] + 1; }
K callee(float *o, int) { o[T] = at(weights, T); }
K callee_choice(float *o, int which) { o[T] = at(which ? weights : o + 64, T); }
K stepped(float *o, int which) { float s = 0; for (const float *p = weights; p < weights + which; p++) s += *p; o[T] = s; }

K through(float *, int) { target[T] = 4; }
K through_second(float *, int) { ends[1][T] = 4; }
K through_rows(float *, int) { rows[blockIdx.x][T] = 4; }
K through_member(float *, int) { block.data[T] = 4; }
K through_callee(float *, int) { put(target, T); }
K through_loop(float *, int which) { for (int i = 0; i < which; i++) target[i] = 4; }
K read_through(float *o, int) { o[T] = source[T] + 1; }
K through_device(float *, int) { device_target[T] = 4; }
K through_device_rows(float *, int) { device_rows[blockIdx.x][T] = 4; }
K through_device_member(float *, int) { device_block.data[T] = 4; }

static cudaStream_t s, t;
static float *out, *buffer, *pinned, *scratch;
static bool racy;

// A copy into a variable, while a kernel of 32 threads runs that reads `from` up to `to` of it.
template <class Kernel, class Symbol> static void reads(Kernel kernel, int which, const Symbol &symbol, size_t from, size_t to) {
    kernel<<<1, 32, 0, s>>>(out, which);
    if (racy) CHECK(cudaMemcpyToSymbolAsync(symbol, pinned, 1, to - 1, cudaMemcpyHostToDevice, t));
    else {
        if (from) CHECK(cudaMemcpyToSymbolAsync(symbol, pinned, from, 0, cudaMemcpyHostToDevice, t));
        if (to < sizeof symbol) CHECK(cudaMemcpyToSymbolAsync(symbol, pinned, sizeof symbol - to, to, cudaMemcpyHostToDevice, t));
        // What lies before and behind it.
        CHECK(cudaMemcpyToSymbolAsync(config, pinned, 4, 0, cudaMemcpyHostToDevice, t));
        CHECK(cudaMemcpyToSymbolAsync(pad, pinned, 32, 32, cudaMemcpyHostToDevice, t));
    }
    CHECK(cudaDeviceSynchronize());
}
// Of the buffer, `blocks` blocks touch the rows from 1 on, 32 floats of each 64; `fill`: it reads them.
template <class Kernel> static void goes_through(Kernel kernel, int blocks, bool fill = false) {
    kernel<<<blocks, 32, 0, s>>>(out, 32);
    float *at = buffer + 64 * blocks + (racy ? 31 : 32);
    if (fill) CHECK(cudaMemsetAsync(at, 0, 4, t));
    else CHECK(cudaMemcpyAsync(scratch, at, 4, cudaMemcpyDeviceToDevice, t));
    CHECK(cudaDeviceSynchronize());
}
template <class Symbol, class Value> static void set(const Symbol &symbol, const Value &value) { CHECK(cudaMemcpyToSymbol(symbol, &value, sizeof value)); }

int main(int argc, char **argv) {
    racy = argc > 1 && !strcmp(argv[1], "racy");
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&out, 1024));
    CHECK(cudaMalloc(&buffer, 5 * 64 * sizeof(float)));
    CHECK(cudaMalloc(&scratch, 64));
    CHECK(cudaMemset(out, 0, 1024));
    CHECK(cudaMemset(buffer, 0, 5 * 64 * sizeof(float)));
    CHECK(cudaMallocHost(&pinned, 1024));
    memset(pinned, 0, 1024);
    CHECK(cudaDeviceSynchronize());
    reads(first, 0, pad, 0, 16);
    reads(second, 2, weights, 8, 12);
    reads(second_all, 0, weights, 0, 128);
    reads(third, 2, slots, 20, 24);
    reads(backwards, 0, weights, 0, 128);
    reads(before, 3, weights, 8, 12);
    reads(both, 1, weights, 4, 8);
    reads(guarded, 8, weights, 0, 32);
    reads(counted, 20, weights, 0, 80);
    reads(wide, 3, doubles, 24, 32);
    reads(vector, 2, vectors, 32, 48);
    reads(narrow, 9, bytes, 9, 10);
    reads(member, 0, config, 4, 36);
    reads(choice, 1, weights, 0, 128);
    reads(choice_of_two, 1, weights, 0, 32);
    reads(callee, 0, weights, 0, 128);
    reads(callee_choice, 1, weights, 0, 128);
    reads(stepped, 20, weights, 0, 80);
    float *all[4] = {buffer + 64, buffer + 128, buffer + 192, buffer + 256}, *two[2] = {buffer + 256, buffer + 64};
    set(target, all[0]), set(ends, two), set(rows, all), set(source, all[0]), set(block, Block{0, all[0]});
    set(device_target, all[0]), set(device_rows, all), set(device_block, Block{0, all[0]});
    CHECK(cudaDeviceSynchronize());
    goes_through(through, 1);
    goes_through(through_second, 1);
    goes_through(through_rows, 4);
    goes_through(through_member, 1);
    goes_through(through_callee, 1);
    goes_through(through_loop, 1);
    goes_through(read_through, 1, true);
    goes_through(through_device, 1);
    goes_through(through_device_rows, 4);
    goes_through(through_device_member, 1);
    puts("done");
}
