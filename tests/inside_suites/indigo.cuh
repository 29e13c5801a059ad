// The host's part of programs of Indigo's kernels: reads a graph, and launches each kernel on it
// with fresh memory.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace suite {

struct Kernel {
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

template <size_t N>
int run(const Kernel (&kernels)[N], int count, char** words) {
    if (count != 4) return 2;
    std::ifstream file(words[1], std::ios::binary);
    int vertices = 0, edges = 0;
    file.read((char*)&vertices, sizeof(int)).read((char*)&edges, sizeof(int));
    std::vector<int> starts(vertices + 1), lists(edges + 1);
    file.read((char*)starts.data(), sizeof(int) * (vertices + 1)).read((char*)lists.data(), sizeof(int) * edges);
    if (!file || starts.size() * sizeof(int) > BYTES || lists.size() * sizeof(int) > BYTES) return 2;
    void* memory[4];
    for (void*& of : memory) cudaMalloc(&of, BYTES);
    int most = vertices > edges ? vertices : edges;
    for (const Kernel& kernel : kernels) {
        srand(1);
        std::vector<char> first = numbers(kernel.size, most, vertices);
        std::vector<char> second = numbers(kernel.size, most, edges ? edges : 1);
        cudaMemcpy(memory[0], starts.data(), starts.size() * sizeof(int), cudaMemcpyHostToDevice);
        cudaMemcpy(memory[1], lists.data(), edges * sizeof(int), cudaMemcpyHostToDevice);
        cudaMemcpy(memory[2], first.data(), BYTES, cudaMemcpyHostToDevice);
        cudaMemcpy(memory[3], second.data(), BYTES, cudaMemcpyHostToDevice);
        void* arguments[] = {&memory[0], &memory[1], &memory[2], &memory[3], &vertices};
        cudaError_t code = cudaLaunchKernel(kernel.function, dim3(atoi(words[2])), dim3(atoi(words[3])), arguments, 0, 0);
        if (code == cudaSuccess) code = cudaDeviceSynchronize();
        if (code != cudaSuccess) {
            printf("FAILED %s\n", cudaGetErrorString(code));
            return 1;
        }
    }
    puts("done");
    return 0;
}

}  // namespace suite
