// Bytes that data or coordinates pick: texels of layers, slices and rectangles, places that ballots, matches,
// counters and scans hand out, and elements that loaded values select. Two kernels, or a kernel and a copy, on two streams that nothing
// orders. Each case uses memory of a size that no other has. For each of them, the program prints the size,
// the confidence of its race where launches are predicted, why it is not more, the confidence where they are
// measured, and the case.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

constexpr int WIDTH = 16, HEIGHT = 8, DEPTH = 4, N = 256;
static cudaStream_t a, b;
static int cases;
static float *floats;

// Texels: a surface of one half of an array is written, another half is read or copied.
enum Part { LAYER, SLICE, COLUMNS, ROWS, PARTS };
static const char *const parts[] = {"layer", "slice", "columns", "rows"};
enum Other { FETCH, LOAD, COPY, COPY_ALL, OTHERS };
static const char *const others[] = {"fetched", "loaded through a surface", "copied out", "all copied out"};

template <int P> __global__ void paint(cudaSurfaceObject_t s, int x, int y, int z) {
    x += threadIdx.x, y += blockIdx.x;
    if (P == LAYER) surf2DLayeredwrite(1.f, s, x * 4, y, z);
    else if (P == SLICE) surf3Dwrite(1.f, s, x * 4, y, z);
    else surf2Dwrite(1.f, s, x * 4, y);
}
template <int P> __global__ void fetch(cudaTextureObject_t t, int x, int y, int z, float *out) {
    x += threadIdx.x, y += blockIdx.x;
    float v = P == LAYER ? tex2DLayered<float>(t, x + .5f, y + .5f, z) : P == SLICE ? tex3D<float>(t, x + .5f, y + .5f, z + .5f) : tex2D<float>(t, x + .5f, y + .5f);
    out[blockIdx.x * WIDTH + threadIdx.x] = v;
}
template <int P> __global__ void load(cudaSurfaceObject_t s, int x, int y, int z, float *out) {
    x += threadIdx.x, y += blockIdx.x;
    float v = P == LAYER ? surf2DLayeredread<float>(s, x * 4, y, z) : P == SLICE ? surf3Dread<float>(s, x * 4, y, z) : surf2Dread<float>(s, x * 4, y);
    out[blockIdx.x * WIDTH + threadIdx.x] = v;
}

static void copy(cudaArray_t array, cudaPos from, cudaExtent extent) {
    cudaMemcpy3DParms p = {};
    p.srcArray = array, p.srcPos = from, p.extent = extent, p.kind = cudaMemcpyDeviceToDevice;
    p.dstPtr = make_cudaPitchedPtr(floats, extent.width * 4, extent.width, extent.height);
    CHECK(cudaMemcpy3DAsync(&p, b));
}

template <int P, int O, bool MEETS> __attribute__((noinline)) void texels() {
    constexpr bool deep = P == LAYER || P == SLICE;
    int more = ++cases + (deep ? 0 : 100);
    cudaExtent all = make_cudaExtent(WIDTH, HEIGHT + more, deep ? DEPTH : 0);
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMalloc3DArray(&array, &format, all, (P == LAYER ? cudaArrayLayered : 0) | cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaTextureDesc how = {};
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    int width = P == COLUMNS ? WIDTH / 2 : WIDTH, height = P == ROWS ? HEIGHT / 2 : HEIGHT;
    int x = P == COLUMNS && !MEETS ? width : 0, y = P == ROWS && !MEETS ? height : 0, z = deep && !MEETS ? 2 : 1;
    paint<P><<<height, width, 0, a>>>(surface, 0, 0, 1);
    if (O == FETCH) fetch<P><<<height, width, 0, b>>>(texture, x, y, z, floats);
    if (O == LOAD) load<P><<<height, width, 0, b>>>(surface, x, y, z, floats);
    if (O == COPY) copy(array, make_cudaPos(x, y, deep ? z : 0), make_cudaExtent(width, height, 1));
    if (O == COPY_ALL) copy(array, make_cudaPos(0, 0, 0), make_cudaExtent(WIDTH, HEIGHT + more, deep ? DEPTH : 1));
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(array));
    size_t size = size_t(WIDTH) * (HEIGHT + more) * (deep ? DEPTH : 1) * 4;
    const char *predicted = O == COPY_ALL ? "likely null" : "possible texels", *measured = MEETS || O == COPY_ALL ? "certain" : "none";
    printf("%zu %s %s %s, %s, %s\n", size, predicted, measured, parts[P], others[O], MEETS ? "the same" : "another");
}

// Places: two kernels append to one array, from two starts or from both ends.
enum Rank { BALLOT, MATCH, COUNTER, SCAN, RANKS };
static const char *const ranks[] = {"ballot", "match", "counter", "scan"};
enum Beside { APPENDED, FILLED_ALL, FILLED_REST, BESIDES };
static const char *const besides[] = {"appended", "all filled", "the rest filled"};

template <int R> __global__ void append(const int *in, int *out, int first, int *counter) {
    __shared__ int kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = in[i] > 0;
    unsigned below = (1u << lane) - 1, votes = R == MATCH ? __match_any_sync(~0u, keep) : __ballot_sync(~0u, keep);
    int place = first + i / 32 * 32 + __popc(votes & below);
    if (R == COUNTER && keep) place = first + atomicAdd(counter, 1);
    if (R == SCAN) {
        kept[threadIdx.x] = keep;
        __syncthreads();
        if (threadIdx.x == 0) for (int k = 1; k < blockDim.x; k++) kept[k] += kept[k - 1];
        __syncthreads();
        place = first + blockIdx.x * 64 + kept[threadIdx.x] - 1;
    }
    if (keep) out[place] = i;
}

template <int R, int B, bool MEETS> __attribute__((noinline)) void places() {
    size_t size = 8192 + 512 * ++cases;
    int *in, *out, *counters, host[N];
    // Of 32 elements the first 8 are kept, or all.
    for (int i = 0; i < N; i++) host[i] = i % 32 < (MEETS ? 32 : 8);
    CHECK(cudaMalloc(&in, sizeof host));
    CHECK(cudaMalloc(&counters, 256));
    CHECK(cudaMalloc(&out, size));
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(counters, 0, 256));
    CHECK(cudaDeviceSynchronize());
    // A counter hands out the places from the start of each on: 256 of all, 64 of the kept.
    int second = R == COUNTER ? 64 : 16;
    append<R><<<N / 64, 64, 0, a>>>(in, out, 0, counters);
    if (B == APPENDED) append<R><<<N / 64, 64, 0, b>>>(in, out, second, counters + 32);
    if (B == FILLED_ALL) CHECK(cudaMemsetAsync(out, 0, size, b));
    if (B == FILLED_REST) CHECK(cudaMemsetAsync(out + (MEETS ? 0 : 1024), 0, 256, b));
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(in));
    CHECK(cudaFree(counters));
    CHECK(cudaFree(out));
    bool bounded = R == BALLOT || R == MATCH;
    const char *predicted = "likely null";
    if (B == APPENDED) predicted = bounded ? "possible pieces" : "possible indices";
    // Of an append that is bounded it is known that it does not reach the rest.
    if (B == FILLED_REST && MEETS && bounded) predicted = "possible pieces";
    if (B == FILLED_REST && !MEETS) predicted = bounded ? "none null" : "possible null";
    printf("%zu %s %s %s, %s, %s\n", size, predicted, MEETS || B == FILLED_ALL ? "certain" : "none", ranks[R], besides[B], MEETS ? "meets" : "apart");
}

// Look-ups: loaded values select elements, of which the last that they can select is filled, and more behind
// it. What they can select is rounded up by nothing; what a loaded number of threads leaves of a tile is.
enum Lookup { BYTE, MASKED, SUM, DOUBLED, CHOSEN, TILE, LOOKUPS };
static const char *const lookups[] = {"byte", "masked byte", "sum of bytes", "doubled byte", "chosen byte", "loaded number of threads"};
static const int reaches[] = {256, 16, 511, 511, 256, N};

template <int L> __global__ void look_up(const unsigned char *in, const int *table, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned char one = in[i], other = in[N - 1 - i];
    if (L == TILE) {
        if (i < in[N] + in[N + 1]) out[i] = table[i];
        return;
    }
    out[i] = table[L == BYTE ? one : L == MASKED ? one & 15 : L == SUM ? one + other : L == DOUBLED ? 2 * one : other > 9 ? one : other];
}

template <int L, bool MEETS> __attribute__((noinline)) void look_ups() {
    size_t size = 65536 + 512 * ++cases;
    unsigned char *in, host[N + 2];
    int *table, *out, last = reaches[L] - 1;
    // With the largest values among them, or without.
    for (int i = 0; i < N; i++) host[i] = MEETS ? 255 : 128 + i % 64 & ~15;
    host[N] = MEETS ? N / 2 : 9, host[N + 1] = N / 2;
    CHECK(cudaMalloc(&in, sizeof host));
    CHECK(cudaMalloc(&out, N * 4));
    CHECK(cudaMalloc(&table, size));
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(table, 0, size));
    CHECK(cudaDeviceSynchronize());
    look_up<L><<<N / 64, 64, 0, a>>>(in, table, out);
    CHECK(cudaMemsetAsync(table + last, 0, size - 4 * last, b));
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    CHECK(cudaFree(table));
    printf("%zu %s %s looked up by a %s, %s\n", size, L == TILE ? "possible rim" : "likely null", MEETS ? "certain" : "none", lookups[L], MEETS ? "meets" : "apart");
}

template <int L = 0> void all_look_ups() {
    look_ups<L, false>(), look_ups<L, true>();
    if constexpr (L + 1 < LOOKUPS) all_look_ups<L + 1>();
}

template <int P, int O = 0> void all_texels() {
    texels<P, O, false>(), texels<P, O, true>();
    if constexpr (O + 1 < OTHERS) all_texels<P, O + 1>();
}
template <int R, int B = 0> void all_places() {
    places<R, B, false>(), places<R, B, true>();
    if constexpr (B + 1 < BESIDES) all_places<R, B + 1>();
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&floats, 1 << 20));
    all_texels<LAYER>(), all_texels<SLICE>(), all_texels<COLUMNS>(), all_texels<ROWS>();
    all_places<BALLOT>(), all_places<MATCH>(), all_places<COUNTER>(), all_places<SCAN>();
    all_look_ups();
    puts("done");
}
