// All forms of textures and surfaces that the simulator has, with the handle as an argument and out
// of a table. Prints a digest of what each reads: PTX and machine code must print the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    printf("line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

typedef unsigned u32;
typedef cudaTextureObject_t T;
typedef cudaSurfaceObject_t S;
struct In { float x, y, z, w; int i, j, k, l; };

// One kernel with the handle as its argument, one with the handle in memory.
#define FORM(name, body) \
    __global__ void name(T t, S s, const In *in, u32 *out) { In a = in[threadIdx.x]; out += threadIdx.x * 4; body } \
    __global__ void name##_of(const T *ts, const S *ss, const In *in, u32 *out) { \
        T t = ts[threadIdx.x & 1]; S s = ss[threadIdx.x & 1]; In a = in[threadIdx.x]; out += threadIdx.x * 4; body }
#define PUT(v) { float4 r = (v); out[0] = __float_as_uint(r.x); out[1] = __float_as_uint(r.y); \
    out[2] = __float_as_uint(r.z); out[3] = __float_as_uint(r.w); (void)s; }
#define PTX(text, ...) { asm volatile(text : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : __VA_ARGS__); (void)s; }

FORM(line, PUT(tex1D<float4>(t, a.x)))
FORM(line_level, PUT(tex1DLod<float4>(t, a.x, a.w)))
FORM(line_gradient, PUT(tex1DGrad<float4>(t, a.x, a.z, a.w)))
FORM(area, PUT(tex2D<float4>(t, a.x, a.y)))
FORM(one_of_area, { out[0] = __float_as_uint(tex2D<float>(t, a.x, a.y)); (void)s; })
FORM(area_level, PUT(tex2DLod<float4>(t, a.x, a.y, a.w)))
FORM(area_gradient, PUT(tex2DGrad<float4>(t, a.x, a.y, make_float2(a.z, a.w), make_float2(a.w, a.z))))
FORM(room, PUT(tex3D<float4>(t, a.x, a.y, a.z)))
FORM(room_level, PUT(tex3DLod<float4>(t, a.x, a.y, a.z, a.w)))
FORM(lines, PUT(tex1DLayered<float4>(t, a.x, a.l)))
FORM(lines_level, PUT(tex1DLayeredLod<float4>(t, a.x, a.l, a.w)))
FORM(lines_gradient, PUT(tex1DLayeredGrad<float4>(t, a.x, a.l, a.z, a.w)))
FORM(areas, PUT(tex2DLayered<float4>(t, a.x, a.y, a.l)))
FORM(areas_level, PUT(tex2DLayeredLod<float4>(t, a.x, a.y, a.l, a.w)))
FORM(areas_gradient, PUT(tex2DLayeredGrad<float4>(t, a.x, a.y, a.l, make_float2(a.z, a.w), make_float2(a.w, a.z))))
FORM(cube, PUT(texCubemap<float4>(t, a.x - 3, a.y - 3, a.z - 2)))
FORM(cube_level, PUT(texCubemapLod<float4>(t, a.x - 3, a.y - 3, a.z - 2, a.w)))
FORM(cubes, PUT(texCubemapLayered<float4>(t, a.x - 3, a.y - 3, a.z - 2, a.l)))
FORM(cubes_level, PUT(texCubemapLayeredLod<float4>(t, a.x - 3, a.y - 3, a.z - 2, a.l, a.w)))
FORM(gather_r, PUT(tex2Dgather<float4>(t, a.x, a.y, 0)))
FORM(gather_a, PUT(tex2Dgather<float4>(t, a.x, a.y, 3)))
FORM(gather_areas, PTX("tld4.g.a2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}];", "l"(t), "r"(a.l), "f"(a.x), "f"(a.y)))
FORM(gather_cube, PTX("tld4.b.cube.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}];", "l"(t), "f"(a.x - 3), "f"(a.y - 3), "f"(a.z - 2)))
FORM(gather_cubes, PTX("tld4.r.acube.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%8}];", "l"(t), "r"(a.l), "f"(a.x - 3), "f"(a.y - 3), "f"(a.z - 2)))
FORM(fetch_line, PTX("tex.1d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5}];", "l"(t), "r"(a.i)))
FORM(fetch_area, PTX("tex.2d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5,%6}];", "l"(t), "r"(a.i), "r"(a.j)))
FORM(fetch_area_level, PTX("tex.level.2d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5,%6}], %7;", "l"(t), "r"(a.i), "r"(a.j), "r"(a.i & 0)))
FORM(fetch_room, PTX("tex.3d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}];", "l"(t), "r"(a.i), "r"(a.j), "r"(a.k)))
FORM(fetch_lines, PTX("tex.a1d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5,%6}];", "l"(t), "r"(a.l), "r"(a.i)))
FORM(fetch_areas, PTX("tex.a2d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}];", "l"(t), "r"(a.l), "r"(a.i), "r"(a.j)))
FORM(extents, { asm volatile("txq.width.b32 %0, [%2]; txq.height.b32 %1, [%2];" : "=r"(out[0]), "=r"(out[1]) : "l"(t)); (void)s; })
FORM(depth, { asm volatile("txq.width.b32 %0, [%2]; txq.depth.b32 %1, [%2];" : "=r"(out[0]), "=r"(out[1]) : "l"(t)); (void)s; })
FORM(surface_extents, { asm volatile("suq.width.b32 %0, [%2]; suq.height.b32 %1, [%2];" : "=r"(out[0]), "=r"(out[1]) : "l"(s)); (void)t; })

#define READ(T_, call) { T_ v = (call); memcpy(out, &v, sizeof v); (void)t; }
FORM(read_line, READ(float, surf1Dread<float>(s, (a.i & 7) * 4)))
FORM(read_lines, READ(float, surf1DLayeredread<float>(s, (a.i & 7) * 4, (a.l + 1) % 3)))
FORM(read_area, READ(float4, surf2Dread<float4>(s, (a.i & 7) * 16, a.j & 3)))
FORM(read_zero, READ(float2, surf2Dread<float2>(s, a.i * 8, a.j, cudaBoundaryModeZero)))
FORM(read_clamp, READ(float, surf2Dread<float>(s, a.i * 4, a.j, cudaBoundaryModeClamp)))
FORM(read_byte, READ(unsigned char, surf2Dread<unsigned char>(s, a.i & 31, a.j & 3)))
FORM(read_signed, READ(int, surf2Dread<signed char>(s, a.i & 31, a.j & 3)))
FORM(read_short, READ(short2, surf2Dread<short2>(s, (a.i & 7) * 4, a.j & 3)))
FORM(read_bytes, READ(uchar4, surf2Dread<uchar4>(s, (a.i & 7) * 4, a.j & 3)))
FORM(read_long, READ(longlong2, surf2Dread<longlong2>(s, (a.i & 7) * 16, a.j & 3)))
FORM(read_room, READ(float, surf3Dread<float>(s, (a.i & 7) * 4, a.j & 3, a.k % 3)))
FORM(read_areas, READ(float, surf2DLayeredread<float>(s, (a.i & 7) * 4, a.j & 3, (a.l + 1) % 3)))
FORM(write_line, { surf1Dwrite(a.x, s, threadIdx.x % 8 * 4); (void)t; })
FORM(write_lines, { surf1DLayeredwrite(threadIdx.x + 0.5f, s, threadIdx.x % 8 * 4, threadIdx.x / 8 % 3); (void)t; })
FORM(write_area, { surf2Dwrite(make_float4(1, 2, 3, threadIdx.x), s, threadIdx.x % 8 * 16, threadIdx.x / 8 % 4); (void)t; })
FORM(write_zero, { surf2Dwrite(make_float2(7, threadIdx.x), s, threadIdx.x * 8, threadIdx.x / 4, cudaBoundaryModeZero); (void)t; })
FORM(write_byte, { surf2Dwrite((unsigned char)threadIdx.x, s, threadIdx.x, 1); (void)t; })
FORM(write_short, { surf2Dwrite((short)threadIdx.x, s, threadIdx.x % 8 * 2, 2); (void)t; })
FORM(write_room, { surf3Dwrite(threadIdx.x + 0.25f, s, threadIdx.x % 8 * 4, threadIdx.x / 8, 2); (void)t; })
FORM(write_areas, { surf2DLayeredwrite(threadIdx.x + 0.75f, s, threadIdx.x % 8 * 4, threadIdx.x / 8, 1); (void)t; })
FORM(write_texels, { asm volatile("sust.p.2d.v4.b32.zero [%0, {%1,%2}], {%3,%4,%3,%4};" :: "l"(s), "r"(threadIdx.x % 8), "r"(threadIdx.x / 8), "r"(threadIdx.x), "r"(77)); (void)t; })
FORM(reduce, { u32 x = (threadIdx.x & 7) * 4; asm volatile("sured.b.add.2d.u32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x), "r"(0), "r"(a.i));
    asm volatile("sured.b.min.2d.s32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x), "r"(1), "r"(a.i));
    asm volatile("sured.b.max.2d.u32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x), "r"(2), "r"(a.i));
    asm volatile("sured.b.or.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x), "r"(3), "r"(1 << (a.i & 31)));
    asm volatile("sured.b.add.2d.u64.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x * 2 + 64), "r"(3), "l"((long long)a.i << 20)); (void)t; })

const int N = 32;
static u32 *out, kept[N * 4];
static In *in;
static T *ts;
static S *ss;

static u32 digest(const void *bytes, size_t size) {
    u32 h = 2166136261u;
    for (size_t i = 0; i < size; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return h;
}

typedef void (*Direct)(T, S, const In *, u32 *);
typedef void (*Table)(const T *, const S *, const In *, u32 *);

// Runs a form in both ways, and prints what it answers and what is left of the array.
static void run(const char *name, Direct direct, Table table, T t, S s, cudaArray_t array, size_t w, size_t h, size_t d) {
    CHECK(cudaMemset(out, 0, sizeof kept));
    direct<<<1, N>>>(t, s, in, out);
    CHECK(cudaMemcpy(kept, out, sizeof kept, cudaMemcpyDeviceToHost));
    u32 one = digest(kept, sizeof kept);
    T two_t[2] = {t, t}; S two_s[2] = {s, s};
    CHECK(cudaMemcpy(ts, two_t, sizeof two_t, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(ss, two_s, sizeof two_s, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, sizeof kept));
    table<<<1, N>>>(ts, ss, in, out);
    CHECK(cudaMemcpy(kept, out, sizeof kept, cudaMemcpyDeviceToHost));
    u32 all = 0;
    if (array) {
        static char content[1 << 16];
        cudaMemcpy3DParms p = {};
        p.srcArray = array;
        p.dstPtr = make_cudaPitchedPtr(content, w * 16, w, h);
        p.extent = make_cudaExtent(w, h, d);
        p.kind = cudaMemcpyDeviceToHost;
        CHECK(cudaMemcpy3D(&p));
        all = digest(content, w * 16 * h * d);
    }
    u32 other = digest(kept, sizeof kept);
    printf("%s %08x %s %08x\n", name, one, one == other ? "same" : "differs", all);
}
#define RUN(form) run(#form, form, form##_of, t, s, s ? array : nullptr, w, h, d)

static const float numbers[] = {0.0f, 1.5f, 2.25f, -0.5f, 3.999f, 7.0f, 0.49f, 12.0f};

template <class F> static void with(const char *title, size_t w, size_t h, size_t d, unsigned flags, F forms) {
    static float data[1 << 14];
    for (int i = 0; i < 1 << 14; i++) data[i] = (i * 37 % 101) * 0.5f + i * 0.01f;
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(w, h, d), flags));
    size_t rows = h ? h : 1, layers = d ? d : 1;
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(data, w * 16, w, rows);
    p.dstArray = array;
    p.extent = make_cudaExtent(w, rows, layers);
    p.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&p));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    S s = 0;
    if (flags & cudaArraySurfaceLoadStore) {
        CHECK(cudaCreateSurfaceObject(&s, &resource));
        printf("%s\n", title);
        forms(T(0), s, array, w, rows, layers);
        return;
    }
    const cudaTextureAddressMode modes[] = {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror};
    for (int way = 0; way < 6; way++) {
        cudaTextureDesc description = {};
        for (int i = 0; i < 3; i++) description.addressMode[i] = modes[way % 4];
        description.filterMode = way & 1 ? cudaFilterModeLinear : cudaFilterModePoint;
        description.normalizedCoords = way >= 2;
        description.seamlessCubemap = way == 3;
        for (int i = 0; i < 4; i++) description.borderColor[i] = i + 0.125f;
        T t;
        CHECK(cudaCreateTextureObject(&t, &resource, &description, nullptr));
        printf("%s, way %d\n", title, way);
        forms(t, s, array, w, rows, layers);
        CHECK(cudaDestroyTextureObject(t));
    }
}
#define FORMS [](T t, S s, cudaArray_t array, size_t w, size_t h, size_t d)

int main() {
    CHECK(cudaMalloc(&out, sizeof kept));
    CHECK(cudaMallocManaged(&in, N * sizeof(In)));
    CHECK(cudaMalloc(&ts, 2 * sizeof(T)));
    CHECK(cudaMalloc(&ss, 2 * sizeof(S)));
    for (int i = 0; i < N; i++)
        in[i] = {numbers[i % 8], numbers[(i / 2) % 8] * 0.75f, numbers[(i + i / 4) % 8], 0.25f * (i % 3), i * 5 % 11 - 1, i % 5, i % 4, i % 6 - 1};
    with("line", 8, 0, 0, 0, FORMS { RUN(line); RUN(line_level); RUN(line_gradient); RUN(fetch_line); });
    with("area", 8, 4, 0, cudaArrayTextureGather, FORMS {
        RUN(area); RUN(one_of_area); RUN(area_level); RUN(area_gradient); RUN(gather_r); RUN(gather_a); RUN(fetch_area); RUN(fetch_area_level); RUN(extents); });
    with("room", 8, 4, 3, 0, FORMS { RUN(room); RUN(room_level); RUN(fetch_room); RUN(depth); });
    with("lines", 8, 0, 3, cudaArrayLayered, FORMS { RUN(lines); RUN(lines_level); RUN(lines_gradient); RUN(fetch_lines); });
    with("areas", 8, 4, 3, cudaArrayLayered, FORMS { RUN(areas); RUN(areas_level); RUN(areas_gradient); RUN(gather_areas); RUN(fetch_areas); });
    with("cube", 8, 8, 6, cudaArrayCubemap, FORMS { RUN(cube); RUN(cube_level); RUN(gather_cube); });
    with("cubes", 8, 8, 12, cudaArrayCubemap | cudaArrayLayered, FORMS { RUN(cubes); RUN(cubes_level); RUN(gather_cubes); });
    with("surface line", 8, 0, 0, cudaArraySurfaceLoadStore, FORMS { RUN(read_line); RUN(write_line); });
    with("surface lines", 8, 0, 3, cudaArraySurfaceLoadStore | cudaArrayLayered, FORMS { RUN(read_lines); RUN(write_lines); });
    with("surface area", 8, 4, 0, cudaArraySurfaceLoadStore, FORMS {
        RUN(read_area); RUN(read_zero); RUN(read_clamp); RUN(read_byte); RUN(read_signed); RUN(read_short); RUN(read_bytes); RUN(read_long);
        RUN(write_area); RUN(write_zero); RUN(write_byte); RUN(write_short); RUN(write_texels); RUN(reduce); RUN(surface_extents); });
    with("surface room", 8, 4, 3, cudaArraySurfaceLoadStore, FORMS { RUN(read_room); RUN(write_room); });
    with("surface areas", 8, 4, 3, cudaArraySurfaceLoadStore | cudaArrayLayered, FORMS { RUN(read_areas); RUN(write_areas); });
    return 0;
}
