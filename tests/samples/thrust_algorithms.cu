// expect: clean
// pair: thrust::sort on stream a / thrust::reduce on stream a
// needs: heavy
// why: One stream. Thrust's vectors and algorithms, with iterators made on the fly.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <algorithm>
#include <thrust/adjacent_difference.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

struct Mix {
    __host__ __device__ int operator()(int i) const { return (int)((unsigned)i * 2654435761u >> 16) % 5000; }
};

struct Square {
    __host__ __device__ long long operator()(int x) const { return (long long)x * x; }
};

int main() {
    const int n = 50000;
    cudaStream_t a;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    auto on = thrust::cuda::par.on(a);
    thrust::device_vector<int> x(n), y(n);
    CHECK(cudaDeviceSynchronize());
    auto numbers = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), Mix());
    thrust::copy(on, numbers, numbers + n, x.begin());
    thrust::inclusive_scan(on, x.begin(), x.end(), y.begin());
    long long squares = thrust::transform_reduce(on, x.begin(), x.end(), Square(), 0ll, thrust::plus<long long>());
    thrust::sort(on, x.begin(), x.end(), thrust::greater<int>());
    int sum = thrust::reduce(on, x.begin(), x.end());
    thrust::device_vector<int> keys(n), counts(n);
    CHECK(cudaDeviceSynchronize());
    auto ends = thrust::reduce_by_key(on, x.begin(), x.end(), thrust::constant_iterator<int>(1), keys.begin(), counts.begin());
    int kinds = ends.first - keys.begin();
    int most = thrust::reduce(on, counts.begin(), ends.second, 0, thrust::maximum<int>());
    auto last = thrust::unique(on, x.begin(), x.end());
    CHECK(cudaStreamSynchronize(a));
    thrust::host_vector<int> scanned = y, unique(x.begin(), last);

    std::vector<int> h(n), times(5000);
    for (int i = 0; i < n; i++) h[i] = Mix()(i), times[h[i]]++;
    int running = 0, wrong = 0;
    long long want = 0;
    for (int i = 0; i < n; i++) running += h[i], want += Square()(h[i]), wrong += scanned[i] != running;
    std::sort(h.begin(), h.end(), [](int a, int b) { return a > b; });
    h.erase(std::unique(h.begin(), h.end()), h.end());
    wrong += squares != want || sum != running || kinds != (int)h.size() || unique.size() != h.size();
    wrong += most != *std::max_element(times.begin(), times.end());
    for (size_t i = 0; i < h.size() && i < unique.size(); i++) wrong += unique[i] != h[i];
    printf("sum %d, squares %lld, %d kinds, most %d, %d wrong\n", sum, squares, kinds, most, wrong);
    return 0;
}
