// Kernels whose indices no formula describes, each form with elements of each size: two launches on two streams write the
// even and the odd elements of one buffer. With `race` the second launch writes one even element, too.
// Each case has a buffer of another size, by which a report tells them apart: the program prints the sizes.
// Usage: unasked race|clean
#include <cstdio>
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

const int N = 1024;

// What the forms find their indices in.
struct Tables {
    int index[N];
    struct Node {
        Node *next;
        int value;
    } nodes[32];
    void *rows[32];
};

__device__ int same(int i) { return i; }
__device__ int swapped(int i) { return i ^ 1; }
__device__ int (*const functions[])(int) = {same, swapped};

__device__ __noinline__ int down(int n) { return n == 0 ? 0 : 1 + down(n - 1); }

enum Form { Table, Reversed, Shuffled, Recursive, Called, Rounded, Ranked, Rows, List, FORMS };

template <class T> __device__ void put(T *p, int at) {
    T value = {};
    p[at] = value;
}

template <int FORM, class T> __global__ void touch(T *p, const Tables *tables, int odd, int meets) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, e = i;
    if (FORM == Table) e = tables->index[i];
    if (FORM == Reversed) e = __brev(i) >> 22;
    if (FORM == Shuffled) e = __shfl_sync(~0u, tables->index[i] & ~31, 0) + lane;
    if (FORM == Recursive) e = (i & ~7) + down(i & 7);
    if (FORM == Called) e = functions[tables->index[i] & 1](i);
    if (FORM == Rounded) e = int(sqrtf(float(i) * float(i)) + 0.5f);
    if (FORM == Ranked) e = (i & ~31) + __popc(__ballot_sync(~0u, 1) & ((1u << lane) - 1));
    if (FORM == Rows) {
        put((T *)tables->rows[i / 32], 2 * lane + (i == meets ? 0 : odd));
        return;
    }
    if (FORM == List) {
        if (i) return;
        for (const Tables::Node *node = tables->nodes; node; node = node->next)
            put(p, 2 * node->value + (node->value == meets ? 0 : odd));
        return;
    }
    put(p, 2 * e + (i == meets ? 0 : odd));
}

static Tables host, *device;
static cudaStream_t s, t;
static size_t cases;

template <int FORM, class T> void run(bool race) {
    size_t size = (1 << 16) + 512 * ++cases;
    T *p;
    CHECK(cudaMalloc(&p, size));
    for (int row = 0; row < 32; row++) host.rows[row] = p + 64 * row;
    CHECK(cudaMemcpy(device, &host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    touch<FORM, T><<<N / 128, 128, 0, s>>>(p, device, 0, -1);
    touch<FORM, T><<<N / 128, 128, 0, t>>>(p, device, 1, race ? 7 : -1);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(p));
    printf("%zu\n", size);
}

template <int FORM> void types(bool race) {
    run<FORM, char>(race);
    run<FORM, short>(race);
    run<FORM, float>(race);
    run<FORM, double>(race);
    run<FORM, float4>(race);
}

template <int FORM> void forms(bool race) {
    types<FORM>(race);
    if constexpr (FORM + 1 < FORMS) forms<FORM + 1>(race);
}

int main(int count, char **words) {
    bool race = count > 1 && !strcmp(words[1], "race");
    CHECK(cudaMalloc(&device, sizeof host));
    // A permutation, whose blocks of 32 stay together.
    for (int i = 0; i < N; i++) host.index[i] = (i / 32 * 5 % 32) * 32 + (i * 7 + 3) % 32;
    for (int i = 0; i < 32; i++) {
        int next = (i + 11) % 32;
        host.nodes[i].value = i * 31;
        host.nodes[i].next = next ? (Tables::Node *)((char *)device + offsetof(Tables, nodes) + next * sizeof host.nodes[0]) : nullptr;
    }
    host.nodes[0].value = 7;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    forms<0>(race);
    return 0;
}
