// Copies of tiles by tensor maps.
//
// `tiles random|aligned [CASES [SEED]]`: random maps, and kernels that store tiles through them (from
// block indices, from a loop over tiles, from one number; maps among the parameters, in constant
// and in global memory). Prints a line for each case: kernel, type, rank, offset of the tensor,
// sizes, strides, box, every, start, step and count of tiles, blocks, and the bytes that changed.
// Aligned: no tile begins before the tensor, nor at bytes of a row that are no multiple of 16; an
// H200 faults at such stores ("illegal instruction").
//
// `tiles NAME racy|mended`: two launches on two streams.
#include <cuda.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        auto code = (call);                                                                                            \
        if (code != 0) {                                                                                               \
            fprintf(stderr, "%s: %d\n", #call, (int)code);                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct Walk {
    int start[5], step[5], count[5];
};

__device__ unsigned shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

template <bool ADDS>
__device__ void store(int rank, const CUtensorMap *map, const void *tile, int a, int b, int c, int d, int e) {
#define FORM(n, list)                                                                                                  \
    if constexpr (ADDS)                                                                                                \
        asm volatile("cp.reduce.async.bulk.tensor." #n "d.global.shared::cta.add.tile.bulk_group [%0, {" list          \
                     "}], [%1];" ::"l"(map), "r"(shared(tile)), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e) : "memory");    \
    else                                                                                                               \
        asm volatile("cp.async.bulk.tensor." #n "d.global.shared::cta.tile.bulk_group [%0, {" list                     \
                     "}], [%1];" ::"l"(map), "r"(shared(tile)), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e) : "memory");
    switch (rank) {
    case 1: FORM(1, "%2") break;
    case 2: FORM(2, "%2, %3") break;
    case 3: FORM(3, "%2, %3, %4") break;
    case 4: FORM(4, "%2, %3, %4, %5") break;
    case 5: FORM(5, "%2, %3, %4, %5, %6") break;
    }
}

__device__ void ready(char *tile) {
    for (int i = threadIdx.x; i < 16384; i += blockDim.x)
        tile[i] = 1 + i % 11;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
}

__device__ void done() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern __shared__ __align__(128) char tile[];

template <int RANK, bool ADDS> __device__ void by_block(const CUtensorMap *map, const Walk &w) {
    ready(tile);
    if (threadIdx.x == 0) {
        int x = w.start[0] + w.step[0] * blockIdx.x, y = w.start[1] + w.step[1] * blockIdx.y;
        store<ADDS>(RANK, map, tile, x, y, w.start[2] + w.step[2] * blockIdx.z, w.start[3], w.start[4]);
        done();
    }
}

template <int RANK> __global__ void blocks(const __grid_constant__ CUtensorMap map, const __grid_constant__ Walk w) {
    by_block<RANK, false>(&map, w);
}

template <int RANK> __global__ void adds(const __grid_constant__ CUtensorMap map, const __grid_constant__ Walk w) {
    by_block<RANK, true>(&map, w);
}

// One block a row of tiles, with loops over the others.
template <int RANK> __global__ void loops(const __grid_constant__ CUtensorMap map, const __grid_constant__ Walk w) {
    ready(tile);
    if (threadIdx.x == 0) {
        for (int z = 0; z < w.count[2]; z++)
            for (int x = 0; x < w.count[0]; x++)
                store<false>(RANK, &map, tile, w.start[0] + w.step[0] * x, w.start[1] + w.step[1] * blockIdx.x,
                             w.start[2] + w.step[2] * z, w.start[3], w.start[4]);
        done();
    }
}

// As many blocks as there are, each with every so many tiles.
template <int RANK> __global__ void persistent(const __grid_constant__ CUtensorMap map, const __grid_constant__ Walk w) {
    ready(tile);
    if (threadIdx.x == 0) {
        int tiles = w.count[0] * w.count[1] * w.count[2];
        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            int x = t % w.count[0], rest = t / w.count[0], y = rest % w.count[1], z = rest / w.count[1];
            store<false>(RANK, &map, tile, w.start[0] + w.step[0] * x, w.start[1] + w.step[1] * y,
                         w.start[2] + w.step[2] * z, w.start[3], w.start[4]);
        }
        done();
    }
}

__constant__ __align__(128) CUtensorMap constant_map;

template <int RANK> __global__ void constant(const __grid_constant__ Walk w) { by_block<RANK, false>(&constant_map, w); }

template <int RANK> __global__ void global(const CUtensorMap *map, const __grid_constant__ Walk w) {
    by_block<RANK, false>(map, w);
}

// Columns of images, each of one image: all channels of all its pixels.
__global__ void columns(const __grid_constant__ CUtensorMap map) {
    ready(tile);
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%1, %1, %2}], [%3];" ::"l"(&map),
                     "r"(0), "r"((int)blockIdx.x), "r"(shared(tile)) : "memory");
        done();
    }
}

// Each block makes its map: the address is a parameter, or one of a table.
template <bool TABLE> __global__ void makes(const __grid_constant__ CUtensorMap like, float *out, float *const *outs, CUtensorMap *maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) int made[32];
    CUtensorMap *mine = maps + blockIdx.x;
    ready(tile);
    made[threadIdx.x] = ((const int *)&like)[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0)
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"l"((unsigned long long)shared(made)),
                     "l"(TABLE ? outs[blockIdx.x] : out) : "memory");
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(mine),
                 "r"(shared(made)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(mine) : "memory");
    if (threadIdx.x == 0) {
        store<false>(2, mine, tile, 0, blockIdx.x * 16, 0, 0, 0);
        done();
    }
#endif
}

static std::mt19937_64 rng;
static int below(int n) { return (int)(rng() % n); }

static decltype(&cuTensorMapEncodeTiled) encode;
static void *entry(const char *name);

static void *entry(const char *name) {
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found;
    OK(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found));
    return f;
}

struct Type {
    CUtensorMapDataType kind;
    int bytes;
};
static const Type TYPES[] = {{CU_TENSOR_MAP_DATA_TYPE_UINT8, 1}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2},
    {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2}, {CU_TENSOR_MAP_DATA_TYPE_INT32, 4}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4},
    {CU_TENSOR_MAP_DATA_TYPE_UINT64, 8}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8}};

static const char *NAMES[] = {"blocks", "adds", "loops", "persistent", "constant", "global"};

template <int RANK> static void launch(int kernel, dim3 grid, const CUtensorMap &map, const CUtensorMap *there, const Walk &w) {
    switch (kernel) {
    case 0: blocks<RANK><<<grid, 32, 16384>>>(map, w); break;
    case 1: adds<RANK><<<grid, 32, 16384>>>(map, w); break;
    case 2: loops<RANK><<<grid, 32, 16384>>>(map, w); break;
    case 3: persistent<RANK><<<grid, 32, 16384>>>(map, w); break;
    case 4: OK(cudaMemcpyToSymbol(constant_map, &map, sizeof map)); constant<RANK><<<grid, 32, 16384>>>(w); break;
    default: global<RANK><<<grid, 32, 16384>>>(there, w);
    }
}

static int random_cases(int cases, int seed, bool aligned) {
    rng.seed(seed);
    const size_t SPACE = 4 << 20, MARGIN = 4096;
    char *memory;
    CUtensorMap *there;
    OK(cudaMalloc(&memory, SPACE));
    OK(cudaMalloc(&there, sizeof *there));
    std::vector<unsigned char> before(SPACE), now(SPACE);
    for (int n = 0; n < cases;) {
        int rank = 1 + n % 5, kernel = n / 5 % 6;
        Type type = TYPES[below(7)];
        cuuint64_t sizes[5] = {1, 1, 1, 1, 1}, strides[5] = {};
        cuuint32_t box[5] = {1, 1, 1, 1, 1}, step[5] = {1, 1, 1, 1, 1};
        size_t offset = MARGIN + 16 * below(64), far = 0, held = type.bytes;
        for (int k = 0; k < rank; k++) {
            sizes[k] = k == 0 ? 1 + below(200) : 1 + below(k < 3 ? 20 : 6);
            box[k] = k == 0 ? 16 / type.bytes * (1 + below(4)) : 1 + below(k < 3 ? 8 : 3);
            step[k] = k == 0 || below(3) ? 1 : 1 + below(3);
            held *= (box[k] + step[k] - 1) / step[k];
            if (k > 0) {
                size_t least = k == 1 ? sizes[0] * type.bytes : sizes[k - 1] * strides[k - 2];
                strides[k - 1] = (least + 15) / 16 * 16 + 16 * (below(2) ? 0 : below(4));
                far += (sizes[k] - 1) * strides[k - 1];
            }
        }
        if (far + sizes[0] * type.bytes > SPACE / 2 || held > 16384)
            continue;
        Walk w = {};
        dim3 grid(1, 1, 1);
        for (int k = 0; k < 5; k++) {
            w.start[k] = k >= rank || below(3) ? 0 : aligned ? below((int)sizes[k]) : below(2 * (int)sizes[k]) - (int)sizes[k];
            w.step[k] = k >= rank ? 0 : below(3) ? (int)box[k] : 1 + below(2 * (int)box[k]);
            w.count[k] = k >= rank || k > 2 ? 1 : below(2) ? ((int)sizes[k] + (int)box[k] - 1) / (int)box[k] : 1 + below(4);
        }
        for (int *n : {&w.start[0], &w.step[0]})
            *n = aligned ? *n / (16 / type.bytes) * (16 / type.bytes) : *n;
        if (kernel == 3)
            grid.x = 1 + below(5);
        else if (kernel == 2)
            grid.x = w.count[1];
        else
            grid = dim3(w.count[0], w.count[1], w.count[2]);
        alignas(64) CUtensorMap map;
        if (encode(&map, type.kind, rank, memory + offset, sizes, strides, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != 0)
            continue;
        OK(cudaMemcpy(there, &map, sizeof map, cudaMemcpyHostToDevice));
        OK(cudaMemset(memory, 0x20, SPACE));
        switch (rank) {
        case 1: launch<1>(kernel, grid, map, there, w); break;
        case 2: launch<2>(kernel, grid, map, there, w); break;
        case 3: launch<3>(kernel, grid, map, there, w); break;
        case 4: launch<4>(kernel, grid, map, there, w); break;
        default: launch<5>(kernel, grid, map, there, w);
        }
        OK(cudaGetLastError());
        OK(cudaMemcpy(now.data(), memory, SPACE, cudaMemcpyDeviceToHost));
        printf("%s %d %d %zu", NAMES[kernel], (int)type.kind, rank, offset);
        auto list = [&](const char *name, auto *v, int count) {
            printf(" %s", name);
            for (int k = 0; k < count; k++)
                printf(" %lld", (long long)v[k]);
        };
        list("sizes", sizes, rank), list("strides", strides, rank - 1), list("box", box, rank), list("every", step, rank);
        list("start", w.start, 5), list("step", w.step, 5), list("count", w.count, 5);
        printf(" grid %u %u %u changed", grid.x, grid.y, grid.z);
        for (size_t at = 0; at < SPACE; at++)
            if (now[at] != 0x20) {
                size_t from = at;
                while (at < SPACE && now[at] != 0x20)
                    at++;
                printf(" %zu-%zu", from, at);
            }
        printf("\n");
        n++;
    }
    return 0;
}

// A map of rows of floats, a tile of 16 rows of 32.
static const int WIDTH = 256, HEIGHT = 128;

static CUtensorMap map_of(float *tensor, int width, int height) {
    cuuint64_t sizes[] = {(cuuint64_t)width, (cuuint64_t)height}, strides[] = {WIDTH * sizeof(float)};
    cuuint32_t box[] = {32, 16}, step[] = {1, 1};
    alignas(64) CUtensorMap map;
    OK(encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, tensor, sizes, strides, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
              CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

// Images of 16 pixels of 32 channels.
static CUtensorMap images_of(float *tensor) {
    cuuint64_t sizes[] = {32, 16, 8}, strides[] = {128, 2048};
    cuuint32_t step[] = {1, 1, 1};
    int corner[] = {0};
    alignas(64) CUtensorMap map;
    OK(((decltype(&cuTensorMapEncodeIm2col))entry("cuTensorMapEncodeIm2col"))(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, tensor, sizes, strides, corner, corner, 32, 16, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

static Walk from(int column, int row) { return Walk{{column, row}, {32, 16}, {}}; }

static int two_streams(const std::string &name, bool racy) {
    float *tensor, *other;
    OK(cudaMalloc(&tensor, WIDTH * HEIGHT * sizeof(float)));
    OK(cudaMalloc(&other, WIDTH * HEIGHT * sizeof(float)));
    cudaStream_t a, b;
    OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CUtensorMap map = map_of(tensor, WIDTH, HEIGHT), same = map_of(tensor, WIDTH, HEIGHT), apart = map_of(other, WIDTH, HEIGHT);
    OK(cudaDeviceSynchronize());
    dim3 all(WIDTH / 32, HEIGHT / 16), half(WIDTH / 32, HEIGHT / 32);
    if (name == "output") {
        // One output by two maps, or two outputs.
        blocks<2><<<all, 32, 16384, a>>>(map, from(0, 0));
        blocks<2><<<all, 32, 16384, b>>>(racy ? same : apart, from(0, 0));
    } else if (name == "ordered") {
        blocks<2><<<all, 32, 16384, a>>>(map, from(0, 0));
        if (!racy) {
            cudaEvent_t event;
            OK(cudaEventCreate(&event));
            OK(cudaEventRecord(event, a));
            OK(cudaStreamWaitEvent(b, event, 0));
        }
        blocks<2><<<all, 32, 16384, b>>>(map, from(0, 0));
    } else if (name == "halves") {
        // The upper half, and the lower one or one that begins a row above.
        blocks<2><<<half, 32, 16384, a>>>(map, from(0, 0));
        blocks<2><<<half, 32, 16384, b>>>(map, from(0, HEIGHT / 2 - racy));
    } else if (name == "columns") {
        blocks<2><<<dim3(4, 8), 32, 16384, a>>>(map, from(0, 0));
        // (A store that begins at no multiple of 16 bytes faults: seen on an H200.)
        blocks<2><<<dim3(4, 8), 32, 16384, b>>>(map, from(128 - 4 * racy, 0));
    } else if (name == "loops") {
        Walk w = from(0, 0), v = from(0, racy ? HEIGHT / 2 - 16 : HEIGHT / 2);
        w.count[0] = v.count[0] = WIDTH / 32, w.count[1] = v.count[1] = HEIGHT / 32, w.count[2] = v.count[2] = 1;
        persistent<2><<<3, 32, 16384, a>>>(map, w);
        loops<2><<<HEIGHT / 32, 32, 16384, b>>>(map, v);
    } else if (name == "clipped") {
        // What lies beyond the tensor's last row is not stored.
        CUtensorMap part = map_of(tensor, WIDTH, racy ? HEIGHT / 2 + 1 : HEIGHT / 2);
        blocks<2><<<all, 32, 16384, a>>>(part, from(0, 0));
        OK(cudaMemsetAsync(tensor + WIDTH * HEIGHT / 2, 1, WIDTH * HEIGHT / 2 * sizeof(float), b));
    } else if (name == "added") {
        // Reductions are atomic: two do not race, one with a plain copy does.
        adds<2><<<all, 32, 16384, a>>>(map, from(0, 0));
        if (racy)
            blocks<2><<<all, 32, 16384, b>>>(map, from(0, 0));
        else
            adds<2><<<all, 32, 16384, b>>>(map, from(0, 0));
    } else if (name == "constant") {
        // The map lies in constant memory, copied there.
        OK(cudaMemcpyToSymbol(constant_map, &map, sizeof map));
        OK(cudaDeviceSynchronize());
        constant<2><<<half, 32, 16384, a>>>(from(0, 0));
        blocks<2><<<half, 32, 16384, b>>>(map, from(0, HEIGHT / 2 - racy));
    } else if (name == "global") {
        // Two maps lie in global memory; the second one is of another tensor.
        alignas(64) CUtensorMap both[] = {same, apart};
        CUtensorMap *there;
        OK(cudaMalloc(&there, sizeof both));
        OK(cudaMemcpy(there, both, sizeof both, cudaMemcpyHostToDevice));
        OK(cudaDeviceSynchronize());
        blocks<2><<<half, 32, 16384, a>>>(map, from(0, 0));
        global<2><<<half, 32, 16384, b>>>(there + !racy, from(0, 0));
    } else if (name == "replaced") {
        // A map gets the address of the tensor, or keeps its own.
        if (racy)
            OK(((decltype(&cuTensorMapReplaceAddress))entry("cuTensorMapReplaceAddress"))(&apart, tensor));
        blocks<2><<<all, 32, 16384, a>>>(map, from(0, 0));
        blocks<2><<<all, 32, 16384, b>>>(apart, from(0, 0));
    } else if (name == "patched") {
        // The same by the bytes of the map, which no call tells.
        float *to = (racy ? tensor : other) + 4 * WIDTH;
        memcpy(&apart, &to, sizeof to);
        blocks<2><<<all, 32, 16384, a>>>(map, from(0, 0));
        blocks<2><<<half, 32, 16384, b>>>(apart, from(0, 0));
    } else if (name == "made" || name == "made_table") {
        // One output by maps that a kernel makes and by another map, or two outputs.
        float *out = racy ? tensor : other, *outs[] = {out, out}, **there;
        CUtensorMap *maps;
        OK(cudaMalloc(&maps, 2 * sizeof *maps));
        OK(cudaMalloc(&there, sizeof outs));
        OK(cudaMemcpy(there, outs, sizeof outs, cudaMemcpyHostToDevice));
        OK(cudaDeviceSynchronize());
        blocks<2><<<all, 32, 16384, a>>>(map, from(0, 0));
        if (name == "made")
            makes<false><<<2, 32, 16384, b>>>(map, out, nullptr, maps);
        else
            makes<true><<<2, 32, 16384, b>>>(map, nullptr, there, maps);
    } else if (name == "images") {
        columns<<<8, 32, 16384, a>>>(images_of(tensor));
        columns<<<8, 32, 16384, b>>>(images_of(racy ? tensor : other));
    } else if (name == "freed") {
        // The tensor of a map goes, and another one takes its place.
        float *pooled;
        OK(cudaMallocAsync(&pooled, WIDTH * HEIGHT * sizeof(float), a));
        OK(cudaStreamSynchronize(a));
        CUtensorMap map = map_of(pooled, WIDTH, HEIGHT);
        blocks<2><<<all, 32, 16384, b>>>(map, from(0, 0));
        if (!racy)
            OK(cudaStreamSynchronize(b));
        OK(cudaFreeAsync(pooled, a));
    } else {
        return 2;
    }
    OK(cudaDeviceSynchronize());
    return 0;
}

int main(int argc, char **argv) {
    encode = (decltype(&cuTensorMapEncodeTiled))entry("cuTensorMapEncodeTiled");
    std::string name = argc > 1 ? argv[1] : "random";
    auto number = [&](int k, int otherwise) { return argc > k ? atoi(argv[k]) : otherwise; };
    if (name == "random" || name == "aligned")
        return random_cases(number(2, 60), number(3, 1), name == "aligned");
    return two_streams(name, argc > 2 && argv[2] == std::string("racy"));
}
