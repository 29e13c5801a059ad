// The device side of exact mode: which bytes a launch reads, writes and updates atomically.
//
// NVIDIA's Sanitizer API calls the functions below before the memory instructions of patched kernels. They note which bytes are touched,
// in pages of 4096 bytes that a hash table finds; the host turns that into ranges when the launch has finished.
// Owns the layout of the table, which shim/src/exact/device_table.rs repeats: the names of the functions end in its version. Does not know about
// launches, streams or allocations.
//
// A table is zeroed before each launch: zero is "empty" everywhere. Three levels: one bit for each sector of 32 bytes that an instruction
// of one warp has touched as a whole (most are), one bit for each byte of the others, and, when all pages are used up, 2 MiB cells with
// the lowest and the highest byte; when those are used up too, one such pair for each kind.
//
// What is looked up is read through the first-level cache: while a launch runs, nothing in its table ever changes but from empty to
// something, so what is old can only be too empty, and whoever finds it so asks again beyond that cache.
//
// Compiled by scripts/patch with --compile-as-tools-patch.

#include <stdint.h>

#ifndef NESTED
#define NESTED __noinline__
#endif

// What is done; with lower bits of the number of a graph's kernel above these bits it is the lower part of a key.
enum Kind : uint32_t { READ = 1, WRITE = 2, ATOMIC = 3 };
constexpr uint32_t KIND_BITS = 2, GRID_BITS = 16, WHAT_BITS = KIND_BITS + GRID_BITS;

constexpr uint32_t PAGE_BITS = 12;
constexpr uint32_t CELL_BITS = 21;
constexpr uint32_t SECTOR_BITS = 5;

// What a table consists of, in this order, counted from its address.
constexpr uint32_t PLACES = 1u << 18;  // of the hash table
constexpr uint32_t PAGES = 1u << 17;   // that may be in use
constexpr uint32_t SMALL = 64;         // of which the first lie together, so that small launches are fetched in one piece
constexpr uint32_t CELLS = 4096;
constexpr uint64_t PLACE = 16, KEY = 8, SECTORS = 16, BYTES = 512, COUNTERS = 128;
constexpr uint64_t COUNTERS_AT = PLACES * PLACE + PAGES * KEY;  // keys of pages, in descending order, end here
constexpr uint64_t SECTORS_AT = COUNTERS_AT + COUNTERS;
constexpr uint64_t BYTES_AT = SECTORS_AT + SMALL * SECTORS;
constexpr uint64_t MORE_SECTORS_AT = BYTES_AT + SMALL * BYTES;
constexpr uint64_t MORE_BYTES_AT = MORE_SECTORS_AT + (PAGES - SMALL) * SECTORS;
constexpr uint64_t CELLS_AT = MORE_BYTES_AT + (PAGES - SMALL) * BYTES;

// Where the number of a page is not decided yet; that there is none left.
constexpr uint32_t NO_PAGE = 0xffffffffu;
// In the key of a page: some sector has been touched in part.
constexpr unsigned long long IN_PART = 1ull << 63;

// One place of the hash table: which page and kind, its number + 1, and whether the key has IN_PART.
struct Place {
    unsigned long long key;
    uint32_t page;
    uint32_t in_part;
};

// Lowest and highest byte touched; the lowest is kept inverted, so that zero is empty.
struct Span {
    unsigned long long key;
    unsigned long long inverted_low;
    unsigned long long high;
};

struct Counters {
    uint32_t used;      // pages asked for; more than PAGES when they did not suffice
    uint32_t coarse;    // not 0: cells were used
    uint32_t coarsest;  // not 0: spans were used
    uint32_t unused;
    Span spans[3];
};

// A page as it was found.
struct Page {
    Place *place;
    uint32_t number;
    uint32_t in_part;
};

// The result that lets the kernel go on.
constexpr int GO_ON = 0;

static __device__ __forceinline__ Counters *counters(uint64_t table) { return (Counters *)(table + COUNTERS_AT); }

// Instructions of global memory only: generic ones would first be tried on shared memory.
static __device__ __forceinline__ void load(const Place *from, unsigned long long &key, unsigned long long &rest) {
    asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(key), "=l"(rest) : "l"(from) : "memory");
}
static __device__ __forceinline__ void load_anew(const Place *from, unsigned long long &key, unsigned long long &rest) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(key), "=l"(rest) : "l"(from) : "memory");
}
static __device__ __forceinline__ unsigned long long swap_if_empty(unsigned long long *at, unsigned long long with) {
    unsigned long long was;
    asm volatile("atom.global.cas.b64 %0, [%1], 0, %2;" : "=l"(was) : "l"(at), "l"(with) : "memory");
    return was;
}
static __device__ __forceinline__ uint32_t count(uint32_t *at) {
    uint32_t was;
    asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(was) : "l"(at) : "memory");
    return was;
}
static __device__ __forceinline__ void put(uint32_t *at, uint32_t value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}
static __device__ __forceinline__ void add(unsigned long long *at, unsigned long long bits) {
    asm volatile("red.global.or.b64 [%0], %1;" : : "l"(at), "l"(bits) : "memory");
}
static __device__ __forceinline__ void raise(unsigned long long *at, unsigned long long value) {
    asm volatile("red.global.max.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

static __device__ __forceinline__ void mark(unsigned long long *at, unsigned long long bits) {
    unsigned long long have;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(have) : "l"(at) : "memory");
    if ((have & bits) != bits) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(have) : "l"(at) : "memory");
        if ((have & bits) != bits) {
            add(at, bits);
        }
    }
}
static __device__ __forceinline__ void mark(uint32_t *at, uint32_t bits) {
    uint32_t have;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(have) : "l"(at) : "memory");
    if ((have & bits) != bits) {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(have) : "l"(at) : "memory");
        if ((have & bits) != bits) {
            asm volatile("red.global.or.b32 [%0], %1;" : : "l"(at), "r"(bits) : "memory");
        }
    }
}

static __device__ __forceinline__ void stretch(Span *span, uint64_t low, uint64_t high) {
    raise(&span->inverted_low, ~low);
    raise(&span->high, high);
}

// No page is left: note the extent only, of bytes in one cell.
static __device__ NESTED void touch_coarsely(uint64_t table, uint32_t what, uint64_t low, uint64_t high) {
    const unsigned long long key = (low >> CELL_BITS) << WHAT_BITS | what;
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 40) & (CELLS - 1);
    put(&counters(table)->coarse, 1);
    for (uint32_t tries = 0; tries < 64; tries++, at = (at + 1) & (CELLS - 1)) {
        Span *cell = (Span *)(table + CELLS_AT) + at;
        const unsigned long long have = swap_if_empty(&cell->key, key);
        if (have == 0 || have == key) {
            stretch(cell, low, high);
            return;
        }
    }
    put(&counters(table)->coarsest, 1);
    stretch(&counters(table)->spans[(what & ((1 << KIND_BITS) - 1)) - 1], low, high);
}

// The page with this address / 4096; its number is NO_PAGE when none is left.
static __device__ __forceinline__ Page find_page(uint64_t table, uint32_t what, uint64_t page) {
    const unsigned long long key = page << WHAT_BITS | what;
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 40) & (PLACES - 1);
    for (uint32_t tries = 0; tries < 256;) {
        Place *place = (Place *)table + at;
        unsigned long long have, rest;
        load(place, have, rest);
        if (have == 0 || (have == key && (uint32_t)rest == 0)) {
            load_anew(place, have, rest);
        }
        if (have == 0) {
            have = swap_if_empty(&place->key, key);
            rest = 0;
            if (have == 0) {
                // Ours: decide on its number, within this turn of the loop, so that lanes that wait for it get it.
                const uint32_t number = count(&counters(table)->used);
                const bool room = number < PAGES;
                if (room) {
                    // Not a store: somebody else may add IN_PART first.
                    add((unsigned long long *)(table + COUNTERS_AT) - 1 - number, key);
                }
                put(&place->page, room ? number + 1 : NO_PAGE);
                return Page{place, room ? number : NO_PAGE, 0};
            }
        }
        if (have == key) {
            const uint32_t number = (uint32_t)rest;
            if (number != 0) {
                return Page{place, number == NO_PAGE ? NO_PAGE : number - 1, (uint32_t)(rest >> 32)};
            }
            continue;
        }
        at = (at + 1) & (PLACES - 1);
        tries++;
    }
    return Page{nullptr, NO_PAGE, 0};
}

// Marks some bytes of a sector of that page.
static __device__ __forceinline__ void touch_part(uint64_t table, Page page, uint32_t sector, uint32_t bits) {
    const uint64_t at = page.number < SMALL ? BYTES_AT + page.number * BYTES : MORE_BYTES_AT + (page.number - SMALL) * BYTES;
    mark((uint32_t *)(table + at) + sector, bits);
    if (page.in_part == 0) {
        add((unsigned long long *)(table + COUNTERS_AT) - 1 - page.number, IN_PART);
        put(&page.place->in_part, 1);
    }
}

// Marks whole sectors of that page: those of a mask, of the first or the second 64.
static __device__ __forceinline__ void touch_whole(uint64_t table, Page page, uint32_t half, unsigned long long mask) {
    const uint64_t at = page.number < SMALL ? SECTORS_AT + page.number * SECTORS : MORE_SECTORS_AT + (page.number - SMALL) * SECTORS;
    mark((unsigned long long *)(table + at) + half, mask);
}

// Marks the bytes from low on and before high, by this lane alone.
static __device__ NESTED void touch_run(uint64_t table, uint32_t what, uint64_t low, uint64_t high) {
    while (low < high) {
        const uint64_t border = (low | 2047) + 1;
        const uint64_t end = border < high ? border : high;
        const Page page = find_page(table, what, low >> PAGE_BITS);
        if (page.number == NO_PAGE) {
            touch_coarsely(table, what, low, end);
            low = end;
            continue;
        }
        const uint32_t from = (uint32_t)((low + 31) >> SECTOR_BITS), to = (uint32_t)(end >> SECTOR_BITS);
        if (from < to) {
            touch_whole(table, page, (uint32_t)(low >> 11) & 1, (~0ull >> (64 - (to - from))) << (from & 63));
        }
        // A sector before, and one behind, or one around all of it.
        const uint32_t first = (uint32_t)low & 31, last = (uint32_t)end & 31;
        const uint32_t behind = ~0u << first, before = (1u << last) - 1;
        if (first != 0) {
            touch_part(table, page, (uint32_t)(low >> SECTOR_BITS) & 127, from > to ? behind & before : behind);
        }
        if (last != 0 && from <= to) {
            touch_part(table, page, to & 127, before);
        }
        low = end;
    }
}

// One access of each active lane, no two of them side by side.
static __device__ NESTED void touch_each(uint64_t table, uint32_t what, uint64_t address, uint32_t size, uint32_t active) {
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const uint64_t sector = address >> SECTOR_BITS;
    uint32_t bits = (size >= 32 ? 0xffffffffu : (1u << size) - 1) << (address & 31);
    const uint32_t peers = __match_any_sync(active, (unsigned long long)sector);
    if (__any_sync(active, (peers & (peers - 1)) != 0)) {
        // Lanes that touch the same sector merge their bits; `redux` is not allowed in patches. The exchange reaches only partners whose
        // number differs in one bit, so a lane whose bits have not all arrived at the first of its peers marks them itself.
#pragma unroll
        for (uint32_t step = 1; step < 32; step <<= 1) {
            const uint32_t theirs = __shfl_xor_sync(active, bits, step);
            if (peers >> (lane ^ step) & 1) {
                bits |= theirs;
            }
        }
        const uint32_t first = __ffs(peers) - 1;
        const uint32_t gathered = __shfl_sync(active, bits, first);
        if (lane != first && (bits & ~gathered) == 0) {
            return;
        }
    }
    const Page page = find_page(table, what, sector >> (PAGE_BITS - SECTOR_BITS));
    if (page.number == NO_PAGE) {
        const uint64_t start = sector << SECTOR_BITS;
        touch_coarsely(table, what, start + (__ffs(bits) - 1), start + (32 - __clz(bits)));
    } else if (bits == 0xffffffffu) {
        touch_whole(table, page, (uint32_t)sector >> 6 & 1, 1ull << (sector & 63));
    } else {
        touch_part(table, page, (uint32_t)sector & 127, bits);
    }
}

// One access of each active lane: size is at most 32 and a power of two, the address a multiple of it.
static __device__ NESTED void touch(uint64_t table, uint32_t what, uint64_t address, uint32_t size) {
    // Exchanges among lanes are dear in patches, where the compiler can not tell who is active; the first lane of a run speaks for all.
    const uint32_t active = __activemask();
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const uint64_t row = address - (uint64_t)lane * size;
    const uint32_t front = __ffs(active) - 1;
    uint32_t bytes;
    int same;
    __match_all_sync(active, (unsigned long long)row, &same);
    if (same && (active >> front & ((active >> front) + 1)) == 0) {
        // Side by side.
        if (lane != front) {
            return;
        }
        bytes = __popc(active) * size;
    } else {
        __match_all_sync(active, (unsigned long long)address, &same);
        if (same) {
            // All at one place.
            if (lane != front) {
                return;
            }
            bytes = size;
        } else {
            // Runs of lanes side by side, if only of one.
            const uint32_t peers = __match_any_sync(active, (unsigned long long)row);
            if (__any_sync(active, (peers & (peers - 1)) != 0)) {
                if (lane > 0 && peers >> (lane - 1) & 1) {
                    return;
                }
                bytes = (__ffs(~(peers >> lane)) - 1) * size;
            } else {
                return touch_each(table, what, address, size, active);
            }
        }
    }
    const uint32_t from = (uint32_t)address & 31;
    const uint64_t end = address + bytes;
    const bool inside = from + bytes <= 32;
    if (!inside && (((from | bytes) & 31) != 0 || (address ^ (end - 1)) >> 11 != 0)) {
        return touch_run(table, what, address, end);
    }
    const Page page = find_page(table, what, address >> PAGE_BITS);
    if (page.number == NO_PAGE) {
        return touch_coarsely(table, what, address, end);
    }
    const uint32_t sector = (uint32_t)(address >> SECTOR_BITS) & 127;
    if (inside && bytes < 32) {
        touch_part(table, page, sector, ((1u << bytes) - 1) << from);
    } else {
        touch_whole(table, page, sector >> 6, (~0ull >> (64 - bytes / 32)) << (sector & 63));
    }
}

// A run of 16-byte blocks that all active lanes agree on: shared out among them.
static __device__ __forceinline__ void touch_blocks(uint64_t table, uint32_t what, uint64_t address, uint32_t blocks) {
    const uint32_t active = __activemask();
    uint32_t below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    const uint64_t end = address + (uint64_t)blocks * 16;
    const uint64_t share = 2048, lanes = __popc(active);
    for (uint64_t at = (address & ~(share - 1)) + __popc(active & below) * share; at < end; at += lanes * share) {
        touch_run(table, what, at < address ? address : at, at + share < end ? at + share : end);
    }
}

// A table's address is even; 1 is added to it where kernels that a graph launches are told apart, by the numbers of their grids.
static __device__ __forceinline__ uint64_t table_of(void *data) { return (uint64_t)data & ~(uint64_t)1; }
static __device__ __forceinline__ uint32_t what_of(void *data) {
    if (((uint64_t)data & 1) == 0) {
        return 0;
    }
    uint64_t grid;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
    return (uint32_t)grid << KIND_BITS & ((1 << WHAT_BITS) - 1);
}

// The flags of sanitizer_patching.h.
constexpr uint32_t FLAG_READ = 1, FLAG_WRITE = 2, FLAG_SYSTEM_ATOMIC = 4, FLAG_PREFETCH = 8;

extern "C" __device__ __noinline__ int
streamsan_global_2(void *data, uint64_t pc, void *address, uint32_t size, uint32_t flags, const void *value) {
    if (data == nullptr || flags & FLAG_PREFETCH) {
        return GO_ON;
    }
    uint32_t kind = READ;
    if (flags & FLAG_SYSTEM_ATOMIC || (flags & (FLAG_READ | FLAG_WRITE)) == (FLAG_READ | FLAG_WRITE)) {
        kind = ATOMIC;
    } else if (flags & FLAG_WRITE) {
        kind = WRITE;
    }
    touch(table_of(data), kind | what_of(data), (uint64_t)address, size);
    return GO_ON;
}

extern "C" __device__ __noinline__ int streamsan_copy_2(void *data, uint64_t pc, void *from, uint32_t to, uint32_t size) {
    if (data != nullptr && from != nullptr) {
        touch(table_of(data), READ | what_of(data), (uint64_t)from, size);
    }
    return GO_ON;
}

extern "C" __device__ __noinline__ int
streamsan_bulk_load_2(void *data, uint64_t pc, uint64_t from, uint32_t to, uint32_t barrier, uint32_t blocks, uint32_t multicast) {
    if (data != nullptr) {
        touch_blocks(table_of(data), READ | what_of(data), from, blocks & 0xffff);
    }
    return GO_ON;
}

extern "C" __device__ __noinline__ int streamsan_bulk_store_2(void *data, uint64_t pc, uint64_t to, uint32_t from, uint32_t blocks) {
    if (data != nullptr) {
        touch_blocks(table_of(data), WRITE | what_of(data), to, blocks & 0xffff);
    }
    return GO_ON;
}

extern "C" __device__ __noinline__ int streamsan_bulk_reduce_2(void *data, uint64_t pc, uint64_t to, uint32_t from, uint32_t blocks) {
    if (data != nullptr) {
        touch_blocks(table_of(data), ATOMIC | what_of(data), to, blocks & 0xffff);
    }
    return GO_ON;
}
