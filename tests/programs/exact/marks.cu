// The device side of exact mode by itself: warps of many shapes touch memory through shim/patch/exact.cu, and what their table holds must be
// those bytes and no others. Prints a line for each shape. Runs on the simulated GPU too.
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>
#include <cuda_runtime.h>
#include "../../../shim/patch/exact.cu"

constexpr uint64_t SIZE = CELLS_AT + CELLS * sizeof(Span);
struct Access { uint64_t address; uint32_t size; };

// Lanes without an access (size 0) take no part.
__global__ void go(void *table, const Access *accesses, uint32_t flags) {
    const Access a = accesses[blockIdx.x * blockDim.x + threadIdx.x];
    if (a.size != 0) {
        streamsan_global_2(table, 0, (void *)a.address, a.size, flags, nullptr);
    }
}
__global__ void blocks(void *table, uint64_t address, uint32_t count) {
    if (threadIdx.x % 3 != 1) {
        streamsan_bulk_store_2(table, 0, address, 0, count);
    }
}

static char *table;
static std::vector<char> host(SIZE);
template <class T> static const T *at(uint64_t offset) { return (const T *)(host.data() + offset); }

// The bytes that the table holds, with their kinds.
static std::set<std::pair<uint64_t, int>> touched() {
    cudaMemcpy(host.data(), table, SIZE, cudaMemcpyDeviceToHost);
    std::set<std::pair<uint64_t, int>> all;
    const uint32_t used = at<Counters>(COUNTERS_AT)->used;
    for (uint32_t n = 0; n < used; n++) {
        const unsigned long long key = *at<unsigned long long>(COUNTERS_AT - 8 * (n + 1));
        const uint64_t base = (key & ~IN_PART) >> WHAT_BITS << 12;
        const int kind = (int)(key & ((1 << WHAT_BITS) - 1));
        const auto *sectors = at<unsigned long long>(n < SMALL ? SECTORS_AT + n * SECTORS : MORE_SECTORS_AT + (n - SMALL) * SECTORS);
        const auto *bytes = at<uint32_t>(n < SMALL ? BYTES_AT + n * BYTES : MORE_BYTES_AT + (n - SMALL) * BYTES);
        for (int i = 0; i < 4096; i++) {
            const bool in_part = bytes[i / 32] >> (i % 32) & 1;
            if (in_part && !(key & IN_PART)) {
                printf("page %llx has bytes and does not say so\n", (unsigned long long)base);
            }
            if (in_part || sectors[i / 2048] >> (i / 32 % 64) & 1) {
                all.insert({base + i, kind});
            }
        }
    }
    return all;
}

static int bad = 0;
static void check(const char *name, const std::vector<Access> &accesses, uint32_t flags = FLAG_WRITE) {
    const int kind = (flags == FLAG_READ ? READ : flags == FLAG_WRITE ? WRITE : ATOMIC);
    std::set<std::pair<uint64_t, int>> want;
    for (const Access &a : accesses) {
        for (uint32_t i = 0; i < a.size; i++) {
            want.insert({a.address + i, kind});
        }
    }
    Access *device;
    cudaMalloc(&device, accesses.size() * sizeof(Access));
    cudaMemcpy(device, accesses.data(), accesses.size() * sizeof(Access), cudaMemcpyHostToDevice);
    cudaMemset(table, 0, SIZE);
    go<<<(unsigned)accesses.size() / 32, 32>>>(table, device, flags);
    const auto error = cudaDeviceSynchronize();
    const bool right = error == cudaSuccess && touched() == want;
    bad += !right;
    printf("%s %s: %zu bytes %s\n", right ? "right" : "WRONG", name, want.size(), error ? cudaGetErrorString(error) : "");
    cudaFree(device);
}

int main() {
    if (cudaMalloc(&table, SIZE)) {
        return printf("no memory\n"), 2;
    }
    const uint64_t base = 0x7f1234560000ull;
    std::vector<Access> some;
    auto warp = [&](auto address, auto size) {
        for (int lane = 0; lane < 32; lane++) {
            some.push_back({base + (uint64_t)address(lane), (uint32_t)size(lane)});
        }
    };
    auto shape = [&](const char *name, auto address, auto size, uint32_t flags = FLAG_WRITE) {
        some.clear();
        warp(address, size);
        check(name, some, flags);
    };
    for (int size = 1; size <= 32; size *= 2) {
        auto all = [=](int) { return size; };
        printf("size %d\n", size);
        shape("row", [=](int l) { return l * size; }, all);
        shape("row across pages", [=](int l) { return 4096 - 8 * size + l * size; }, all, FLAG_READ);
        shape("row off a sector", [=](int l) { return 3 * size + l * size; }, all);
        shape("row of some", [=](int l) { return 2048 - 5 * size + l * size; }, [=](int l) { return l < 27 ? size : 0; });
        shape("row of a middle", [=](int l) { return l * size; }, [=](int l) { return l > 3 && l < 20 ? size : 0; });
        shape("row with holes", [=](int l) { return l * size; }, [=](int l) { return l % 5 ? size : 0; });
        shape("one place", [=](int) { return 64; }, all, FLAG_READ | FLAG_WRITE);
        shape("one lane", [=](int l) { return l * 4096; }, [=](int l) { return l == 17 ? size : 0; });
        shape("backwards", [=](int l) { return (31 - l) * size; }, all);
        shape("every other", [=](int l) { return 2 * l * size; }, all);
        shape("tile", [=](int l) { return l / 8 * 1024 + l % 8 * size; }, all);
        shape("two rows", [=](int l) { return (l < 11 ? 0 : 40000) + l * size; }, all);
        shape("scatter", [=](int l) { return l * 7919 % 64 * 131072 + l * size; }, all);
    }
    // More pages than lie together, and all shapes at once.
    unsigned seed = 1;
    auto next = [&](unsigned n) { return (seed = seed * 1664525 + 1013904223) / 65536 % n; };
    some.clear();
    for (int w = 0; w < 300; w++) {
        const int size = 1 << next(6), far = next(1 << 10), how = next(4), holes = next(3);
        warp([&](int l) { return (uint64_t)far * 1024 + (how == 0 ? l * size : how == 1 ? l * size * 3 : how == 2 ? next(512) * 32 : 96); },
             [&](int) { return holes && next(4) == 0 ? 0 : size; });
    }
    check("everything", some);
    for (unsigned count : {1u, 5u, 257u, 1000u}) {
        cudaMemset(table, 0, SIZE);
        blocks<<<1, 32>>>(table, base + 0x7f0, count);
        cudaDeviceSynchronize();
        const auto have = touched();
        const bool right = have.size() == count * 16ull && have.begin()->first == base + 0x7f0 && have.rbegin()->first == base + 0x7f0 + count * 16 - 1;
        bad += !right;
        printf("%s %u blocks\n", right ? "right" : "WRONG", count);
    }
    printf("%s\n", bad ? "FAILED" : "OK");
    return bad != 0;
}
