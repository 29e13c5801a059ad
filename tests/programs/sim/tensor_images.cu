// Columns of images by tensor maps, in PTX for compute capability 9.0a: loads, stores and reductions,
// generated over types, ranks, channels, swizzles, corners, steps and offsets, against loops, and a
// digest of each: an H200's are in tensor_images.h200.txt. With an argument: a store that the hardware
// does not make, by a map whose box reaches behind the image.
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

static decltype(&cuTensorMapEncodeIm2col) encode;

struct Case {
    CUtensorMapDataType type;
    int way, element, rank, swizzle; // way 0: load, 1: store, 2: reduction
    uint64_t size[5], stride[5];     // Strides in bytes; the first is an element's.
    int lower[3], upper[3], channels, pixels, first[5], offset[3];
    uint32_t step[5];
    int row() const { return channels * element; }
    int pitch() const { return swizzle ? (row() + (16 << swizzle) - 1) / (16 << swizzle) * (16 << swizzle) : row(); }
    int bytes() const { return pitch() * pixels; }
};

// One kernel: fills shared memory from the buffer, and copies the column in or out. Of a load, shared
// memory goes back to the buffer, and a byte behind it says whether the bytes that came were counted.
static std::string text(const Case &c) {
    const auto list = [](const int *values, int count) {
        std::string all = "{";
        for (int i = 0; i < count; i++) all += (i ? ", " : "") + std::to_string(values[i]);
        return all + "}";
    };
    const auto loop = [&](const char *name, const char *from, const char *to) {
        const std::string turn = name;
        return "mov.u32 %r3, 0;\n" + turn + ":\nadd.u32 %r4, %r1, %r3;\ncvt.u64.u32 %rd4, %r3;\nadd.u64 %rd5, %rd3, %rd4;\n" + from + to +
               "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, " + std::to_string(c.bytes()) + ";\n@%p1 bra " + turn + ";\n";
    };
    const std::string dim = std::to_string(c.rank) + "d", at = list(c.first, c.rank);
    std::string out = ".version 8.6\n.target sm_90a\n.address_size 64\n"
                      ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 buffer) {\n"
                      ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<4>;\n"
                      ".shared .align 1024 .b8 tile[" + std::to_string(c.bytes()) + "];\n.shared .align 8 .b64 bar;\n"
                      "mov.b64 %rd1, map;\ncvta.param.u64 %rd2, %rd1;\nld.param.u64 %rd3, [buffer];\n"
                      "cvta.to.global.u64 %rd3, %rd3;\nmov.u32 %r1, tile;\nmov.u32 %r2, bar;\n" +
                      loop("fill", "ld.global.u8 %r5, [%rd5];\n", "st.shared.u8 [%r4], %r5;\n") +
                      "mbarrier.init.shared.b64 [%r2], 1;\nfence.proxy.async;\n";
    if (c.way == 0)
        out += "mbarrier.arrive.expect_tx.shared.b64 %rd6, [%r2], " + std::to_string(c.row() * c.pixels) + ";\n"
               "cp.async.bulk.tensor." + dim + ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd2, " + at + "], [%r2], " +
               list(c.offset, c.rank - 2) + ";\nmov.u32 %r6, 0;\nwait:\nmbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0;\n"
               "add.u32 %r6, %r6, 1;\nsetp.lt.and.u32 %p1, %r6, 1000000, !%p2;\n@%p1 bra wait;\nselp.u32 %r7, 1, 0, %p2;\n" +
               loop("copy", "ld.shared.u8 %r5, [%r4];\n", "st.global.u8 [%rd5], %r5;\n") + "st.global.u8 [%rd5+1], %r7;\n";
    else
        out += (c.way == 1 ? "cp.async.bulk.tensor." + dim + ".global.shared::cta.im2col_no_offs.bulk_group [%rd2, "
                           : "cp.reduce.async.bulk.tensor." + dim + ".global.shared::cta.add.im2col_no_offs.bulk_group [%rd2, ") + at + "], [%r1];\n"
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
    return out + "ret;\n}\n";
}

static uint64_t state = 88172645463325252u;
static int next(int below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int)(state % (uint64_t)below);
}

static Case made(int turn) {
    static const struct {
        CUtensorMapDataType type;
        int element;
    } TYPES[] = {{CU_TENSOR_MAP_DATA_TYPE_UINT8, 1}, {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2}, {CU_TENSOR_MAP_DATA_TYPE_INT32, 4}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4}};
    Case c = {};
    c.type = TYPES[turn % 4].type, c.element = TYPES[turn % 4].element, c.rank = 3 + turn / 4 % 3, c.swizzle = turn / 12 % 4;
    c.way = c.element < 4 ? next(2) : next(3);
    const int unit = 16 / c.element, spatial = c.rank - 2;
    c.channels = unit * (1 + next(c.swizzle ? 1 << c.swizzle : 4)), c.pixels = 1 + next(24);
    for (int axis = 0; axis < 5; axis++) c.size[axis] = c.step[axis] = 1;
    c.stride[0] = c.element;
    for (int axis = 0; axis < c.rank; axis++) {
        c.size[axis] = axis ? axis == c.rank - 1 ? 1 + next(4) : 4 + next(4) : 20 + next(60);
        if (axis) c.stride[axis] = (axis == 1 ? (c.size[0] * c.element + 15) / 16 * 16 : c.stride[axis - 1] * c.size[axis - 1]) + 16 * next(2);
    }
    c.first[0] = next((int)c.size[0]) / unit * unit - (c.way || next(4) ? 0 : unit);
    c.first[c.rank - 1] = next((int)c.size[c.rank - 1]);
    for (int i = 0; i < spatial; i++) {
        c.lower[i] = c.way ? next(2) : next(4) - 2, c.upper[i] = next(4) - 2;
        c.step[i + 1] = 1 + next(2), c.offset[i] = next(3);
        const int places = ((int)c.size[i + 1] - 1 + c.upper[i] - c.lower[i]) / (int)c.step[i + 1] + 1;
        c.first[i + 1] = c.lower[i] + next(places) * (int)c.step[i + 1];
    }
    return c;
}

// Whether the hardware stores the column.
static bool may_store(const Case &c) {
    bool may = true;
    for (int corner : c.upper) may = may && corner <= 0;
    return may;
}

// Whether the device did what loops do; prints the digest.
static bool ran(const Case &c, int turn) {
    const int bytes = c.bytes(), spatial = c.rank - 2, unit = 16 / c.element;
    const size_t room = (c.stride[c.rank - 1] * c.size[c.rank - 1] + 15) / 16 * 16;
    std::vector<uint8_t> tensor(room), buffer(bytes + 1, 171), found(c.way ? room : bytes + 1);
    for (auto &byte : tensor) byte = c.way == 2 ? 0 : next(256);
    if (c.way == 1)
        for (auto &byte : buffer) byte = next(256);
    for (int i = 0; c.way == 2 && i < bytes / 4; i++) {
        const int value = 1 + next(9);
        if (c.type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32) ((float *)buffer.data())[i] = value;
        else ((int *)buffer.data())[i] = value;
    }
    std::vector<uint8_t> expected = c.way ? tensor : buffer;
    if (!c.way) expected[bytes] = 1;
    const long end = c.way ? ((long)c.size[0] + unit - 1) / unit * unit : (long)c.size[0];
    int pixel[5];
    memcpy(pixel, c.first, sizeof pixel);
    for (int n = 0; n < c.pixels; n++) {
        long start = 0;
        bool inside = true;
        for (int axis = 1; axis < c.rank; axis++) {
            const long x = pixel[axis] + (axis <= spatial && !c.way ? c.offset[axis - 1] : 0);
            inside = inside && x >= 0 && x < (long)c.size[axis];
            start += x * (long)c.stride[axis];
        }
        for (int i = 0; i < c.channels; i++) {
            const long x = c.first[0] + i;
            const bool there = inside && x >= 0 && x < end;
            const int units[] = {0, 1, 3, 7};
            int place = n * c.pitch() + i * c.element;
            place ^= (place >> 7 & units[c.swizzle]) << 4;
            uint8_t *global = c.way ? &expected[0] + start + x * c.element : &tensor[0] + start + x * c.element;
            if (c.way == 2 && there) {
                if (c.type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32) *(float *)global += *(float *)&buffer[place];
                else *(int *)global += *(int *)&buffer[place];
            } else if (c.way == 1 && there) memcpy(global, &buffer[place], c.element);
            else if (!c.way && there) memcpy(&expected[place], global, c.element);
            else if (!c.way) memset(&expected[place], 0, c.element);
        }
        // The next pixel of the box, or the first one of the next image's.
        int axis = 1;
        for (; axis <= spatial; axis++) {
            pixel[axis] += (int)c.step[axis];
            if (pixel[axis] <= (int)c.size[axis] - 1 + c.upper[axis - 1]) break;
            pixel[axis] = c.lower[axis - 1];
        }
        if (axis > spatial) pixel[axis]++;
    }
    printf("%2d: way %d, %d bytes, rank %d, swizzle %d, row %d, %d pixels: ", turn, c.way, c.element, c.rank, c.swizzle, c.row(), c.pixels);
    fflush(stdout);
    void *on_device, *other;
    CHECK(cudaMalloc(&on_device, room));
    CHECK(cudaMalloc(&other, bytes + 1));
    CHECK(cudaMemcpy(on_device, tensor.data(), room, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(other, buffer.data(), bytes + 1, cudaMemcpyHostToDevice));
    alignas(64) CUtensorMap map;
    CHECK(encode(&map, c.type, c.rank, on_device, c.size, c.stride + 1, c.lower, c.upper, c.channels, c.pixels, c.step,
                 CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    cudaLibrary_t library;
    cudaKernel_t kernel;
    CHECK(cudaLibraryLoadData(&library, text(c).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cudaLibraryGetKernel(&kernel, library, "k"));
    void *args[] = {&map, &other};
    CHECK(cudaLaunchKernel((void *)kernel, dim3(1), dim3(1), args, 0, 0));
    if (c.way && !may_store(c)) return puts(cudaGetErrorName(cudaDeviceSynchronize())) != 0;
    CHECK(cudaMemcpy(found.data(), c.way ? on_device : other, found.size(), cudaMemcpyDeviceToHost));
    uint64_t digest = 14695981039346656037u;
    for (uint8_t byte : found) digest = (digest ^ byte) * 1099511628211u;
    printf("%016llx\n", (unsigned long long)digest);
    if (found != expected) {
        printf("   differs: first");
        for (int axis = 0; axis < c.rank; axis++) printf(" %d of %d by %d", c.first[axis], (int)c.size[axis], (int)c.step[axis]);
        for (int i = 0; i < spatial; i++) printf(", box %d %d offset %d", c.lower[i], c.upper[i], c.offset[i]);
        size_t at = 0;
        while (found[at] == expected[at]) at++;
        printf(", at %zu of %zu: %d, not %d\n", at, found.size(), found[at], expected[at]);
    }
    CHECK(cudaFree(on_device));
    CHECK(cudaFree(other));
    return found == expected;
}

int main(int argc, char **argv) {
    void *entry;
    cudaDriverEntryPointQueryResult status;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &entry, 12000, cudaEnableDefault, &status));
    encode = (decltype(encode))entry;
    int wrong = 0, compared = 0;
    for (int turn = 0; turn < 52; turn++) {
        state = 88172645463325252u + 7919u * (uint64_t)turn;
        for (int i = 0; i < 9; i++) next(2);
        const Case c = made(turn);
        if ((c.way && !may_store(c)) != (argc > 1)) continue;
        wrong += !ran(c, turn), compared++;
        if (argc > 1) return 0;
    }
    printf("%d comparisons, %d failed\n", compared, wrong);
    return wrong != 0;
}
