// expect: clean
// pair: kernel prices / cudaMemcpy
// needs: none
// why: One stream. Logarithms, exponentials and the error function, single and double, within a stated bound of the host's.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cmath>

template <class T> __host__ __device__ T normal(T x) { return T(0.5) * erfc(-x * T(0.70710678118654752440)); }

template <class T> __host__ __device__ T call(T spot, T strike, T years, T rate, T volatility) {
    T deviation = volatility * sqrt(years);
    T d1 = (log(spot / strike) + (rate + volatility * volatility / 2) * years) / deviation;
    return spot * normal(d1) - strike * exp(-rate * years) * normal(d1 - deviation);
}

template <class T> __global__ void prices(const T *spot, const T *strike, const T *years, T *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = call<T>(spot[i], strike[i], years[i], T(0.02), T(0.30));
}

template <class T> static bool within(double bound) {
    const int n = 4096;
    std::vector<T> in[3], out(n);
    T *d[4];
    for (auto &v : in) v.resize(n);
    for (int i = 0; i < n; i++) {
        in[0][i] = T(5 + i % 251 * 0.1);
        in[1][i] = T(1 + i % 97);
        in[2][i] = T(0.25 + i % 41 * 0.2);
    }
    for (int k = 0; k < 4; k++) {
        CHECK(cudaMalloc(&d[k], n * sizeof(T)));
        if (k < 3) CHECK(cudaMemcpy(d[k], in[k].data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    prices<T><<<n / 128, 128>>>(d[0], d[1], d[2], d[3], n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), d[3], n * sizeof(T), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int i = 0; i < n; i++) {
        double want = call<double>(in[0][i], in[1][i], in[2][i], T(0.02), T(0.30));
        worst = std::fmax(worst, std::fabs(out[i] - want));
    }
    for (T *p : d) CHECK(cudaFree(p));
    return worst < bound;
}

int main() {
    printf("single %s, double %s\n", within<float>(2e-5) ? "PASS" : "FAIL", within<double>(1e-13) ? "PASS" : "FAIL");
    return 0;
}
