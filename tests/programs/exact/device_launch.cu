// Kernels that launch kernels (dynamic parallelism), in the forms that NVIDIA's samples have. Each checks its result; each is
// there with a copy on another stream that nothing orders, and with that copy ordered by an event.
// Usage: device_launch CASE race|clean. Cases: recursion quicksort quadtree streams tail again memory errors limits template old_style;
// and heap_fill heap_copy heap_host, which the simulator refuses.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

const int N = 1 << 10;

// Every block launches the kernel again, until the last level: 1 + 2 + 4 + ... grids of two blocks.
__global__ void recursion(int *count, int depth) {
    __shared__ int block;
    if (threadIdx.x == 0) {
        atomicAdd(&count[depth], 1);
        block = blockIdx.x;
        if (depth < 4) recursion<<<2, 32>>>(count, depth + 1);
    }
    __syncthreads();
    if (block != blockIdx.x) atomicAdd(&count[N - 1], 1);
}

// As cdpSimpleQuicksort: two streams for the two halves, selection sort below 32 elements.
__global__ void quicksort(int *data, int left, int right, int depth) {
    if (depth >= 20 || right - left <= 32) {
        for (int i = left; i < right; ++i) {
            int at = i;
            for (int j = i + 1; j <= right; ++j) if (data[j] < data[at]) at = j;
            int value = data[at];
            data[at] = data[i];
            data[i] = value;
        }
        return;
    }
    int *l = data + left, *r = data + right, pivot = data[(left + right) / 2];
    while (l <= r) {
        int low = *l, high = *r;
        while (low < pivot) low = *++l;
        while (high > pivot) high = *--r;
        if (l <= r) {
            *l++ = high;
            *r-- = low;
        }
    }
    int next_right = r - data, next_left = l - data;
    cudaStream_t stream;
    if (left < next_right) {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, stream>>>(data, left, next_right, depth + 1);
        cudaStreamDestroy(stream);
    }
    if (next_left < right) {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, stream>>>(data, next_left, right, depth + 1);
        cudaStreamDestroy(stream);
    }
}

// As cdpQuadtree: structs as parameters, dynamic shared memory, a grid of four blocks for the four children of a node.
struct Box {
    float low[2], high[2];
    __device__ bool has(float2 p) const { return p.x >= low[0] && p.x < high[0] && p.y >= low[1] && p.y < high[1]; }
};
struct Level {
    int depth, most;
};

__global__ void quadtree(const float2 *points, int n, Box box, Level level, int *leaves) {
    extern __shared__ int counts[];
    Box mine = box;
    if (level.depth > 0) {
        for (int axis = 0; axis < 2; ++axis) {
            float middle = (box.low[axis] + box.high[axis]) / 2;
            if (blockIdx.x >> axis & 1) mine.low[axis] = middle;
            else mine.high[axis] = middle;
        }
    }
    int count = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) count += mine.has(points[i]);
    counts[threadIdx.x] = count;
    __syncthreads();
    if (threadIdx.x != 0) return;
    int all = 0;
    for (int i = 0; i < blockDim.x; ++i) all += counts[i];
    if (all <= level.most || level.depth == 8) {
        atomicAdd(&leaves[0], all);
        atomicAdd(&leaves[1], 1);
    } else {
        Level next = {level.depth + 1, level.most};
        quadtree<<<4, blockDim.x, blockDim.x * sizeof(int)>>>(points, n, mine, next, leaves);
    }
}

__global__ void add(int *p, int n, int v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += v;
}

__global__ void times(int *p, int n, int v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= v;
}

// As cdpLUDecomposition: streams and events of the kernel's own.
__global__ void streams(int *p, int n) {
    if (threadIdx.x != 0) return;
    cudaStream_t a, b;
    cudaEvent_t done;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    add<<<n / 128, 128, 0, a>>>(p, n, 3);
    cudaEventRecord(done, a);
    cudaStreamWaitEvent(b, done, 0);
    times<<<n / 128, 128, 0, b>>>(p, n, 5);
    cudaEventDestroy(done);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
}

// What is in the tail stream runs last, though it was launched first.
__global__ void tail(int *p, int n) {
    if (threadIdx.x != 0) return;
    times<<<n / 128, 128, 0, cudaStreamTailLaunch>>>(p, n, 7);
    add<<<n / 128, 128, 0, cudaStreamFireAndForget>>>(p, n, 1);
    add<<<n / 128, 128>>>(p, n, 1);
}

// A kernel that is its own tail, more often than kernels may nest.
__global__ void again(int *p, int left) {
    if (threadIdx.x != 0) return;
    *p += 1;
    if (left > 1) again<<<1, 32, 0, cudaStreamTailLaunch>>>(p, left - 1);
}

// As cdpBezierTessellation: memory of the device's heap between two kernels, which CUDA's calls may not be given; a copy
// by a kernel.
__global__ void fill(int *p, int n, int v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = v;
}

__global__ void use(int *from, int *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] + i;
}

__global__ void memory(int *p, int n) {
    if (threadIdx.x != 0) return;
    int *room;
    if (cudaMalloc((void **)&room, n * sizeof(int)) != cudaSuccess) return;
    fill<<<n / 128, 128>>>(room, n, 0x01010101);
    use<<<n / 128, 128>>>(room, p, n);
    cudaMemcpyAsync(p + n, p, n * sizeof(int), cudaMemcpyDeviceToDevice, 0);
}

// What the manual forbids: an H100 answers 0, does the copy, and leaves out the fill.
__global__ void heap(int *p, int n, bool copy) {
    if (threadIdx.x != 0) return;
    int *room;
    if (cudaMalloc((void **)&room, n * sizeof(int)) != cudaSuccess) return;
    if (copy) cudaMemcpyAsync(p, room, n * sizeof(int), cudaMemcpyDeviceToDevice, 0);
    else cudaMemsetAsync(room, 1, n * sizeof(int), 0);
}

__global__ void hand_out(int **p) {
    if (threadIdx.x == 0) *p = (int *)malloc(64);
}

// Launches that fail say so, and nothing else happens.
__global__ void errors(int *p, int n) {
    if (threadIdx.x != 0) return;
    add<<<1, 2000>>>(p, n, 1);
    p[0] = cudaPeekAtLastError();
    p[1] = cudaGetLastError();
    p[2] = cudaGetLastError();
    cudaStream_t stream;
    p[3] = cudaStreamCreateWithFlags(&stream, cudaStreamDefault);
    printf("%s, %s\n", cudaGetErrorString((cudaError_t)p[1]), cudaGetErrorName(cudaErrorInvalidValue));
}

__global__ void deeper(int *p, int depth) {
    if (threadIdx.x != 0) return;
    p[0] = depth;
    deeper<<<1, 1>>>(p, depth + 1);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) p[1] = error;
}

__global__ void limits(int *p) {
    if (threadIdx.x != 0) return;
    size_t stack = 0, pending = 0;
    p[2] = cudaDeviceGetLimit(&stack, cudaLimitStackSize);
    cudaDeviceGetLimit(&pending, cudaLimitDevRuntimePendingLaunchCount);
    p[3] = stack;
    p[4] = pending;
    deeper<<<1, 1>>>(p, 1);
}

template <typename T, int Times> __global__ void generic(T *p, int n, T first, char tag, double second) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = first * Times + (T)second + tag;
}

__global__ void templates(int *p, int n) {
    if (threadIdx.x == 0) generic<int, 3><<<dim3(n / 64, 1, 1), dim3(8, 8 / 8, 1)>>>(p, n, 11, 'a', 2.75);
    if (threadIdx.x == 33) generic<int, 4><<<n / 128, 128>>>(p + n, n, 11, 'b', 2.75);
}

// A buffer for parameters that the program fills itself.
__global__ void old_style(int *p, int n) {
    if (threadIdx.x != 0) return;
    char *buffer = (char *)cudaGetParameterBuffer(8, 16);
    int value = 9;
    memcpy(buffer, &p, 8);
    memcpy(buffer + 8, &n, 4);
    memcpy(buffer + 12, &value, 4);
    cudaLaunchDevice((void *)add, buffer, dim3(n / 128), dim3(128), 0, 0);
}

static bool is(const char *name, const char *word) { return !strcmp(name, word); }

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    bool race = argc > 2 && is(argv[2], "race");
    std::vector<int> h(2 * N, 0);
    if (is(name, "quicksort")) for (int i = 0; i < N; ++i) h[i] = (i * 7919 + 13) % 4099;
    int *p;
    CHECK(cudaMalloc(&p, h.size() * sizeof(int)));
    CHECK(cudaMemcpy(p, h.data(), h.size() * sizeof(int), cudaMemcpyHostToDevice));
    std::vector<float2> points(N);
    for (int i = 0; i < N; ++i) points[i] = {(i * 37 % 1021) / 1021.f, (i * 91 % 769) / 769.f};
    float2 *q;
    CHECK(cudaMalloc(&q, N * sizeof(float2)));
    CHECK(cudaMemcpy(q, points.data(), N * sizeof(float2), cudaMemcpyHostToDevice));
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&done));
    CHECK(cudaDeviceSynchronize());

    if (is(name, "recursion")) recursion<<<2, 32, 0, a>>>(p, 0);
    else if (is(name, "quicksort")) quicksort<<<1, 1, 0, a>>>(p, 0, N - 1, 0);
    else if (is(name, "quadtree")) quadtree<<<1, 64, 64 * sizeof(int), a>>>(q, N, Box{{0, 0}, {1, 1}}, Level{0, 16}, p);
    else if (is(name, "streams")) streams<<<1, 32, 0, a>>>(p, N);
    else if (is(name, "tail")) tail<<<1, 32, 0, a>>>(p, N);
    else if (is(name, "again")) again<<<1, 32, 0, a>>>(p, 100);
    else if (is(name, "memory")) memory<<<1, 32, 0, a>>>(p, N);
    else if (is(name, "errors")) errors<<<1, 32, 0, a>>>(p, N);
    else if (is(name, "limits")) limits<<<1, 32, 0, a>>>(p);
    else if (is(name, "heap_fill")) heap<<<1, 32, 0, a>>>(p, N, false);
    else if (is(name, "heap_copy")) heap<<<1, 32, 0, a>>>(p, N, true);
    else if (is(name, "heap_host")) hand_out<<<1, 32, 0, a>>>((int **)p);
    else if (is(name, "template")) templates<<<1, 64, 0, a>>>(p, N);
    else if (is(name, "old_style")) old_style<<<1, 32, 0, a>>>(p, N);
    else return 2;
    CHECK(cudaGetLastError());

    // A copy of what the kernels that were launched have written.
    if (!race) {
        CHECK(cudaEventRecord(done, a));
        CHECK(cudaStreamWaitEvent(b, done, 0));
    }
    int *copy;
    CHECK(cudaMallocHost(&copy, h.size() * sizeof(int)));
    CHECK(cudaMemcpyAsync(copy, p, h.size() * sizeof(int), cudaMemcpyDeviceToHost, b));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h.data(), p, h.size() * sizeof(int), cudaMemcpyDeviceToHost));

    bool good = true;
    auto all = [&](int from, auto value) { for (int i = 0; i < N; ++i) good &= h[from + i] == value(i); };
    if (is(name, "recursion")) {
        for (int depth = 0, blocks = 2; depth <= 4; ++depth, blocks *= 2) good &= h[depth] == blocks;
        good &= h[5] == 0 && h[N - 1] == 0;
    } else if (is(name, "quicksort")) {
        good = std::is_sorted(h.begin(), h.begin() + N) && h[N - 1] > 0;
    } else if (is(name, "quadtree")) {
        good = h[0] == N && h[1] > 64;
    } else if (is(name, "streams")) {
        all(0, [](int) { return 15; });
    } else if (is(name, "tail")) {
        all(0, [](int) { return 14; });
    } else if (is(name, "again")) {
        good = h[0] == 100 && h[1] == 0;
    } else if (is(name, "memory")) {
        all(0, [](int i) { return 0x01010101 + i; });
        all(N, [](int i) { return 0x01010101 + i; });
    } else if (is(name, "errors")) {
        good = h[0] == cudaErrorInvalidConfiguration && h[1] == h[0] && h[2] == 0 && h[3] == 0;
    } else if (is(name, "limits")) {
        good = h[0] == 2048 && h[1] == cudaErrorLaunchPendingCountExceeded && h[2] == 0 && h[3] == 1024 && h[4] == 2048;
    } else if (is(name, "heap_host")) {
        int *room;
        memcpy(&room, h.data(), sizeof room);
        good = room && cudaMemcpy(h.data(), room, 64, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue;
    } else if (is(name, "heap_fill") || is(name, "heap_copy")) {
        // The manual promises nothing.
    } else if (is(name, "template")) {
        all(0, [](int i) { return i < N / 8 ? 33 + 2 + 'a' : 0; });
        all(N, [](int) { return 44 + 2 + 'b'; });
    } else {
        all(0, [](int) { return 9; });
    }
    if (!good) for (int i = 0; i < 8; ++i) printf("[%d] %d, [%d] %d\n", i, h[i], N + i, h[N + i]);
    printf("%s %s\n", name, good ? "right" : "wrong");
    return good ? 0 : 3;
}
