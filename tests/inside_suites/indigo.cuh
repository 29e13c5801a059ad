// The host's part of programs of Indigo's kernels: reads graphs, and launches each kernel, or the
// one that is named, on each of them with fresh memory. Arguments: [NAME] (GRAPH BLOCKS THREADS)...
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace suite {

struct Kernel {
    const char* name;
    const void* function;
    size_t size;
};

constexpr size_t BYTES = 1 << 16;

// Numbers below a bound, of a kernel's type of data.
inline std::vector<char> numbers(size_t size, int count, int below) {
    std::vector<char> data(BYTES);
    for (int at = 1; at < count && (at + 1) * size <= BYTES; ++at) {
        long long number = rand() % below;
        memcpy(&data[at * size], &number, size);
    }
    return data;
}

struct Graph {
    std::vector<int> starts, lists;

    // Whether the file holds a graph that fits the memory of the kernels.
    bool read(const char* name) {
        std::ifstream file(name, std::ios::binary);
        int vertices = 0, edges = 0;
        file.read((char*)&vertices, sizeof(int)).read((char*)&edges, sizeof(int));
        if (!file || (vertices + 1) * sizeof(int) > BYTES || edges * sizeof(int) > BYTES) return false;
        starts.resize(vertices + 1);
        lists.resize(edges);
        file.read((char*)starts.data(), sizeof(int) * starts.size()).read((char*)lists.data(), sizeof(int) * edges);
        return bool(file);
    }
};

inline cudaError_t launch(const Kernel& kernel, const Graph& graph, int blocks, int threads, void* (&memory)[4]) {
    srand(1);
    int vertices = graph.starts.size() - 1, edges = graph.lists.size();
    int most = vertices > edges ? vertices : edges;
    std::vector<char> first = numbers(kernel.size, most, vertices);
    std::vector<char> second = numbers(kernel.size, most, edges ? edges : 1);
    cudaMemcpy(memory[0], graph.starts.data(), graph.starts.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(memory[1], graph.lists.data(), edges * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(memory[2], first.data(), BYTES, cudaMemcpyHostToDevice);
    cudaMemcpy(memory[3], second.data(), BYTES, cudaMemcpyHostToDevice);
    void* arguments[] = {&memory[0], &memory[1], &memory[2], &memory[3], &vertices};
    cudaError_t code = cudaLaunchKernel(kernel.function, dim3(blocks), dim3(threads), arguments, 0, 0);
    return code == cudaSuccess ? cudaDeviceSynchronize() : code;
}

template <size_t N>
int run(const Kernel (&kernels)[N], int count, char** words) {
    const char* only = count % 3 == 2 ? words[1] : nullptr;
    void* memory[4];
    for (void*& of : memory) cudaMalloc(&of, BYTES);
    int launched = 0;
    for (int at = only ? 2 : 1; at + 2 < count; at += 3) {
        Graph graph;
        if (!graph.read(words[at])) return 2;
        for (const Kernel& kernel : kernels) {
            if (only && strcmp(only, kernel.name) != 0) continue;
            cudaError_t code = launch(kernel, graph, atoi(words[at + 1]), atoi(words[at + 2]), memory);
            if (code != cudaSuccess) {
                printf("FAILED %s\n", cudaGetErrorString(code));
                return 1;
            }
            ++launched;
        }
    }
    if (!launched) return 2;
    puts("done");
    return 0;
}

}  // namespace suite
