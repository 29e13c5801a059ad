// expect: clean
// pair: kernel invert on stream a / cudaMemcpy2DAsync on stream b
// needs: range
// racy: race RAW
// why: The left columns are copied by b once a is through with them; with `racy` at once. The right columns are nobody else's.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void invert(unsigned char *x, size_t pitch, int width, int height) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i < width && j < height) x[j * pitch + i] = 255 - x[j * pitch + i];
}

__global__ void slices(const char *base, size_t pitch, int height, int *sums) {
    int z = blockIdx.x, sum = 0;
    for (int y = 0; y < height; y++) sum += ((const unsigned char *)base)[(z * height + y) * pitch + threadIdx.x];
    atomicAdd(&sums[z], sum);
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int width = 300, height = 50;
    unsigned char *image, *x, *left;
    size_t pitch;
    CHECK(cudaMallocHost(&image, width * height));
    CHECK(cudaMallocHost(&left, 100 * height));
    for (int i = 0; i < width * height; i++) image[i] = i % 251;
    CHECK(cudaMallocPitch(&x, &pitch, width, height));
    CHECK(cudaMemcpy2D(x, pitch, image, width, width, height, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    invert<<<dim3(1, height), 128, 0, a>>>(x, pitch, 100, height);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(done, a));
    CHECK(cudaMemset2DAsync(x + 200, pitch, 9, 100, height, b));
    if (!racy) CHECK(cudaStreamWaitEvent(b, done, 0));
    CHECK(cudaMemcpy2DAsync(left, 100, x, pitch, 100, height, cudaMemcpyDeviceToHost, b));
    CHECK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int j = 0; j < height; j++)
        for (int i = 0; i < 100; i++) wrong += left[j * 100 + i] != 255 - image[j * width + i];
    CHECK(cudaMemcpy2D(image, width, x, pitch, width, height, cudaMemcpyDeviceToHost));
    long long sum = 0;
    for (int i = 0; i < width * height; i++) sum += image[i];

    // Three dimensions: a box inside a box, and back.
    cudaPitchedPtr box;
    CHECK(cudaMalloc3D(&box, make_cudaExtent(64, 10, 6)));
    CHECK(cudaMemset3D(box, 1, make_cudaExtent(64, 10, 6)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(image, width, width, height / 5);
    copy.srcPos = make_cudaPos(10, 2, 1);
    copy.dstPtr = box;
    copy.dstPos = make_cudaPos(8, 3, 2);
    copy.extent = make_cudaExtent(40, 5, 3);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    int *sums, host[6];
    CHECK(cudaMalloc(&sums, 24));
    CHECK(cudaMemset(sums, 0, 24));
    slices<<<6, 64>>>((const char *)box.ptr, box.pitch, 10, sums);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, sums, 24, cudaMemcpyDeviceToHost));
    printf("sum %lld, slices %d %d %d %d, %d wrong\n", sum, host[1], host[2], host[3], host[4], wrong);
    CHECK(cudaFree(x));
    CHECK(cudaFree(box.ptr));
    CHECK(cudaFree(sums));
    return 0;
}
