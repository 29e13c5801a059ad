// expect: clean
// pair: kernel smooth on stream low / cudaMemcpyAsync of its edge on stream high
// needs: range
// racy: race RAW
// why: Two halves of a field, each on a stream, exchange their edges every round behind events; `racy` leaves one event out.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

// One round on rows 1 to rows; rows 0 and rows + 1 are the neighbours' edges.
__global__ void smooth(const int *in, int *out, int width, int rows) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y + 1;
    if (x >= width) return;
    int left = x ? in[y * width + x - 1] : 0, right = x + 1 < width ? in[y * width + x + 1] : 0;
    out[y * width + x] = (in[(y - 1) * width + x] + in[(y + 1) * width + x] + left + right + 4 * in[y * width + x]) / 8;
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int width = 256, rows = 64, rounds = 5, size = width * (rows + 2);
    std::vector<int> field(width * (2 * rows + 2)), next(field), got(width * 2 * rows);
    for (int i = width; i < width * (2 * rows + 1); i++) field[i] = (i * 7919) % 100000;
    int *in[2], *out[2];
    cudaStream_t s[2];
    cudaEvent_t computed[2], exchanged[2];
    for (int h = 0; h < 2; h++) {
        CHECK(cudaMalloc(&in[h], size * 4));
        CHECK(cudaMalloc(&out[h], size * 4));
        CHECK(cudaMemset(out[h], 0, size * 4));
        CHECK(cudaMemcpy(in[h], &field[h * rows * width], size * 4, cudaMemcpyHostToDevice));
        CHECK(cudaStreamCreateWithFlags(&s[h], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&computed[h], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&exchanged[h], cudaEventDisableTiming));
    }
    CHECK(cudaDeviceSynchronize());
    const size_t edge = width * 4;
    for (int r = 0; r < rounds; r++) {
        for (int h = 0; h < 2; h++) {
            if (r) CHECK(cudaStreamWaitEvent(s[h], exchanged[1 - h], 0));
            smooth<<<dim3(width / 128, rows), 128, 0, s[h]>>>(in[h], out[h], width, rows);
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(computed[h], s[h]));
        }
        // Each stream fetches the other half's edge into its own outer row.
        CHECK(cudaStreamWaitEvent(s[0], computed[1], 0));
        if (!racy) CHECK(cudaStreamWaitEvent(s[1], computed[0], 0));
        CHECK(cudaMemcpyAsync(out[0] + (rows + 1) * width, out[1] + width, edge, cudaMemcpyDeviceToDevice, s[0]));
        CHECK(cudaMemcpyAsync(out[1], out[0] + rows * width, edge, cudaMemcpyDeviceToDevice, s[1]));
        for (int h = 0; h < 2; h++) {
            CHECK(cudaEventRecord(exchanged[h], s[h]));
            int *t = in[h];
            in[h] = out[h];
            out[h] = t;
        }
    }
    CHECK(cudaDeviceSynchronize());
    for (int h = 0; h < 2; h++)
        CHECK(cudaMemcpy(&got[h * rows * width], in[h] + width, rows * width * 4, cudaMemcpyDeviceToHost));
    for (int r = 0; r < rounds; r++, field.swap(next))
        for (int y = 1; y <= 2 * rows; y++)
            for (int x = 0; x < width; x++) {
                int left = x ? field[y * width + x - 1] : 0, right = x + 1 < width ? field[y * width + x + 1] : 0;
                next[y * width + x] = (field[(y - 1) * width + x] + field[(y + 1) * width + x] + left + right + 4 * field[y * width + x]) / 8;
            }
    int wrong = 0;
    for (int i = 0; i < width * 2 * rows; i++) wrong += got[i] != field[width + i];
    printf("middle %d, %d wrong\n", got[rows * width + width / 2], wrong);
    for (int h = 0; h < 2; h++) {
        CHECK(cudaFree(in[h]));
        CHECK(cudaFree(out[h]));
    }
    return 0;
}
