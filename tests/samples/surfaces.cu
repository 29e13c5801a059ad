// expect: clean
// pair: kernel paint / kernel shift
// needs: none
// why: One stream. Surfaces are written, read back through a texture of the same array and copied out.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void paint(cudaSurfaceObject_t s, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) surf2Dwrite((unsigned)(x * 1000 + y), s, x * 4, y);
}

__global__ void shift(cudaSurfaceObject_t in, cudaTextureObject_t same, cudaSurfaceObject_t out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    unsigned left = surf2Dread<unsigned>(in, (x + w - 1) % w * 4, y), here = tex2D<unsigned>(same, x + 0.5f, y + 0.5f);
    unsigned outside = surf2Dread<unsigned>(in, (x + w) * 4, y, cudaBoundaryModeZero);
    surf2Dwrite(make_uint2(left + outside, here), out, x * 8, y);
}

int main() {
    const int w = 48, h = 40;
    cudaArray_t a, b;
    cudaChannelFormatDesc one = cudaCreateChannelDesc<unsigned>(), two = cudaCreateChannelDesc<uint2>();
    CHECK(cudaMallocArray(&a, &one, w, h, cudaArraySurfaceLoadStore));
    CHECK(cudaMallocArray(&b, &two, w, h, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = a;
    cudaSurfaceObject_t sa, sb;
    CHECK(cudaCreateSurfaceObject(&sa, &resource));
    cudaTextureDesc description = {};
    cudaTextureObject_t t;
    CHECK(cudaCreateTextureObject(&t, &resource, &description, nullptr));
    resource.res.array.array = b;
    CHECK(cudaCreateSurfaceObject(&sb, &resource));
    paint<<<dim3(3, 3), dim3(16, 16)>>>(sa, w, h);
    shift<<<dim3(3, 3), dim3(16, 16)>>>(sa, t, sb, w, h);
    CHECK(cudaGetLastError());
    std::vector<uint2> got(w * h);
    CHECK(cudaMemcpy2DFromArray(got.data(), w * 8, b, 0, 0, w * 8, h, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < w * h; i++)
        wrong += got[i].x != (i % w + w - 1) % w * 1000 + i / w || got[i].y != i % w * 1000 + i / w;
    printf("%u %u, %d wrong\n", got[w].x, got[w].y, wrong);
    CHECK(cudaDestroySurfaceObject(sa));
    CHECK(cudaDestroySurfaceObject(sb));
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(b));
    return 0;
}
