// Copies of tiles by tensor maps, in PTX for compute capability 9.0. Without arguments: loads and
// stores of tiles, generated over types, ranks, boxes, steps, swizzles and places inside and outside
// the tensor, against loops, and a digest of each: an H200's are in tensor_maps.h200.txt. With a number from 0 to 3: a tile that the hardware does not copy, or (3)
// one that it does. With "load", "store" or "reduce" and "racy" or "event": what another
// stream does to the tensor is unordered, or ordered.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>
#include <vector>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int code_ = (int)(call);                                                                                      \
        if (code_ != 0) {                                                                                             \
            printf("line %d: %d\n", __LINE__, code_);                                                                 \
            exit(3);                                                                                                  \
        }                                                                                                             \
    } while (0)

typedef decltype(&cuTensorMapEncodeTiled) Encode;
static Encode encode;
static cudaStream_t streams[2];

// One kernel: loads a tile and copies shared memory out, or copies in and stores the tile.
// Of a loaded tile `counted` bytes are expected; a byte behind the `bytes` says whether these were all.
static std::string text(int way, int rank, const int *first, int bytes, int counted) {
    std::string at = "{";
    for (int axis = 0; axis < rank; axis++) at += (axis ? ", " : "") + std::string("%r1") + std::to_string(axis);
    at += "}";
    std::string out = ".version 8.6\n.target sm_90\n.address_size 64\n"
                      ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 buffer) {\n"
                      ".reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n.reg .pred %p<4>;\n"
                      ".shared .align 1024 .b8 tile[" + std::to_string(bytes) + "];\n.shared .align 8 .b64 bar;\n"
                      "mov.b64 %rd1, map;\ncvta.param.u64 %rd2, %rd1;\nld.param.u64 %rd3, [buffer];\n"
                      "cvta.to.global.u64 %rd3, %rd3;\nmov.u32 %r1, tile;\nmov.u32 %r2, bar;\n";
    for (int axis = 0; axis < rank; axis++)
        out += "mov.s32 %r1" + std::to_string(axis) + ", " + std::to_string(first[axis]) + ";\n";
    // Shared memory from and to the buffer, byte by byte.
    // Before a load it is filled.
    const auto loop = [&](const char *name, const char *from, const char *to) {
        const std::string turn = name;
        return "mov.u32 %r3, 0;\n" + turn + ":\nadd.u32 %r4, %r1, %r3;\ncvt.u64.u32 %rd4, %r3;\nadd.u64 %rd5, %rd3, %rd4;\n" + from + to +
               "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, " + std::to_string(bytes) + ";\n@%p1 bra " + turn + ";\n";
    };
    std::string dim = std::to_string(rank) + "d";
    if (way == 0) {
        out += loop("fill", "mov.u32 %r5, 171;\n", "st.shared.u8 [%r4], %r5;\n") +
               "mbarrier.init.shared.b64 [%r2], 1;\nfence.proxy.async;\n"
               "mbarrier.arrive.expect_tx.shared.b64 %rd6, [%r2], " + std::to_string(counted) + ";\n"
               "cp.async.bulk.tensor." + dim + ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, " + at +
               "], [%r2];\nwait:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra wait;\n" +
               loop("copy", "ld.shared.u8 %r5, [%r4];\n", "st.global.u8 [%rd5], %r5;\n") +
               // The next phase ends with its arrival, unless more bytes came than were expected.
               "mbarrier.arrive.shared.b64 %rd6, [%r2];\nmov.u32 %r6, 0;\nagain:\nmbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1;\n"
               "selp.u32 %r5, 1, 0, %p2;\nadd.u32 %r6, %r6, 1;\nsetp.lt.and.u32 %p1, %r6, 100, !%p2;\n@%p1 bra again;\n"
               "st.global.u8 [%rd5+1], %r5;\n";
    } else {
        std::string store = way == 1 ? "cp.async.bulk.tensor." + dim + ".global.shared::cta.bulk_group [%rd2, " + at + "], [%r1];\n"
                                     : "cp.reduce.async.bulk.tensor." + dim + ".global.shared::cta.add.bulk_group [%rd2, " + at + "], [%r1];\n";
        out += loop("copy", "ld.global.u8 %r5, [%rd5];\n", "st.shared.u8 [%r4], %r5;\n") + "fence.proxy.async;\n" + store +
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
    }
    return out + "ret;\n}\n";
}

struct Case {
    CUtensorMapDataType type;
    int element, rank, swizzle;
    uint64_t size[3], stride[3]; // Strides in bytes; the first is an element's.
    uint32_t box[3], step[3];
    int first[3];
};

static void launch(int way, const Case &c, const CUtensorMap &map, void *buffer, int bytes, int counted, cudaStream_t stream) {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    CHECK(cudaLibraryLoadData(&library, text(way, c.rank, c.first, bytes, counted).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cudaLibraryGetKernel(&kernel, library, "k"));
    void *args[] = {(void *)&map, &buffer};
    CHECK(cudaLaunchKernel((void *)kernel, dim3(1), dim3(1), args, 0, stream));
}

static int encoded(const Case &c, void *tensor, CUtensorMap *map) {
    return encode(map, c.type, c.rank, tensor, c.size, c.stride + 1, c.box, c.step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  (CUtensorMapSwizzle)c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static uint64_t state = 88172645463325252u;
static unsigned next(unsigned below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}

static int compared, wrong;

static void all() {
    static const struct {
        CUtensorMapDataType type;
        int element;
    } TYPES[] = {{CU_TENSOR_MAP_DATA_TYPE_UINT8, 1},   {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2}, {CU_TENSOR_MAP_DATA_TYPE_INT32, 4},
                 {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8},  {CU_TENSOR_MAP_DATA_TYPE_UINT64, 8}};
    for (int turn = 0; turn < 144; turn++) {
        Case c = {};
        c.type = TYPES[turn % 6].type, c.element = TYPES[turn % 6].element, c.rank = 1 + turn / 6 % 3, c.swizzle = turn / 18 % 4;
        const int unit = 16 / c.element;
        const int way = next(3) == 0 || c.element < 4 ? next(2) : next(3);
        for (int axis = 0; axis < 3; axis++) c.size[axis] = c.box[axis] = c.step[axis] = 1;
        c.box[0] = unit * (1 + next(c.swizzle ? 1 << c.swizzle : 4));
        c.stride[0] = c.element;
        for (int axis = 0; axis < c.rank; axis++) {
            c.size[axis] = axis ? 3 + next(12) : 20 + next(60);
            if (axis) c.box[axis] = 1 + next(6), c.step[axis] = 1 + next(2);
            if (axis) c.stride[axis] = (axis == 1 ? (c.size[0] * c.element + 15) / 16 * 16 : c.stride[1] * c.size[1]) + 16 * next(3);
            // The hardware copies no tile that begins within 16 bytes, and writes none from a
            // negative coordinate on.
            c.first[axis] = (int)next(c.size[axis] + 4) - 4;
            if (!axis) c.first[0] = (c.first[0] + 4) / unit * unit - (way ? 0 : unit);
            if (way && c.first[axis] < 0) c.first[axis] = 0;
        }
        uint32_t count[3];
        int elements = 1;
        for (int axis = 0; axis < 3; axis++) elements *= count[axis] = (c.box[axis] + c.step[axis] - 1) / c.step[axis];
        // Rows begin at multiples of the swizzle's width.
        const int counted = elements * c.element, row = count[0] * c.element, width = c.swizzle ? 16 << c.swizzle : 1;
        const int pitch = (row + width - 1) / width * width, bytes = pitch * (elements / count[0]);
        size_t room = c.rank == 1 ? c.size[0] * c.element : c.stride[c.rank - 1] * c.size[c.rank - 1];
        room = (room + 15) / 16 * 16;
        std::vector<uint8_t> tensor(room), buffer(bytes + 1), found(way ? room : bytes + 1);
        // Small numbers: sums of any type are exact.
        for (auto &byte : tensor) byte = way == 2 ? 0 : next(256);
        for (auto &byte : buffer) byte = way == 2 ? 0 : next(256);
        if (way == 2) {
            for (int i = 0; i < bytes / c.element; i++) {
                const int value = 1 + next(9);
                if (c.type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32) ((float *)buffer.data())[i] = value;
                else if (c.type == CU_TENSOR_MAP_DATA_TYPE_FLOAT64) ((double *)buffer.data())[i] = value;
                else memcpy(&buffer[i * c.element], &value, sizeof value);
            }
        }
        std::vector<uint8_t> expected = way ? tensor : std::vector<uint8_t>(bytes, 171);
        if (way == 0) expected.push_back(1);
        // A store ends with a whole unit of 16 bytes.
        const long end = way ? (c.size[0] + unit - 1) / unit * unit : c.size[0];
        for (int i = 0; i < elements; i++) {
            const int n[3] = {i % (int)count[0], i / (int)count[0] % (int)count[1], i / (int)count[0] / (int)count[1]};
            long at = 0;
            bool inside = true;
            for (int axis = 0; axis < 3; axis++) {
                const long x = c.first[axis] + (long)n[axis] * (axis ? c.step[axis] : 1);
                inside = inside && x >= 0 && x < (axis ? (long)c.size[axis] : end);
                at += x * (long)c.stride[axis];
            }
            int place = n[0] * c.element + i / (int)count[0] * pitch;
            const int units[] = {0, 1, 3, 7};
            place ^= (place >> 7 & units[c.swizzle]) << 4;
            if (way && inside) memcpy(&expected[at], &buffer[place], c.element);
            else if (!way && inside) memcpy(&expected[place], &tensor[at], c.element);
            else if (!way) memset(&expected[place], 0, c.element);
        }
        void *on_device, *other;
        CHECK(cudaMalloc(&on_device, room));
        CHECK(cudaMalloc(&other, bytes + 1));
        CHECK(cudaMemcpy(on_device, tensor.data(), room, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(other, buffer.data(), bytes + 1, cudaMemcpyHostToDevice));
        alignas(64) CUtensorMap map;
        CHECK(encoded(c, on_device, &map));
        launch(way, c, map, other, bytes, counted, 0);
        CHECK(cudaMemcpy(found.data(), way ? on_device : other, found.size(), cudaMemcpyDeviceToHost));
        compared++;
        uint64_t digest = 14695981039346656037u;
        for (uint8_t byte : found) digest = (digest ^ byte) * 1099511628211u;
        printf("%2d: way %d, %d bytes, rank %d, swizzle %d, row %d: %016llx\n", turn, way, c.element, c.rank, c.swizzle, row, (unsigned long long)digest);
        if (found != expected && wrong++ < 5)
            printf("turn %d: way %d type %d rank %d swizzle %d box %u %u %u first %d %d %d differ\n", turn, way, c.type, c.rank,
                   c.swizzle, c.box[0], c.box[1], c.box[2], c.first[0], c.first[1], c.first[2]);
        CHECK(cudaFree(on_device));
        CHECK(cudaFree(other));
    }
    // What no driver takes.
    Case c = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, 2, 0, {64, 8, 1}, {4, 256, 0}, {32, 4, 1}, {1, 1, 1}, {0, 0, 0}};
    alignas(64) CUtensorMap map;
    void *tensor = (void *)0x10000;
    if (encoded(c, tensor, &map)) wrong++;
    for (int how = 0; how < 7; how++) {
        Case bad = c;
        if (how == 0) bad.rank = 6;
        if (how == 1) bad.stride[1] = 20;
        if (how == 2) bad.box[1] = 257;
        if (how == 3) bad.step[1] = 9;
        if (how == 4) bad.box[0] = 3;
        if (how == 5) bad.swizzle = 1;
        if (how == 6) bad.size[0] = 0;
        if (!encoded(bad, tensor, &map)) wrong++, printf("taken: %d\n", how);
    }
    if (!encoded(c, (void *)0x10008, &map)) wrong++;
    printf("%d comparisons, %d failed\n", compared, wrong);
}

// Tiles that the hardware does not copy: a load or a store that begins within 16 bytes, and a store
// from a negative coordinate on.
static void illegal(int which) {
    Case c = {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 2, 0, {64, 8, 1}, {4, 256, 0}, {16, 4, 1}, {1, 1, 1}, {which < 2 ? 2 : 16, which == 2 ? -1 : 2, 0}};
    char *tensor, *buffer;
    CHECK(cudaMalloc(&tensor, 64 * 8 * 4));
    CHECK(cudaMalloc(&buffer, 257));
    CHECK(cudaMemset(buffer, 0, 256));
    alignas(64) CUtensorMap map;
    CHECK(encoded(c, tensor, &map));
    launch(which == 0 ? 0 : 1, c, map, buffer, 256, 256, 0);
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
}
static void race(const char *what, const char *how) {
    Case c = {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 2, 0, {64, 8, 1}, {4, 256, 0}, {16, 4, 1}, {1, 1, 1}, {16, 2, 0}};
    const int bytes = 16 * 4 * 4, way = !strcmp(what, "load") ? 0 : !strcmp(what, "store") ? 1 : 2;
    char *tensor, *buffer;
    CHECK(cudaMalloc(&tensor, 64 * 8 * 4));
    CHECK(cudaMalloc(&buffer, bytes + 1));
    CHECK(cudaMemset(tensor, 0, 64 * 8 * 4));
    CHECK(cudaMemset(buffer, 1, bytes));
    CHECK(cudaDeviceSynchronize());
    alignas(64) CUtensorMap map;
    CHECK(encoded(c, tensor, &map));
    launch(way, c, map, buffer, bytes, bytes, streams[0]);
    if (!strcmp(how, "event")) {
        cudaEvent_t event;
        CHECK(cudaEventCreate(&event));
        CHECK(cudaEventRecord(event, streams[0]));
        CHECK(cudaStreamWaitEvent(streams[1], event, 0));
    }
    // The second row of the tile.
    CHECK(cudaMemsetAsync(tensor + 3 * 256 + 64, 2, 64, streams[1]));
    CHECK(cudaDeviceSynchronize());
    puts("done");
}

int main(int argc, char **argv) {
    void *found;
    cudaDriverEntryPointQueryResult status;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
    encode = (Encode)found;
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (argc > 2) race(argv[1], argv[2]);
    else if (argc > 1) illegal(atoi(argv[1]));
    else all();
    return wrong != 0;
}
