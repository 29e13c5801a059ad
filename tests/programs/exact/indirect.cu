// Kernels whose addresses are data, on two streams that nothing orders: each case once with bytes in common and once without.
// Usage: indirect CASE race|clean. Cases: gather scatter histogram list table nested
#include <cstdio>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            return 1;                                                               \
        }                                                                           \
    } while (0)

struct Node {
    Node *next;
    int value;
    int unused;
};

struct Parts {
    float *from;
    float *to;
};

__global__ void fill(float *p, int n, float v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = v;
}

__global__ void gather(const float *from, const int *index, float *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[index[i]];
}

__global__ void scatter(float *to, const int *index, int n, float v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[index[i]] = v;
}

__global__ void histogram(int *bins, const int *index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[index[i]], 1);
}

__global__ void clear_one(int *bins, const int *index) { bins[index[0]] = 0; }

__global__ void walk(Node *node, int v) {
    for (; node; node = node->next) node->value = v;
}

__global__ void through_table(float *const *table, int first, int count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int t = first; t < first + count; t++)
        if (i < n) table[t][i] = t;
}

__global__ void nested(const Parts *const *parts, int which, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) parts[which]->to[i] = parts[which]->from[i];
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *name = argv[1];
    const bool race = !strcmp(argv[2], "race");
    const int n = 4096, half = n / 2, threads = 256;
    const dim3 blocks(n / threads);
    float *data, *out;
    int *index;
    CHECK(cudaMalloc(&data, n * sizeof(float)));
    CHECK(cudaMalloc(&out, 2 * n * sizeof(float)));
    CHECK(cudaMalloc(&index, 2 * n * sizeof(int)));
    CHECK(cudaMemset(data, 0, n * sizeof(float)));
    std::vector<int> host(2 * n);
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    auto indices = [&] { return cudaMemcpy(index, host.data(), 2 * n * sizeof(int), cudaMemcpyHostToDevice); };
    if (!strcmp(name, "gather")) {
        // The reader's indices lie in the other half, or one of them does not.
        for (int i = 0; i < n; i++) host[i] = half + i * 37 % half;
        if (race) host[77] = 5;
        CHECK(indices());
        CHECK(cudaDeviceSynchronize());
        fill<<<blocks, threads, 0, a>>>(data, half, 1);
        gather<<<blocks, threads, 0, b>>>(data, index, out, n);
    } else if (!strcmp(name, "scatter")) {
        // Even and odd elements, or one in common.
        for (int i = 0; i < half; i++) host[i] = i * 6 % n & ~1, host[n + i] = i * 10 % n | 1;
        if (race) host[n + 99] = host[3];
        CHECK(indices());
        CHECK(cudaDeviceSynchronize());
        scatter<<<blocks, threads, 0, a>>>(data, index, half, 1);
        scatter<<<blocks, threads, 0, b>>>(data, index + n, half, 2);
    } else if (!strcmp(name, "histogram")) {
        // Atomic updates do not disturb each other; a plain store to a bin in use does.
        for (int i = 0; i < n; i++) host[i] = i * i % 100, host[n + i] = 500 + i % 10;
        if (race) host[n] = 49;
        CHECK(indices());
        CHECK(cudaDeviceSynchronize());
        histogram<<<blocks, threads, 0, a>>>((int *)data, index, n);
        clear_one<<<1, 1, 0, b>>>((int *)data, index + n);
    } else if (!strcmp(name, "list")) {
        // Two chains through one block of memory that end apart, or in one node.
        Node *nodes;
        CHECK(cudaMalloc(&nodes, 64 * sizeof(Node)));
        std::vector<Node> chain(64);
        for (int i = 0; i < 64; i++) chain[i] = {i + 2 < 64 ? nodes + i + 2 : nullptr, 0, 0};
        if (race) chain[62].next = nodes + 63;
        CHECK(cudaMemcpy(nodes, chain.data(), 64 * sizeof(Node), cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        walk<<<1, 1, 0, a>>>(nodes, 1);
        walk<<<1, 1, 0, b>>>(nodes + 1, 2);
    } else if (!strcmp(name, "table")) {
        // Buffers named in one table in device memory, each used by one stream, or one by both.
        std::vector<float *> buffers(8);
        for (auto &p : buffers) CHECK(cudaMalloc(&p, 1024 * sizeof(float)));
        if (race) buffers[6] = buffers[1];
        float **table;
        CHECK(cudaMalloc(&table, sizeof(float *) * 8));
        CHECK(cudaMemcpy(table, buffers.data(), sizeof(float *) * 8, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        through_table<<<4, threads, 0, a>>>(table, 0, 4, 1024);
        through_table<<<4, threads, 0, b>>>(table, 4, 4, 1024);
    } else if (!strcmp(name, "nested")) {
        // A pointer to a pointer to a pair of pointers.
        Parts *parts, **list;
        Parts here[2] = {{data, out}, {race ? out + n - 1 : data, out + n}}, *pointers[2];
        CHECK(cudaMalloc(&parts, sizeof here));
        CHECK(cudaMalloc(&list, sizeof pointers));
        pointers[0] = parts, pointers[1] = parts + 1;
        CHECK(cudaMemcpy(parts, here, sizeof here, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(list, pointers, sizeof pointers, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        nested<<<blocks, threads, 0, a>>>(list, 0, n);
        nested<<<blocks, threads, 0, b>>>(list, 1, half);
    } else {
        return 2;
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    puts("done");
    return 0;
}
