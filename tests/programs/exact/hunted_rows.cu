// What a hunt runs a second time: rows of a table are filled on one stream while others are read on another, once. Which rows is data, so
// their code tells no more than that both are rows of the table. The rows are others, or (RACE) one is the same.
// Each run adds a line to the file 'runs' in the working folder; what the second one does besides: (FAILS) ends with 3 before its work,
// (TURNS) leaves the reads out, or (HANGS) does not end after its work. With (PARTNER) one half of the table is cleared on both streams, while rows of the other half are filled.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <unistd.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t error = call;                                          \
        if (error != cudaSuccess) {                                        \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

const int WIDTH = 32, ROWS = 64;

__global__ void fill_rows(float *table, const int *rows, float value) {
    table[rows[blockIdx.x] * WIDTH + threadIdx.x] = value;
}

__global__ void read_rows(const float *table, const int *rows, float *out) {
    out[blockIdx.x * WIDTH + threadIdx.x] = table[rows[blockIdx.x] * WIDTH + threadIdx.x];
}

static int count_runs() {
    FILE *file = fopen("runs", "a+");
    if (!file) return 0;
    fputs("run\n", file);
    rewind(file);
    int lines = 0;
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

int main() {
    const int nth = count_runs();
#ifdef FAILS
    if (nth > 1) {
        fprintf(stderr, "it was here before\n");
        return 3;
    }
#endif
    float *table, *out;
    int *rows;
    const int half = ROWS / 2;
    CHECK(cudaMalloc(&table, ROWS * WIDTH * sizeof(float)));
    CHECK(cudaMalloc(&out, half * WIDTH * sizeof(float)));
    CHECK(cudaMalloc(&rows, ROWS * sizeof(int)));
    CHECK(cudaMemset(table, 0, ROWS * WIDTH * sizeof(float)));
    std::vector<int> host(ROWS);
    for (int i = 0; i < half; i++) host[i] = 2 * i, host[half + i] = 2 * (i * 5 % half) + 1;
#ifdef RACE
    host[half + 3] = host[7];
#endif
#ifdef PARTNER
    for (int i = 0; i < half; i++) host[i] = half + i;
#endif
    CHECK(cudaMemcpy(rows, host.data(), ROWS * sizeof(int), cudaMemcpyHostToDevice));
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
#ifdef PARTNER
    CHECK(cudaMemsetAsync(table, 0, half * WIDTH * sizeof(float), a));
    fill_rows<<<half, WIDTH, 0, a>>>(table, rows, 1);
    CHECK(cudaMemsetAsync(table, 0, half * WIDTH * sizeof(float), b));
    CHECK(cudaDeviceSynchronize());
    return 0;
#endif
    fill_rows<<<half, WIDTH, 0, a>>>(table, rows, 1);
#ifdef TURNS
    const bool reads = nth == 1;
#else
    const bool reads = true;
#endif
    if (reads) read_rows<<<half, WIDTH, 0, b>>>(table, rows + half, out);
    CHECK(cudaDeviceSynchronize());
#ifdef HANGS
    if (nth > 1) sleep(100);
#endif
    printf("run %d\n", nth);
    return 0;
}
