// Products of cuBLASLt, each on the result of the one before: `lt_streams one|ordered|unordered`.
//
// On one stream, or by turns on two that wait for each other by events. In `unordered` the second
// stream does not wait for the first: one race, about the first product's result. cuBLAS decides by
// itself which kernels it launches as dependents. Three shapes: one that fills the device, one with
// a long sum (which cuBLAS splits, and adds up by a second kernel), and a narrow one.
#include <cstdio>
#include <cstring>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        int got = static_cast<int>(call);                                                    \
        if (got) {                                                                           \
            std::printf("line %d: %d\n", __LINE__, got);                                     \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

using Element = __nv_bfloat16;
constexpr size_t WORKSPACE = 32 << 20;
constexpr int ROUNDS = 3;
const float ONE = 1.f, ZERO = 0.f;

// Multiplies a matrix of `rows` by a square one of `width`, turned.
struct Product {
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t weight, from, to;
    cublasLtMatmulHeuristicResult_t chosen;
};

Product prepare(cublasLtHandle_t handle, int rows, int width) {
    Product made{};
    CHECK(cublasLtMatmulDescCreate(&made.what, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    cublasOperation_t turned = CUBLAS_OP_T;
    CHECK(cublasLtMatmulDescSetAttribute(made.what, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                         sizeof turned));
    CHECK(cublasLtMatrixLayoutCreate(&made.weight, CUDA_R_16BF, width, width, width));
    CHECK(cublasLtMatrixLayoutCreate(&made.from, CUDA_R_16BF, width, rows, width));
    CHECK(cublasLtMatrixLayoutCreate(&made.to, CUDA_R_16BF, width, rows, width));
    cublasLtMatmulPreference_t wanted;
    CHECK(cublasLtMatmulPreferenceCreate(&wanted));
    size_t room = WORKSPACE;
    CHECK(cublasLtMatmulPreferenceSetAttribute(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &room, sizeof room));
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, made.what, made.weight, made.from, made.to,
                                         made.to, wanted, 1, &made.chosen, &found));
    if (!found) {
        std::printf("no algorithm\n");
        std::exit(1);
    }
    return made;
}

Element *device(size_t count, float scale) {
    std::vector<Element> values(count);
    for (size_t i = 0; i < count; i++)
        values[i] = __float2bfloat16(float(int(i * 7 % 13) - 6) * scale);
    Element *at = nullptr;
    CHECK(cudaMalloc(&at, count * sizeof(Element)));
    CHECK(cudaMemcpy(at, values.data(), count * sizeof(Element), cudaMemcpyHostToDevice));
    return at;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "one";
    bool two = std::strcmp(how, "one"), waits = std::strcmp(how, "unordered");
    cublasLtHandle_t handle;
    CHECK(cublasLtCreate(&handle));
    cudaStream_t streams[2];
    void *workspaces[2];
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&workspaces[i], WORKSPACE));
    }
    const int shapes[][2] = {{4096, 1024}, {128, 8192}, {16, 2048}};
    for (auto [rows, width] : shapes) {
        Product product = prepare(handle, rows, width);
        Element *weight = device(size_t(width) * width, 1.f / 512);
        size_t count = size_t(rows) * width;
        Element *x = device(count, 1.f / 8), *y = device(count, 0.f), *results[ROUNDS];
        for (auto &result : results) result = device(count, 0.f);
        CHECK(cudaDeviceSynchronize());
        auto multiply = [&](Element *from, Element *to, int at) {
            CHECK(cublasLtMatmul(handle, product.what, &ONE, weight, product.weight, from,
                                 product.from, &ZERO, to, product.to, to, product.to,
                                 &product.chosen.algo, workspaces[at], WORKSPACE, streams[at]));
        };
        for (int round = 0; round < ROUNDS; round++) {
            multiply(round ? results[round - 1] : x, y, 0);
            if (two && waits) {
                CHECK(cudaEventRecord(event, streams[0]));
                CHECK(cudaStreamWaitEvent(streams[1], event, 0));
            }
            multiply(y, results[round], two);
            if (two) {
                CHECK(cudaEventRecord(event, streams[1]));
                CHECK(cudaStreamWaitEvent(streams[0], event, 0));
            }
        }
        CHECK(cudaDeviceSynchronize());
        std::vector<unsigned short> left(count);
        CHECK(cudaMemcpy(left.data(), results[ROUNDS - 1], count * 2, cudaMemcpyDeviceToHost));
        unsigned digest = 0;
        for (unsigned short bits : left)
            digest = (digest ^ bits) * 16777619u;
        std::printf("%d %d %08x\n", rows, width, digest);
    }
    return 0;
}
