// expect: clean
// pair: kernel sample / cudaMemcpy
// needs: none
// why: One stream. Linear memory, 2D arrays, pitched memory, 3D; points and halfway interpolation, clamped, wrapped, bordered.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void linear(cudaTextureObject_t t, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<int>(t, n - 1 - i);
}

__global__ void sample(cudaTextureObject_t t, float *out, int w, int h, float scale, float shift) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = tex2D<float>(t, (x + shift) * scale, (y + shift) * scale);
}

__global__ void volume(cudaTextureObject_t t, float *out) {
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    out[(z * 4 + y) * 8 + x] = tex3D<float>(t, x + 0.5f, y + 0.5f, z + 0.5f);
}

__global__ void colours(cudaTextureObject_t t, int *out) {
    float4 c = tex2D<float4>(t, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
    out[threadIdx.y * 8 + threadIdx.x] = (int)(c.x * 255 + 0.5f) + (int)(c.y * 255 + 0.5f) * 1000 + (int)(c.w * 255 + 0.5f) * 1000000;
}

static cudaTextureObject_t texture(cudaResourceDesc resource, cudaTextureAddressMode mode, bool smooth, bool normalized,
                                   cudaTextureReadMode read = cudaReadModeElementType) {
    cudaTextureDesc description = {};
    for (int i = 0; i < 3; i++) description.addressMode[i] = mode;
    description.filterMode = smooth ? cudaFilterModeLinear : cudaFilterModePoint;
    description.readMode = read;
    description.normalizedCoords = normalized;
    cudaTextureObject_t object;
    CHECK(cudaCreateTextureObject(&object, &resource, &description, nullptr));
    return object;
}

static void show(const char *name, const float *out, int n) {
    std::vector<float> host(n);
    CHECK(cudaMemcpy(host.data(), out, n * 4, cudaMemcpyDeviceToHost));
    double sum = 0;
    for (int i = 0; i < n; i++) sum += host[i] * (i % 13 + 1);
    printf("%s %.4f %.4f %.4f\n", name, host[1], host[n - 1], sum);
}

int main() {
    const int w = 64, h = 32;
    std::vector<float> image(w * h);
    std::vector<int> numbers(1000), back(1000);
    for (int i = 0; i < w * h; i++) image[i] = i * 7 % 64;
    for (int i = 0; i < 1000; i++) numbers[i] = i * i;
    int *list, *reversed;
    float *out;
    CHECK(cudaMalloc(&list, 4000));
    CHECK(cudaMalloc(&reversed, 4000));
    CHECK(cudaMalloc(&out, w * h * 4));
    CHECK(cudaMemcpy(list, numbers.data(), 4000, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = list;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = 4000;
    cudaTextureObject_t t = texture(resource, cudaAddressModeClamp, false, false);
    linear<<<4, 256>>>(t, reversed, 1000);
    CHECK(cudaDestroyTextureObject(t));  // The launch may not have begun: it reads all the same.
    CHECK(cudaMemcpy(back.data(), reversed, 4000, cudaMemcpyDeviceToHost));
    printf("linear %d %d\n", back[0], back[998]);

    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, w, h));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
    resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    dim3 grid(w / 16, h / 16), block(16, 16);
    t = texture(resource, cudaAddressModeClamp, false, false);
    sample<<<grid, block>>>(t, out, w, h, 1.f, 9.5f);
    show("clamped", out, w * h);
    CHECK(cudaDestroyTextureObject(t));
    t = texture(resource, cudaAddressModeBorder, true, false);
    sample<<<grid, block>>>(t, out, w, h, 1.f, 1.f);
    show("between", out, w * h);
    CHECK(cudaDestroyTextureObject(t));
    t = texture(resource, cudaAddressModeWrap, false, true);
    sample<<<grid, block>>>(t, out, w, h, 1.f / 64, 40.5f);
    show("wrapped", out, w * h);
    CHECK(cudaDestroyTextureObject(t));

    float *rows;
    size_t pitch;
    CHECK(cudaMallocPitch(&rows, &pitch, w * 4, h));
    CHECK(cudaMemcpy2D(rows, pitch, image.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = rows;
    resource.res.pitch2D.desc = format;
    resource.res.pitch2D.width = w;
    resource.res.pitch2D.height = h;
    resource.res.pitch2D.pitchInBytes = pitch;
    t = texture(resource, cudaAddressModeClamp, true, false);
    sample<<<grid, block>>>(t, out, w, h, 0.5f, 1.f);
    show("pitched", out, w * h);
    CHECK(cudaDestroyTextureObject(t));

    cudaArray_t cube;
    CHECK(cudaMalloc3DArray(&cube, &format, make_cudaExtent(8, 4, 2)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(image.data(), 32, 8, 4);
    copy.dstArray = cube;
    copy.extent = make_cudaExtent(8, 4, 2);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = cube;
    t = texture(resource, cudaAddressModeClamp, false, false);
    volume<<<1, dim3(8, 4, 2)>>>(t, out);
    show("volume", out, 64);
    CHECK(cudaDestroyTextureObject(t));

    std::vector<uchar4> pixels(64);
    for (int i = 0; i < 64; i++) pixels[i] = make_uchar4(i * 4, 255 - i, 7, i % 2 * 255);
    cudaArray_t palette;
    format = cudaCreateChannelDesc<uchar4>();
    CHECK(cudaMallocArray(&palette, &format, 8, 8));
    CHECK(cudaMemcpy2DToArray(palette, 0, 0, pixels.data(), 32, 32, 8, cudaMemcpyHostToDevice));
    resource.res.array.array = palette;
    t = texture(resource, cudaAddressModeClamp, false, false, cudaReadModeNormalizedFloat);
    colours<<<1, dim3(8, 8)>>>(t, reversed);
    CHECK(cudaMemcpy(back.data(), reversed, 256, cudaMemcpyDeviceToHost));
    long long sum = 0;
    for (int i = 0; i < 64; i++) sum += back[i];
    printf("colours %lld\n", sum);
    CHECK(cudaDestroyTextureObject(t));
    for (cudaArray_t a : {array, cube, palette}) CHECK(cudaFreeArray(a));
    CHECK(cudaFree(rows));
    CHECK(cudaFree(out));
    CHECK(cudaFree(list));
    CHECK(cudaFree(reversed));
    return 0;
}
