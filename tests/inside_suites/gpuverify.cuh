// Makes a program of one kernel of GPUVerify's tests: a launch with arguments by the types of the
// parameters. What the verifier is told in the kernels is empty here, but for what it may assume:
// an input that breaks that ends the launch.
#pragma once
#ifdef SUITE_GROUPS // takes three times as long to compile
#include <cooperative_groups.h>
#endif
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace suite {

inline void check(cudaError_t code) {
    if (code != cudaSuccess) {
        printf("FAILED %s\n", cudaGetErrorString(code));
        exit(3);
    }
}

// Two megabytes of small distinct values. What points to it has as much room in front.
inline void* buffer() {
    constexpr size_t WORDS = 1 << 19;
    int* memory = nullptr;
    check(cudaMalloc(&memory, 2 * WORDS * sizeof(int)));
    std::vector<int> values(2 * WORDS);
    for (size_t at = 0; at < values.size(); ++at) values[at] = int(at * 7 % 61);
    check(cudaMemcpy(memory, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice));
    return memory + WORDS;
}

template <class T>
T argument(long long value) {
    if constexpr (std::is_pointer_v<T>) {
        if constexpr (std::is_function_v<std::remove_pointer_t<T>>) return reinterpret_cast<T>(value);
        else return reinterpret_cast<T>(buffer());
    } else if constexpr (std::is_arithmetic_v<T>) {
        return T(value);
    } else {
        // A structure: each word may be a pointer.
        static_assert(std::is_trivially_copyable_v<T>);
        T made{};
        static std::vector<void*> buffers;
        for (size_t at = 0; at + sizeof(void*) <= sizeof(T); at += sizeof(void*)) {
            size_t which = at / sizeof(void*) % 8;
            while (buffers.size() <= which) buffers.push_back(buffer());
            memcpy(reinterpret_cast<char*>(&made) + at, &buffers[which], sizeof(void*));
        }
        return made;
    }
}

template <class... P, size_t... I>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, bool whole, const long long* values, std::index_sequence<I...>) {
    std::tuple<P...> made{argument<P>(values[I])...};
    void* arguments[] = {static_cast<void*>(&std::get<I>(made))..., nullptr};
    const void* of = reinterpret_cast<const void*>(kernel);
    if (whole) check(cudaLaunchCooperativeKernel(of, grid, block, arguments, 0, nullptr));
    else check(cudaLaunchKernel(of, grid, block, arguments, 0, nullptr));
    check(cudaDeviceSynchronize());
}

template <class... P>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, bool whole, const long long* values) {
    launch(kernel, grid, block, whole, values, std::index_sequence_for<P...>{});
}

}  // namespace suite

#define __requires(...) do { if (!(__VA_ARGS__)) __trap(); } while (0)
#define __assume(...) __requires(__VA_ARGS__)
#define __ensures(...) ((void)0)
#define __assert(...) ((void)0)
#define __invariant(...) ((void)0)
#define __global_invariant(...) ((void)0)
#define __requires_fresh_array(...) ((void)0)
#define __axiom(...)
#define __implies(a, b) (!(a) || (b))
#define __enabled() true
#define __uniform_bool(...) true
#define __uniform_int(...) true
#define __distinct_int(...) true
#define __read_implies(...) true
#define __write_implies(...) true
#define __ptr_offset_bytes(...) 0
#define synchronize(group) (group).sync()
