/* Calls of cuBLAS on two streams: `races NAME` with a race, `races NAME fixed` without. */
#include "matrices.h"

int cublasSgemm_v2(handle_t, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int);
int cublasSgemmBatched(handle_t, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *,
                       int, int);
int cublasSdot_v2(handle_t, int, const void *, int, const void *, int, void *);
int cudaStreamBeginCapture(stream_t, int);
int cudaStreamEndCapture(stream_t, void **);
int cudaGraphInstantiate(void **, void *, unsigned long long);
int cudaGraphLaunch(void *, stream_t);

enum { M = 64, N = 48, K = 32 };
static handle_t one, two;
static stream_t a, b;

/* What was enqueued on the first stream comes before what will be on the second. */
static void order(void) {
    event_t event;
    cudaEventCreate(&event);
    cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event, 0);
}

static float *matrix_of(int elements) {
    float *at;
    cudaMalloc((void **)&at, elements * sizeof(float));
    cudaMemset(at, 0, elements * sizeof(float));
    return at;
}

int main(int argc, char **argv) {
    const char *name = argv[1];
    int fixed = argc > 2;
    float factors[] = {1, 0};
    cudaStreamCreateWithFlags(&a, 1), cudaStreamCreateWithFlags(&b, 1);
    if (cublasCreate_v2(&one) || cublasCreate_v2(&two)) return 2;
    cublasSetStream_v2(one, a), cublasSetStream_v2(two, b);
    float *x = matrix_of(M * K), *y = matrix_of(K * N), *z = matrix_of(M * N + M), *other = matrix_of(M * N);
    cudaDeviceSynchronize();
    if (!strcmp(name, "input")) { /* An operand is written before the product has read it. */
        cublasSgemm_v2(one, 0, 0, M, N, K, &factors[0], x, M, y, K, &factors[1], z, M);
        if (fixed) order();
        cudaMemsetAsync(y, 0, K * N * 4, b);
    } else if (!strcmp(name, "result")) { /* The result is read too early. */
        cublasSgemm_v2(one, 0, 0, M, N, K, &factors[0], x, M, y, K, &factors[1], z, M);
        if (fixed) order();
        cublasSgemm_v2(two, 1, 0, K, N, M, &factors[0], x, M, z, M, &factors[1], other, K);
    } else if (!strcmp(name, "halves")) { /* The upper and the lower rows of one matrix; with the race they share a row. */
        int half = M / 2, shared = !fixed;
        cublasSgemm_v2(one, 0, 0, half + shared, N, K, &factors[0], x, M, y, K, &factors[1], z, M);
        cublasSgemm_v2(two, 0, 0, half, N, K, &factors[0], x + half, M, y, K, &factors[1], z + half, M);
    } else if (!strcmp(name, "padding")) { /* What lies between the columns belongs to others. */
        cublasSgemm_v2(one, 0, 0, M - 4, N, K, &factors[0], x, M, y, K, &factors[1], z, M);
        for (int j = 0; j < N; j++) cudaMemsetAsync(z + j * M + M - 4 - !fixed, 0, 16, b);
    } else if (!strcmp(name, "factor")) { /* A factor on the device is read when the product runs. */
        float *device = matrix_of(2);
        cudaDeviceSynchronize();
        cudaMemsetAsync(device, 0, 8, a);
        if (fixed) order();
        cublasSetPointerMode_v2(two, 1);
        cublasSgemm_v2(two, 0, 0, M, N, K, device, x, M, y, K, device + 1, z, M);
    } else if (!strcmp(name, "dot")) { /* A result on the device. */
        float *device = matrix_of(1);
        cudaDeviceSynchronize();
        cublasSetPointerMode_v2(one, 1);
        cublasSdot_v2(one, K, x, 1, y, 1, device);
        if (fixed) order();
        cudaMemsetAsync(device, 0, 4, b);
    } else if (!strcmp(name, "workspace")) { /* One workspace for two streams. */
        char *workspace = (char *)matrix_of(1 << 16);
        cudaDeviceSynchronize();
        cublasSetWorkspace_v2(one, workspace, 1 << 16);
        cublasSetWorkspace_v2(two, workspace + (fixed ? 1 << 16 : 0), 1 << 16);
        cublasSgemm_v2(one, 0, 0, M, N, K, &factors[0], x, M, y, K, &factors[1], z, M);
        cublasSgemm_v2(two, 0, 0, M, N, K, &factors[0], x, M, y, K, &factors[1], other, M);
    } else if (!strcmp(name, "addresses")) { /* The array of addresses is written anew while it is in use. */
        float *list[3] = {x, y, z}, **device;
        cudaMalloc((void **)&device, sizeof list);
        cudaMemcpy(device, list, sizeof list, 1);
        cudaDeviceSynchronize();
        cublasSgemmBatched(one, 0, 0, M, N, K, &factors[0], device, M, device + 1, K, &factors[1], device + 2, M, 1);
        if (fixed) order();
        cudaMemsetAsync(device, 0, 8, b);
        cudaStreamSynchronize(a);
    } else if (!strcmp(name, "graph") || !strcmp(name, "models")) { /* A captured product. */
        void *graph, *exec;
        if (!strcmp(name, "models")) { /* The same function before it, with operands of another kind. */
            float *device = matrix_of(2);
            cudaDeviceSynchronize();
            cublasSetPointerMode_v2(one, 1);
            cublasSgemm_v2(one, 0, 0, M, N, K, device, x, M, y, K, device + 1, other, M);
            cublasSetPointerMode_v2(one, 0);
            cudaDeviceSynchronize();
        }
        cudaStreamBeginCapture(a, 2);
        cublasSgemm_v2(one, 0, 0, M, N, K, &factors[0], x, M, y, K, &factors[1], z, M);
        cudaStreamEndCapture(a, &graph);
        if (cudaGraphInstantiate(&exec, graph, 0)) return 3;
        cudaGraphLaunch(exec, a);
        if (fixed) order();
        cudaMemsetAsync(z, 0, 64, b);
    } else
        return 4;
    cudaDeviceSynchronize();
    return 0;
}
