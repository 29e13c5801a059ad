// cuBLAS on two streams: products into the two halves of one buffer, or (race) into halves that overlap by one column.
// Usage: confirm_cublas race|clean
#include "confirm.h"
#include <cublas_v2.h>
#include <vector>

int main(int argc, char **argv) {
    const bool race = argc > 1 && !strcmp(argv[1], "race");
    const int m = 300, n = 200, k = 150;
    float *a, *b, *c;
    CHECK(cudaMalloc(&a, 2 * m * k * sizeof(float)));
    CHECK(cudaMalloc(&b, 2 * k * n * sizeof(float)));
    CHECK(cudaMalloc(&c, 2 * m * n * sizeof(float)));
    std::vector<float> ones(2 * k * (m > n ? m : n), 1), got(2 * m * n);
    CHECK(cudaMemcpy(a, ones.data(), 2 * m * k * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b, ones.data(), 2 * k * n * sizeof(float), cudaMemcpyHostToDevice));
    Pair s;
    cublasHandle_t one, two;
    if (cublasCreate(&one) || cublasCreate(&two) || cublasSetStream(one, s.a) || cublasSetStream(two, s.b)) return 1;
    const float alpha = 1, beta = 0;
    float *second = c + m * n - (race ? m : 0);
    CHECK(cudaDeviceSynchronize());
    turns([&](int) {
        if (cublasSgemm(one, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a, m, b, k, &beta, c, m)) exit(1);
        if (cublasSgemm(two, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a + m * k, m, b + k * n, k, &beta, second, m)) exit(1);
    });
    CHECK(cudaMemcpy(got.data(), c, 2 * m * n * sizeof(float), cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < m * (2 * n - race); i++) right &= got[i] == k;
    puts(right ? "right" : "WRONG");
    return !right;
}
