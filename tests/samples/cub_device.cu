// expect: clean
// pair: kernel DeviceScanKernel on stream a / kernel DeviceReduce on stream b
// needs: heavy
// racy: race RAW
// why: CUB's device-wide algorithms on two streams, the second behind an event of the first. With `racy` it does not wait.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <algorithm>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

static unsigned next() {
    static unsigned state = 12345;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// Runs an algorithm twice, as CUB wants it: for the size of its temporary storage, and in earnest.
template <class F> static void with_storage(F run) {
    size_t bytes = 0;
    CHECK(run(nullptr, bytes));
    void *storage;
    CHECK(cudaMalloc(&storage, bytes ? bytes : 1));
    CHECK(run(storage, bytes));
    // Freed by the end of the process: cudaFree would order the streams.
}

struct IsOdd {
    __host__ __device__ bool operator()(unsigned x) const { return x & 1; }
};

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 100000;
    std::vector<unsigned> keys(n), values(n), sorted(n), order(n), sums(n), odd(n);
    for (int i = 0; i < n; i++) keys[i] = next() % 50000, values[i] = i;
    unsigned *in, *index, *out, *out_index, *scanned, *chosen, *total, *largest, *bins;
    int *count;
    for (unsigned **p : {&in, &index, &out, &out_index, &scanned, &chosen}) CHECK(cudaMalloc(p, n * 4));
    for (unsigned **p : {&total, &largest}) CHECK(cudaMalloc(p, 4));
    CHECK(cudaMalloc(&bins, 10 * 4));
    CHECK(cudaMalloc(&count, 4));
    CHECK(cudaMemcpy(in, keys.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(index, values.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t scan_done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&scan_done, cudaEventDisableTiming));

    with_storage([&](void *t, size_t &s) { return cub::DeviceRadixSort::SortPairs(t, s, in, out, index, out_index, n, 0, 17, a); });
    with_storage([&](void *t, size_t &s) { return cub::DeviceScan::InclusiveSum(t, s, in, scanned, n, a); });
    CHECK(cudaEventRecord(scan_done, a));
    if (!racy) CHECK(cudaStreamWaitEvent(b, scan_done, 0));
    with_storage([&](void *t, size_t &s) { return cub::DeviceReduce::Sum(t, s, scanned, total, n, b); });
    with_storage([&](void *t, size_t &s) { return cub::DeviceReduce::Max(t, s, in, largest, n, b); });
    with_storage([&](void *t, size_t &s) { return cub::DeviceSelect::If(t, s, in, chosen, count, n, IsOdd(), b); });
    with_storage([&](void *t, size_t &s) { return cub::DeviceHistogram::HistogramEven(t, s, in, (int *)bins, 11, 0u, 50000u, n, b); });
    CHECK(cudaDeviceSynchronize());

    unsigned sum, most, bin[10];
    int odds;
    CHECK(cudaMemcpy(sorted.data(), out, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(order.data(), out_index, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sums.data(), scanned, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(odd.data(), chosen, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&sum, total, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&most, largest, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&odds, count, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(bin, bins, sizeof bin, cudaMemcpyDeviceToHost));
    int wrong = 0, at = 0;
    unsigned running = 0, all = 0, counts[10] = {};
    for (int i = 0; i < n; i++) {
        running += keys[i];
        all += running;
        wrong += sums[i] != running;
        if (keys[i] & 1) wrong += at >= odds || odd[at] != keys[i], at++;
        counts[keys[i] / 5000]++;
    }
    wrong += sum != all || odds != at || most != *std::max_element(keys.begin(), keys.end());
    for (int i = 0; i < 10; i++) wrong += bin[i] != counts[i];
    std::stable_sort(values.begin(), values.end(), [&](unsigned x, unsigned y) { return keys[x] < keys[y]; });
    for (int i = 0; i < n; i++) wrong += order[i] != values[i] || sorted[i] != keys[values[i]];
    printf("sum %u, most %u, %d odd, median %u, %d wrong\n", sum, most, odds, sorted[n / 2], wrong);
    return 0;
}
