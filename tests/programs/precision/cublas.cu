// cuBLAS from C++: single, half and double matrices of several shapes, strided and pointer-array batches, level 1 and 2.
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <vector>

int main() {
    cublasHandle_t h;
    if (cublasCreate(&h)) return 1;
    const int big = 1 << 20;
    float *a, *b, *c;
    cudaMalloc(&a, big * sizeof(float));
    cudaMalloc(&b, big * sizeof(float));
    cudaMalloc(&c, big * sizeof(float));
    cudaMemset(a, 0, big * sizeof(float));
    cudaMemset(b, 0, big * sizeof(float));
    const float one = 1, zero = 0;
    const double done = 1, dzero = 0;
    const int shapes[][3] = {{64, 64, 64}, {128, 256, 512}, {1000, 30, 77}, {1, 512, 512}, {333, 1, 100}, {512, 512, 32}};
    for (auto &s : shapes) {
        int m = s[0], n = s[1], k = s[2];
        for (auto ta : {CUBLAS_OP_N, CUBLAS_OP_T})
            for (auto tb : {CUBLAS_OP_N, CUBLAS_OP_T}) {
                int la = ta == CUBLAS_OP_N ? m : k, lb = tb == CUBLAS_OP_N ? k : n;
                cublasSgemm(h, ta, tb, m, n, k, &one, a, la, b, lb, &zero, c, m);
                cublasGemmEx(h, ta, tb, m, n, k, &one, a, CUDA_R_16F, la, b, CUDA_R_16F, lb, &zero, c, CUDA_R_16F, m, CUBLAS_COMPUTE_32F,
                             CUBLAS_GEMM_DEFAULT);
                cublasDgemm(h, ta, tb, m / 2 + 1, n / 2 + 1, k / 2 + 1, &done, (double *)a, k + m, (double *)b, k + n, &dzero, (double *)c, m);
            }
        cublasSgemv(h, CUBLAS_OP_N, m, k, &one, a, m, b, 1, &zero, c, 1);
        cublasSgemv(h, CUBLAS_OP_T, m, k, &one, a, m, b, 1, &zero, c, 1);
    }
    cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 32, 32, 32, &one, a, 32, 1024, b, 32, 1024, &zero, c, 32, 1024, 20);
    std::vector<float *> tables;
    for (float *base : {a, b, c})
        for (int i = 0; i < 20; i++) tables.push_back(base + 1024 * i);
    float **table;
    cudaMalloc(&table, tables.size() * sizeof(float *));
    cudaMemcpy(table, tables.data(), tables.size() * sizeof(float *), cudaMemcpyHostToDevice);
    for (int k : {8, 32})
        cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 32, 32, k, &one, table, 32, table + 20, 32, &zero, table + 40, 32, 20);
    float r;
    int at;
    cublasSaxpy(h, 1000, &one, a, 1, b, 1);
    cublasSdot(h, 1000, a, 1, b, 1, &r);
    cublasSnrm2(h, 1000, a, 1, &r);
    cublasIsamax(h, 1000, a, 1, &at);
    cublasSscal(h, 1000, &one, a, 2);
    cublasScopy(h, 1000, a, 1, b, 3);
    cublasStrsm(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 64, 32, &one, a, 64, b, 64);
    cublasSgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, 64, 32, &one, a, 32, &one, b, 64, c, 64);
    if (cudaDeviceSynchronize()) return 1;
    puts("done");
    cublasDestroy(h);
}
