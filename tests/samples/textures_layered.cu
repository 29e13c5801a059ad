// expect: clean
// pair: cudaMemcpy3DAsync / kernel read_layers
// needs: none
// racy: race RAW
// why: Layers and cubes as textures and surfaces, held against the same formulas on the host. The kernel waits for the upload of the layers. With `racy` it does not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void read_lines(cudaTextureObject_t t, float *out, int w) {
    int x = threadIdx.x, layer = blockIdx.x;
    out[layer * w + x] = tex1DLayered<float>(t, x + 1.0f, layer);
}

__global__ void read_layers(cudaTextureObject_t t, float *out, int w, int h, float shift) {
    int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;
    out[(layer * h + y) * w + x] = tex2DLayered<float>(t, x + shift, y + shift, layer);
}

__device__ float3 direction(int face, float s, float t) {
    switch (face) {
    case 0: return make_float3(1, -t, -s);
    case 1: return make_float3(-1, -t, s);
    case 2: return make_float3(s, 1, t);
    case 3: return make_float3(s, -1, -t);
    case 4: return make_float3(s, -t, 1);
    default: return make_float3(-s, -t, -1);
    }
}

// What each texel of each face says, looked up by its direction, whatever its length.
__global__ void read_cube(cudaTextureObject_t one, cudaTextureObject_t many, float *out, int w, int cubes) {
    int x = threadIdx.x, y = threadIdx.y, face = blockIdx.x, cube = blockIdx.y;
    float3 d = direction(face, (x + 0.5f) / w * 2 - 1, (y + 0.5f) / w * 2 - 1);
    float length = 0.5f + x;
    float at = texCubemapLayered<float>(many, d.x * length, d.y * length, d.z * length, cube);
    if (cube == cubes - 1) at += 1000 * texCubemap<float>(one, d.x * length, d.y * length, d.z * length);
    out[((cube * 6 + face) * w + y) * w + x] = at;
}

__global__ void write_surfaces(cudaSurfaceObject_t lines, cudaSurfaceObject_t layers, cudaSurfaceObject_t cube, cudaSurfaceObject_t cubes, int w) {
    int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;
    if (layer < 3) {
        if (y == 0) surf1DLayeredwrite(x + 100.0f * layer, lines, x * 4, layer);
        surf2DLayeredwrite(x + 10.0f * y + 100.0f * layer, layers, x * 4, y, layer);
    }
    if (layer < 6) surfCubemapwrite(x + 10.0f * y + 100.0f * layer, cube, x * 4, y, layer);
    surfCubemapLayeredwrite(x + 10.0f * y + 100.0f * layer, cubes, x * 4, y, layer);
}

__global__ void read_surfaces(cudaSurfaceObject_t lines, cudaSurfaceObject_t layers, cudaSurfaceObject_t cube, cudaSurfaceObject_t cubes, float *out) {
    int x = threadIdx.x, y = threadIdx.y;
    float sum = surf1DLayeredread<float>(lines, x * 4, y % 3) + surf2DLayeredread<float>(layers, x * 4, y, 2);
    sum += surfCubemapread<float>(cube, x * 4, y, 5) + surfCubemapLayeredread<float>(cubes, x * 4, y, 11);
    // Outside: nothing, and the nearest that is inside.
    sum += surf2DLayeredread<float>(layers, (x + 8) * 4, y, 1, cudaBoundaryModeZero);
    sum += 0.25f * surf2DLayeredread<float>(layers, (x + 8) * 4, y - 8, 1, cudaBoundaryModeClamp);
    out[y * 8 + x] = sum;
}

static cudaTextureObject_t texture(cudaArray_t array, cudaTextureAddressMode mode, bool smooth, bool normalized = false) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description = {};
    for (int i = 0; i < 3; i++) description.addressMode[i] = mode;
    description.filterMode = smooth ? cudaFilterModeLinear : cudaFilterModePoint;
    description.normalizedCoords = normalized;
    cudaTextureObject_t object;
    CHECK(cudaCreateTextureObject(&object, &resource, &description, nullptr));
    return object;
}

static cudaSurfaceObject_t surface(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t object;
    CHECK(cudaCreateSurfaceObject(&object, &resource));
    return object;
}

static cudaArray_t array(size_t w, size_t h, size_t layers, unsigned flags, const float *from = nullptr, cudaStream_t stream = 0) {
    cudaArray_t a;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMalloc3DArray(&a, &format, make_cudaExtent(w, h, layers), flags));
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr((void *)from, w * 4, w, std::max<size_t>(h, 1));
    p.dstArray = a;
    p.extent = make_cudaExtent(w, std::max<size_t>(h, 1), layers);
    p.kind = cudaMemcpyHostToDevice;
    if (from) CHECK(cudaMemcpy3DAsync(&p, stream));
    return a;
}

static int differ(const char *name, const float *out, const std::vector<float> &wanted) {
    std::vector<float> got(wanted.size());
    CHECK(cudaMemcpy(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (size_t i = 0; i < got.size(); i++) wrong += std::fabs(got[i] - wanted[i]) > 1e-3f;
    printf("%s: %d of %zu differ\n", name, wrong, got.size());
    return wrong;
}

int main(int argc, char **argv) {
    bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int w = 16, h = 8, layers = 5, cubes = 2;
    float *data, *out;
    CHECK(cudaMallocHost(&data, 4096 * 4));
    CHECK(cudaMalloc(&out, 4096 * 4));
    for (int i = 0; i < 4096; i++) data[i] = i * 37 % 101;
    cudaStream_t up, work;
    CHECK(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    cudaEvent_t uploaded;
    CHECK(cudaEventCreateWithFlags(&uploaded, cudaEventDisableTiming));
    auto inside = [](int c, int n) { return std::min(std::max(c, 0), n - 1); };

    // Without normalised coordinates, "wrap" clamps too.
    cudaArray_t sheets = array(w, h, layers, cudaArrayLayered, data, up);
    CHECK(cudaEventRecord(uploaded, up));
    cudaTextureObject_t t = texture(sheets, cudaAddressModeWrap, false);
    if (!racy) CHECK(cudaStreamWaitEvent(work, uploaded, 0));
    read_layers<<<layers, dim3(w, h), 0, work>>>(t, out, w, h, 3.0f);
    CHECK(cudaDeviceSynchronize());
    std::vector<float> wanted(w * h * layers);
    auto at = [&](int x, int y, int layer) { return data[(layer * h + inside(y, h)) * w + inside(x, w)]; };
    for (int l = 0; l < layers; l++) for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) wanted[(l * h + y) * w + x] = at(x + 3, y + 3, l);
    int wrong = racy ? 0 : differ("points of layers", out, wanted);

    t = texture(sheets, cudaAddressModeClamp, true);
    read_layers<<<layers, dim3(w, h)>>>(t, out, w, h, 0.0f);
    for (int l = 0; l < layers; l++) for (int y = 0; y < h; y++) for (int x = 0; x < w; x++)
        wanted[(l * h + y) * w + x] = (at(x - 1, y - 1, l) + at(x, y - 1, l) + at(x - 1, y, l) + at(x, y, l)) / 4;
    wrong += differ("between texels of layers", out, wanted);

    t = texture(array(w, 0, layers, cudaArrayLayered, data), cudaAddressModeBorder, true);
    CHECK(cudaDeviceSynchronize());
    read_lines<<<layers, w>>>(t, out, w);
    wanted.resize(w * layers);
    for (int l = 0; l < layers; l++) for (int x = 0; x < w; x++) wanted[l * w + x] = (data[l * w + x] + (x + 1 < w ? data[l * w + x + 1] : 0)) / 2;
    wrong += differ("lines, and their border", out, wanted);

    cudaTextureObject_t one = texture(array(8, 8, 6, cudaArrayCubemap, data), cudaAddressModeClamp, true, true);
    cudaTextureObject_t many = texture(array(8, 8, 6 * cubes, cudaArrayCubemap | cudaArrayLayered, data), cudaAddressModeClamp, false, true);
    CHECK(cudaDeviceSynchronize());
    read_cube<<<dim3(6, cubes), dim3(8, 8)>>>(one, many, out, 8, cubes);
    wanted.resize(64 * 6 * cubes);
    for (int i = 0; i < 64 * 6 * cubes; i++) wanted[i] = data[i] + (i >= 64 * 6 * (cubes - 1) ? 1000 * data[i % 384] : 0);
    wrong += differ("faces of cubes", out, wanted);

    const unsigned written = cudaArraySurfaceLoadStore;
    cudaSurfaceObject_t lines = surface(array(8, 0, 3, written | cudaArrayLayered)), pages = surface(array(8, 8, 3, written | cudaArrayLayered));
    cudaSurfaceObject_t cube = surface(array(8, 8, 6, written | cudaArrayCubemap));
    cudaSurfaceObject_t stack = surface(array(8, 8, 12, written | cudaArrayCubemap | cudaArrayLayered));
    write_surfaces<<<12, dim3(8, 8)>>>(lines, pages, cube, stack, 8);
    read_surfaces<<<1, dim3(8, 8)>>>(lines, pages, cube, stack, out);
    wanted.resize(64);
    for (int y = 0; y < 8; y++) for (int x = 0; x < 8; x++)
        wanted[y * 8 + x] = (x + 100 * (y % 3)) + (x + 10 * y + 200) + (x + 10 * y + 500) + (x + 10 * y + 1100) + 0.25f * 107;
    wrong += differ("surfaces", out, wanted);
    CHECK(cudaDeviceSynchronize());
    printf("%s\n", racy || !wrong ? "as on the host" : "wrong");
    return 0;
}
