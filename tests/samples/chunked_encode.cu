// expect: clean
// pair: kernel encode on stream s[0] / kernel encode on stream s[1]
// needs: none
// racy: race WAW
// cause: kernel-range
// why: A buffer is worked on in chunks, one stream each, and a chunk is no multiple of a block. With `racy` the kernel's guard is the end of the buffer, not of the chunk: the last block of a chunk also encodes the beginning of the next one, whose upload nothing orders before it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void encode(const unsigned char *in, uchar2 *out, int first, int end) {
    const int i = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= end) return;
    const char digits[] = "0123456789abcdef";
    out[i] = make_uchar2(digits[in[i] >> 4], digits[in[i] & 15]);
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int chunks = 4, chunk = 10'000, bytes = chunks * chunk, block = 256;
    unsigned char *in, *out, *d_in;
    uchar2 *d_out;
    CHECK(cudaMallocHost(&in, bytes));
    CHECK(cudaMallocHost(&out, 2 * bytes));
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, 2 * bytes));
    for (int i = 0; i < bytes; i++) in[i] = (unsigned char)(i * 31 + i / 256);

    cudaStream_t s[chunks];
    for (cudaStream_t &stream : s) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int c = 0; c < chunks; c++) {
        const int first = c * chunk, end = racy ? bytes : first + chunk;
        CHECK(cudaMemcpyAsync(d_in + first, in + first, chunk, cudaMemcpyHostToDevice, s[c]));
        encode<<<(chunk + block - 1) / block, block, 0, s[c]>>>(d_in, d_out, first, end);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(out + 2 * first, d_out + first, 2 * chunk, cudaMemcpyDeviceToHost, s[c]));
    }
    for (cudaStream_t stream : s) CHECK(cudaStreamSynchronize(stream));

    int wrong = 0;
    char pair[3];
    for (int i = 0; i < bytes; i++) {
        snprintf(pair, sizeof pair, "%02x", in[i]);
        wrong += out[2 * i] != pair[0] || out[2 * i + 1] != pair[1];
    }
    printf("%d bytes encoded, %d wrong\n", bytes, racy ? 0 : wrong);
    for (cudaStream_t stream : s) CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(out));
    return 0;
}
