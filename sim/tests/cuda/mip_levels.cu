// Mip levels, in all forms of instructions that name one, with the handle as an argument and out of a table.
// Each level holds its number everywhere, or a pattern. Of the first, every sample is compared with the
// formula; of the second, a digest is printed: PTX and machine code must print the same.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    printf("line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

typedef unsigned u32;
typedef cudaTextureObject_t T;
// Where (fractions of the extents, or a direction), a layer, a level, and gradients: by x and by y.
struct In { float x, y, z; int layer; float level; float2 by_x, by_y; };

#define FORM(name, body) \
    __global__ void name(T t, const In *in, float4 *out) { In a = in[threadIdx.x]; out[threadIdx.x] = body; } \
    __global__ void name##_of(const T *ts, const In *in, float4 *out) { \
        T t = ts[threadIdx.x & 1]; In a = in[threadIdx.x]; out[threadIdx.x] = body; }

FORM(line, tex1D<float4>(t, a.x))
FORM(line_level, tex1DLod<float4>(t, a.x, a.level))
FORM(line_gradient, tex1DGrad<float4>(t, a.x, a.by_x.x, a.by_y.x))
FORM(lines, tex1DLayered<float4>(t, a.x, a.layer))
FORM(lines_level, tex1DLayeredLod<float4>(t, a.x, a.layer, a.level))
FORM(lines_gradient, tex1DLayeredGrad<float4>(t, a.x, a.layer, a.by_x.x, a.by_y.x))
FORM(area, tex2D<float4>(t, a.x, a.y))
FORM(area_level, tex2DLod<float4>(t, a.x, a.y, a.level))
FORM(area_gradient, tex2DGrad<float4>(t, a.x, a.y, a.by_x, a.by_y))
FORM(gathered, tex2Dgather<float4>(t, a.x, a.y, 2))
FORM(areas, tex2DLayered<float4>(t, a.x, a.y, a.layer))
FORM(areas_level, tex2DLayeredLod<float4>(t, a.x, a.y, a.layer, a.level))
FORM(areas_gradient, tex2DLayeredGrad<float4>(t, a.x, a.y, a.layer, a.by_x, a.by_y))
FORM(room, tex3D<float4>(t, a.x, a.y, a.z))
FORM(room_level, tex3DLod<float4>(t, a.x, a.y, a.z, a.level))
FORM(cube, texCubemap<float4>(t, a.x - 0.5f, a.y - 0.5f, a.z - 0.5f))
FORM(cube_level, texCubemapLod<float4>(t, a.x - 0.5f, a.y - 0.5f, a.z - 0.5f, a.level))
FORM(cubes_level, texCubemapLayeredLod<float4>(t, a.x - 0.5f, a.y - 0.5f, a.z - 0.5f, a.layer, a.level))

const int N = 32;
static In *in;
static float4 *out, kept[N];
static T *ts;

static u32 digest(const void *bytes, size_t size) {
    u32 h = 2166136261u;
    for (size_t i = 0; i < size; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return h;
}

struct Range { bool between; float least, most; int levels; };

// What a sample at a level of detail says where each level holds its number.
static float expected(float lod, const Range &r) {
    lod = std::min(std::max(std::min(std::max(lod, r.least), r.most), 0.0f), r.levels - 1.0f);
    if (r.between) return std::floor(lod) + std::round((lod - std::floor(lod)) * 256) / 256;
    return std::max(std::ceil(lod - 0.5f), 0.0f);
}

enum Names { BASE, LEVEL, GRADIENT };
typedef void (*Direct)(T, const In *, float4 *);
typedef void (*Table)(const T *, const In *, float4 *);

static void run(const char *name, Direct direct, Table table, Names names, T t, bool numbers, const Range &r, size_t w, size_t h) {
    u32 digests[2];
    int wrong = 0;
    for (int way = 0; way < 2; way++) {
        T two[2] = {t, t};
        CHECK(cudaMemcpy(ts, two, sizeof two, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(out, 0, sizeof kept));
        if (way == 0) direct<<<1, N>>>(t, in, out);
        else table<<<1, N>>>(ts, in, out);
        CHECK(cudaMemcpy(kept, out, sizeof kept, cudaMemcpyDeviceToHost));
        digests[way] = digest(kept, sizeof kept);
        for (int i = 0; numbers && i < N; i++) {
            float2 x = in[i].by_x, y = in[i].by_y;
            if (h == 0) x.y = y.y = 0;
            float lod = names == BASE ? 0 : in[i].level;
            if (names == GRADIENT) lod = std::log2(std::max(std::hypot(x.x * w, x.y * h), std::hypot(y.x * w, y.y * h)));
            float want = expected(lod, r), got = kept[i].x;
            // The hypotenuse may be rounded to the other side of the middle.
            if (std::fabs(got - want) > (names == GRADIENT ? 0.005f : 1e-5f) && ++wrong < 3)
                printf("%s: %g at level of detail %g, not %g\n", name, got, lod, want);
        }
    }
    printf("%s %s %08x %s\n", name, wrong ? "WRONG" : "right", digests[0], digests[0] == digests[1] ? "same" : "differs");
}

template <class F> static void with(const char *title, size_t w, size_t h, size_t d, unsigned flags, int levels, F forms) {
    bool layered = flags & (cudaArrayLayered | cudaArrayCubemap);
    for (int numbers = 0; numbers < 2; numbers++) {
        cudaMipmappedArray_t mips;
        cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
        CHECK(cudaMallocMipmappedArray(&mips, &format, make_cudaExtent(w, h, d), levels, flags));
        for (int level = 0; level < levels; level++) {
            auto halved = [&](size_t n) { return std::max<size_t>(n >> level, 1); };
            size_t rows = halved(h), slices = layered ? d : halved(d);
            std::vector<float4> data(halved(w) * rows * slices);
            for (size_t i = 0; i < data.size(); i++) {
                float f = numbers ? level : (i * 37 % 101) * 0.5f + level;
                data[i] = make_float4(f, f + 1, f + 2, f + 3);
            }
            cudaMemcpy3DParms p = {};
            p.srcPtr = make_cudaPitchedPtr(data.data(), halved(w) * 16, halved(w), rows);
            CHECK(cudaGetMipmappedArrayLevel(&p.dstArray, mips, level));
            p.extent = make_cudaExtent(halved(w), rows, slices);
            p.kind = cudaMemcpyHostToDevice;
            CHECK(cudaMemcpy3D(&p));
        }
        cudaArray_t none;
        if (cudaGetMipmappedArrayLevel(&none, mips, levels) != cudaErrorInvalidValue) printf("a level too many\n");
        cudaGetLastError();
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeMipmappedArray;
        resource.res.mipmap.mipmap = mips;
        const Range ranges[] = {{false, 0, 99, levels}, {true, 0, 99, levels}, {true, 0.25f, 1.5f, levels}, {false, 0, 0, levels}};
        for (const Range &r : ranges) {
            cudaTextureDesc how = {};
            for (int i = 0; i < 3; i++) how.addressMode[i] = r.between ? cudaAddressModeWrap : cudaAddressModeClamp;
            how.filterMode = r.most > 1 ? cudaFilterModeLinear : cudaFilterModePoint;
            how.mipmapFilterMode = r.between ? cudaFilterModeLinear : cudaFilterModePoint;
            how.minMipmapLevelClamp = r.least, how.maxMipmapLevelClamp = r.most;
            T t;
            if (cudaCreateTextureObject(&t, &resource, &how, nullptr) != cudaErrorInvalidValue) printf("without normalized coordinates\n");
            cudaGetLastError();
            how.normalizedCoords = 1;
            CHECK(cudaCreateTextureObject(&t, &resource, &how, nullptr));
            printf("%s, %s, levels %g to %g\n", title, r.between ? "between" : "nearest", r.least, r.most);
            // What names no level is not asked where the range leaves the largest one out.
            forms(t, bool(numbers), r, w, h, r.least == 0);
            CHECK(cudaDestroyTextureObject(t));
        }
        CHECK(cudaFreeMipmappedArray(mips));
    }
}
#define RUN(form, names) run(#form, form, form##_of, names, t, numbers, r, w, h)
#define FORMS [](T t, bool numbers, const Range &r, size_t w, size_t h, bool base)

int main() {
    CHECK(cudaMalloc(&out, sizeof kept));
    CHECK(cudaMallocManaged(&in, N * sizeof(In)));
    CHECK(cudaMalloc(&ts, 2 * sizeof(T)));
    for (int i = 0; i < N; i++) {
        float step = std::ldexp(1.0f, i % 5 - 4);
        in[i] = {i / 32.0f, i * 7 % 32 / 32.0f, i * 11 % 32 / 32.0f + 0.01f, i % 3, i * 0.3125f - 1.0f,
            make_float2(step, 0.0f), make_float2(0.0f, i % 2 ? step / 2 : step * 2)};
    }
    // The range of levels that there can be: more are left out.
    with("line", 16, 0, 0, 0, 5, FORMS { if (base) RUN(line, BASE); RUN(line_level, LEVEL); RUN(line_gradient, GRADIENT); });
    with("lines", 16, 0, 3, cudaArrayLayered, 3, FORMS { if (base) RUN(lines, BASE); RUN(lines_level, LEVEL); RUN(lines_gradient, GRADIENT); });
    with("area", 16, 8, 0, cudaArrayTextureGather, 5, FORMS {
        if (base) RUN(area, BASE);
        if (base && !numbers) RUN(gathered, BASE);
        RUN(area_level, LEVEL); RUN(area_gradient, GRADIENT); });
    with("odd area", 13, 5, 0, 0, 3, FORMS { if (base) RUN(area, BASE); RUN(area_level, LEVEL); RUN(area_gradient, GRADIENT); });
    with("areas", 8, 8, 3, cudaArrayLayered, 4, FORMS { if (base) RUN(areas, BASE); RUN(areas_level, LEVEL); RUN(areas_gradient, GRADIENT); });
    with("room", 8, 4, 8, 0, 4, FORMS { if (base) RUN(room, BASE); RUN(room_level, LEVEL); });
    with("cube", 8, 8, 6, cudaArrayCubemap, 3, FORMS { if (base) RUN(cube, BASE); RUN(cube_level, LEVEL); });
    with("cubes", 8, 8, 18, cudaArrayCubemap | cudaArrayLayered, 4, FORMS { RUN(cubes_level, LEVEL); });
    cudaMipmappedArray_t mips;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t level;
    CHECK(cudaMallocMipmappedArray(&mips, &format, make_cudaExtent(4, 4, 0), 99, 0));
    for (int k = 0; k < 4; k++) printf("level %d: %s\n", k, cudaGetErrorName(cudaGetMipmappedArrayLevel(&level, mips, k)));
    CHECK(cudaFreeMipmappedArray(mips));
    puts("done");
    return 0;
}
