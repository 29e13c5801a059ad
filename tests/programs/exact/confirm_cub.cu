// CUB's radix sort on two streams in two halves of one buffer; with `race` the second half of the results begins one element early.
// Usage: confirm_cub race|clean
#include "confirm.h"
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <vector>

int main(int argc, char **argv) {
    const bool race = argc > 1 && !strcmp(argv[1], "race");
    const int n = 100000;
    unsigned *in, *out;
    char *temporary;
    size_t size = 0;
    CHECK(cudaMalloc(&in, 2 * n * sizeof(unsigned)));
    CHECK(cudaMalloc(&out, 2 * n * sizeof(unsigned)));
    CHECK(cub::DeviceRadixSort::SortKeys(nullptr, size, in, out, n));
    size = (size + 255) / 256 * 256;
    CHECK(cudaMalloc(&temporary, 2 * size));
    std::vector<unsigned> host(2 * n);
    for (int i = 0; i < 2 * n; i++) host[i] = i * 2654435761u;
    CHECK(cudaMemcpy(in, host.data(), 2 * n * sizeof(unsigned), cudaMemcpyHostToDevice));
    Pair s;
    CHECK(cudaDeviceSynchronize());
    turns([&](int) {
        CHECK(cub::DeviceRadixSort::SortKeys(temporary, size, in, out, n, 0, 32, s.a));
        CHECK(cub::DeviceRadixSort::SortKeys(temporary + size, size, in + n, out + n - race, n, 0, 32, s.b));
    });
    CHECK(cudaMemcpy(host.data(), out, 2 * n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    const bool right = race || (std::is_sorted(host.begin(), host.begin() + n) && std::is_sorted(host.begin() + n, host.end()));
    puts(right ? "right" : "WRONG");
    return !right;
}
