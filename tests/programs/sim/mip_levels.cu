// One level of a mipmapped array is written on one stream; levels of it are read on another, which nothing
// orders: through textures with a level of detail, through surfaces and texture objects of one level, and by
// copies. Each case uses memory of a size that no other has. For each of them, the program prints the size,
// the confidence of its race where launches are predicted, why it is not more, the confidence where they are
// measured, the level, and the case. With `ordered` the second stream waits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <utility>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Shape { LINE, AREA, LAYERS, ROOM, SHAPES };
static const char *const shapes[] = {"line", "area", "layers", "room"};
enum Writer { SURFACE, UPLOAD, WRITERS };
static const char *const writers[] = {"painted", "uploaded"};
enum Reader { BASE, NEAREST, BETWEEN, LEVEL_LOADED, LEVEL_FETCHED, DOWNLOAD, READERS };
static const char *const readers[] = {"fetched without a level", "fetched", "fetched between levels", "loaded", "fetched as an array", "downloaded"};
constexpr int LEVELS = 3;

struct Box { int w, h, d; };
static Box level_of(Box b, int level, Shape shape) {
    auto halved = [&](int n) { return n ? std::max(n >> level, 1) : 0; };
    return {halved(b.w), halved(b.h), shape == LAYERS ? b.d : halved(b.d)};
}
static __host__ __device__ int rows(Box b) { return b.h ? b.h : 1; }
static __host__ __device__ int slices(Box b) { return b.d ? b.d : 1; }

__global__ void paint(cudaSurfaceObject_t s, Box b, Shape shape) {
    for (int i = threadIdx.x; i < b.w * rows(b) * slices(b); i += blockDim.x) {
        int x = i % b.w, y = i / b.w % rows(b), z = i / b.w / rows(b);
        if (shape == LINE) surf1Dwrite(1.f, s, x * 4);
        else if (shape == AREA) surf2Dwrite(1.f, s, x * 4, y);
        else if (shape == LAYERS) surf2DLayeredwrite(1.f, s, x * 4, y, z);
        else surf3Dwrite(1.f, s, x * 4, y, z);
    }
}
__global__ void load(cudaSurfaceObject_t s, Box b, Shape shape, float *out) {
    for (int i = threadIdx.x; i < b.w * rows(b) * slices(b); i += blockDim.x) {
        int x = i % b.w, y = i / b.w % rows(b), z = i / b.w / rows(b);
        if (shape == LINE) out[i] = surf1Dread<float>(s, x * 4);
        else if (shape == AREA) out[i] = surf2Dread<float>(s, x * 4, y);
        else if (shape == LAYERS) out[i] = surf2DLayeredread<float>(s, x * 4, y, z);
        else out[i] = surf3Dread<float>(s, x * 4, y, z);
    }
}
// At the middles of all texels of a level. A level of detail below 0: none is named.
__global__ void fetch(cudaTextureObject_t t, Box b, Shape shape, float lod, float *out) {
    for (int i = threadIdx.x; i < b.w * rows(b) * slices(b); i += blockDim.x) {
        int z = i / b.w / rows(b);
        float x = (i % b.w + .5f) / b.w, y = (i / b.w % rows(b) + .5f) / rows(b), depth = (z + .5f) / slices(b);
        if (shape == LINE) out[i] = lod < 0 ? tex1D<float>(t, x) : tex1DLod<float>(t, x, lod);
        else if (shape == AREA) out[i] = lod < 0 ? tex2D<float>(t, x, y) : tex2DLod<float>(t, x, y, lod);
        else if (shape == LAYERS) out[i] = lod < 0 ? tex2DLayered<float>(t, x, y, z) : tex2DLayeredLod<float>(t, x, y, z, lod);
        else out[i] = lod < 0 ? tex3D<float>(t, x, y, depth) : tex3DLod<float>(t, x, y, depth, lod);
    }
}

static cudaStream_t a, b;
static cudaEvent_t written;
static float *floats;
static bool ordered;
static int cases;

static void copy(cudaArray_t array, Box box, bool up, cudaStream_t stream) {
    cudaMemcpy3DParms p = {};
    cudaPitchedPtr plain = make_cudaPitchedPtr(floats + (up ? 1 << 16 : 0), box.w * 4, box.w, rows(box));
    if (up) p.srcPtr = plain, p.dstArray = array;
    else p.srcArray = array, p.dstPtr = plain;
    p.extent = make_cudaExtent(box.w, rows(box), slices(box)), p.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&p, stream));
}

static cudaSurfaceObject_t surface(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaSurfaceObject_t s;
    CHECK(cudaCreateSurfaceObject(&s, &resource));
    return s;
}

static __attribute__((noinline)) void one(Shape shape, Writer writer, int w, Reader reader, int r) {
    Box box = {16 + 6 * ++cases, shape == LINE ? 0 : 8, shape == LAYERS || shape == ROOM ? 4 : 0};
    size_t size = 0;
    for (int k = 0; k < LEVELS; k++) {
        Box l = level_of(box, k, shape);
        size += size_t(l.w) * rows(l) * slices(l) * 4;
    }
    cudaMipmappedArray_t mips;
    cudaArray_t levels[LEVELS];
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    unsigned flags = cudaArraySurfaceLoadStore | (shape == LAYERS ? cudaArrayLayered : 0);
    CHECK(cudaMallocMipmappedArray(&mips, &format, make_cudaExtent(box.w, box.h, box.d), LEVELS, flags));
    for (int k = 0; k < LEVELS; k++) CHECK(cudaGetMipmappedArrayLevel(&levels[k], mips, k));
    cudaResourceDesc resource = {};
    bool whole = reader == BASE || reader == NEAREST || reader == BETWEEN;
    if (whole) resource.resType = cudaResourceTypeMipmappedArray, resource.res.mipmap.mipmap = mips;
    else resource.resType = cudaResourceTypeArray, resource.res.array.array = levels[r];
    cudaTextureDesc how = {};
    how.normalizedCoords = 1, how.maxMipmapLevelClamp = reader == BASE ? 0 : LEVELS - 1;
    how.mipmapFilterMode = reader == BETWEEN ? cudaFilterModeLinear : cudaFilterModePoint;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    cudaSurfaceObject_t painted = surface(levels[w]), loaded = surface(levels[r]);
    CHECK(cudaDeviceSynchronize());

    if (writer == SURFACE) paint<<<1, 64, 0, a>>>(painted, level_of(box, w, shape), shape);
    else copy(levels[w], level_of(box, w, shape), true, a);
    if (ordered) {
        CHECK(cudaEventRecord(written, a));
        CHECK(cudaStreamWaitEvent(b, written, 0));
    }
    Box at = level_of(box, r, shape);
    if (reader == BASE) fetch<<<1, 64, 0, b>>>(texture, at, shape, -1.f, floats);
    if (reader == NEAREST) fetch<<<1, 64, 0, b>>>(texture, at, shape, r, floats);
    if (reader == BETWEEN) fetch<<<1, 64, 0, b>>>(texture, at, shape, r + .5f, floats);
    if (reader == LEVEL_LOADED) load<<<1, 64, 0, b>>>(loaded, at, shape, floats);
    if (reader == LEVEL_FETCHED) fetch<<<1, 64, 0, b>>>(texture, at, shape, -1.f, floats);
    if (reader == DOWNLOAD) copy(levels[r], at, false, b);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(painted));
    CHECK(cudaDestroySurfaceObject(loaded));
    CHECK(cudaFreeMipmappedArray(mips));

    // Levels that the reader may see by its object, and those that it reads.
    int first = whole ? 0 : r, last = whole && reader != BASE ? LEVELS - 1 : r;
    bool reads = reader == BETWEEN ? w == r || w == r + 1 : w == r;
    const char *predicted = "possible texels";
    if (w < first || last < w) predicted = "none null";
    else if (writer == UPLOAD && reader == DOWNLOAD) predicted = "certain null";
    else if ((writer == UPLOAD || reader == DOWNLOAD) && first == last) predicted = "likely null";
    printf("%zu %s %s %d %s, level %d %s, level %d %s\n", size, predicted, reads ? "certain" : "none", w, shapes[shape], w, writers[writer], r, readers[reader]);
}

// The cases: all pairs of levels in an area, elsewhere some. A number that is none says so by its reader.
struct Case { int shape, writer, reader, w, r; };
static constexpr Case case_of(int n) {
    Case c = {n / (WRITERS * READERS * LEVELS * LEVELS), n / (READERS * LEVELS * LEVELS) % WRITERS, n / (LEVELS * LEVELS) % READERS, n / LEVELS % LEVELS, n % LEVELS};
    bool more = c.shape == AREA || c.w == 1;
    if (!more || (c.reader == BASE && c.r > 0) || (c.reader == BETWEEN && c.r == LEVELS - 1)) c.reader = READERS;
    return c;
}

// Findings of one place in the program are one: each case has its place.
template <int N> __attribute__((noinline)) void in_case() {
    constexpr Case c = case_of(N);
    if (c.reader != READERS) one(Shape(c.shape), Writer(c.writer), c.w, Reader(c.reader), c.r);
    asm volatile("");
}
template <int... N> void in_cases(std::integer_sequence<int, N...>) { (in_case<N>(), ...); }

int main(int argc, char **argv) {
    ordered = argc > 1 && !strcmp(argv[1], "ordered");
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    CHECK(cudaMalloc(&floats, 1 << 20));
    in_cases(std::make_integer_sequence<int, SHAPES * WRITERS * READERS * LEVELS * LEVELS>());
    puts("done");
}
