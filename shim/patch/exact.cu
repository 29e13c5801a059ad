// The device side of exact mode: which bytes a launch reads, writes and updates atomically.
//
// NVIDIA's Sanitizer API calls the functions below before the memory instructions of patched kernels. They set one bit for each byte
// touched, in pages of 4096 bytes that a hash table finds; the host turns the bits into ranges when the launch has finished.
// Owns the layout of the table, which shim/src/exact/table.rs repeats. Does not know about launches, streams or allocations.
//
// A table is zeroed before each launch: zero is "empty" everywhere. Two levels: pages with one bit a byte, and, when those are used
// up, 2 MiB cells with the lowest and the highest byte; when those are used up too, one such pair for each kind.
//
// Compiled by scripts/patch with --compile-as-tools-patch.

#include <stdint.h>

#ifndef NESTED
#define NESTED __noinline__
#endif

enum Kind : uint32_t { READ = 0, WRITE = 1, ATOMIC = 2 };

constexpr uint32_t PAGE_BITS = 12;
constexpr uint32_t PAGE_WORDS = (1u << PAGE_BITS) / 32;
constexpr uint32_t CELL_BITS = 21;
constexpr uint32_t CELLS = 4096;
constexpr uint32_t NO_PAGE = 0xffffffffu;

// One place of the hash table: which page and kind, and where its bits are (number + 1; 0: not decided yet).
struct Place {
    unsigned long long key;
    uint32_t page;
    uint32_t unused;
};

// Lowest and highest byte touched; the lowest is kept inverted, so that zero is empty.
struct Span {
    unsigned long long key;
    unsigned long long inverted_low;
    unsigned long long high;
};

// Small launches are fetched in one piece: last keys, counters, first bits.
struct Counters {
    uint32_t used;      // pages asked for; more than capacity when they did not suffice
    uint32_t coarse;    // not 0: cells were used
    uint32_t coarsest;  // not 0: spans were used
    uint32_t unused;
    Span spans[3];
};

// Set by the host once; what it points to is zeroed before each launch.
struct Table {
    uint32_t places;    // a power of two
    uint32_t capacity;  // pages
    Place *place;
    unsigned long long *keys;  // of each page in use, in descending order: the first lies just before the counters
    uint32_t *bits;            // PAGE_WORDS for each page; the first lie just behind the counters
    Span *cells;
    Counters *counters;
};

// The result that lets the kernel go on.
constexpr int GO_ON = 0;

static __device__ __forceinline__ void stretch(Span *span, uint64_t low, uint64_t high) {
    atomicMax(&span->inverted_low, ~(unsigned long long)low);
    atomicMax(&span->high, (unsigned long long)high);
}

// No page is left: note the extent only.
static __device__ NESTED void touch_coarsely(Table *table, uint32_t kind, uint64_t low, uint64_t high) {
    const unsigned long long key = (low >> CELL_BITS) << 2 | (kind + 1);
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 40) & (CELLS - 1);
    *(volatile uint32_t *)&table->counters->coarse = 1;
    for (uint32_t tries = 0; tries < 64; tries++, at = (at + 1) & (CELLS - 1)) {
        Span *cell = &table->cells[at];
        unsigned long long have = *(volatile unsigned long long *)&cell->key;
        if (have == 0) {
            have = atomicCAS(&cell->key, 0ull, key);
        }
        if (have == 0 || have == key) {
            stretch(cell, low, high);
            return;
        }
    }
    *(volatile uint32_t *)&table->counters->coarsest = 1;
    stretch(&table->counters->spans[kind], low, high);
}

// The number of the page's bits, or NO_PAGE.
static __device__ NESTED uint32_t find_page(Table *table, uint32_t kind, uint64_t page) {
    const unsigned long long key = page << 2 | (kind + 1);
    const uint32_t mask = table->places - 1;
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & mask;
    for (uint32_t tries = 0; tries < 256;) {
        Place *place = &table->place[at];
        unsigned long long have = *(volatile unsigned long long *)&place->key;
        if (have == 0) {
            have = atomicCAS(&place->key, 0ull, key);
            if (have == 0) {
                // Ours: decide where the bits are, within this turn of the loop, so that lanes that wait for it get it.
                const uint32_t number = atomicAdd(&table->counters->used, 1u);
                uint32_t mine = NO_PAGE;
                if (number < table->capacity) {
                    table->keys[-(int64_t)number] = key;
                    mine = number + 1;
                }
                *(volatile uint32_t *)&place->page = mine;
                return mine == NO_PAGE ? NO_PAGE : number;
            }
        }
        if (have == key) {
            const uint32_t number = *(volatile uint32_t *)&place->page;
            if (number == 0) {
                continue;
            }
            return number == NO_PAGE ? NO_PAGE : number - 1;
        }
        at = (at + 1) & mask;
        tries++;
    }
    return NO_PAGE;
}

// Marks some of the 32 bytes at word * 32.
static __device__ __forceinline__ void touch_word(Table *table, uint32_t kind, uint64_t word, uint32_t bits) {
    const uint32_t number = find_page(table, kind, word >> (PAGE_BITS - 5));
    if (number == NO_PAGE) {
        const uint64_t base = word << 5;
        touch_coarsely(table, kind, base + (__ffs(bits) - 1), base + (32 - __clz(bits)));
        return;
    }
    uint32_t *at = &table->bits[(uint64_t)number * PAGE_WORDS + (word & (PAGE_WORDS - 1))];
    if ((*(volatile uint32_t *)at & bits) != bits) {
        atomicOr(at, bits);
    }
}

// One access of each active lane: size is at most 32 and a power of two, the address a multiple of it.
static __device__ __forceinline__ void touch(Table *table, uint32_t kind, uint64_t address, uint32_t size) {
    const uint64_t word = address >> 5;
    uint32_t bits = (size >= 32 ? 0xffffffffu : (1u << size) - 1) << (address & 31);
    // Lanes that touch the same 32 bytes merge their bits; `redux` is not allowed in patches. The exchange reaches only partners whose
    // number differs in one bit, so a lane whose bits have not all arrived at the first of its peers marks them itself.
    const uint32_t active = __activemask();
    const uint32_t peers = __match_any_sync(active, (unsigned long long)word);
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
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
    touch_word(table, kind, word, bits);
}

// A run of 16-byte blocks that all active lanes agree on: shared out among them.
static __device__ __forceinline__ void touch_blocks(Table *table, uint32_t kind, uint64_t address, uint32_t blocks) {
    const uint32_t active = __activemask();
    uint32_t below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    const uint64_t end = address + (uint64_t)blocks * 16;
    const uint32_t lanes = __popc(active);
    for (uint64_t word = (address >> 5) + __popc(active & below); word << 5 < end; word += lanes) {
        uint32_t bits = 0xffffffffu;
        if (word << 5 < address) {
            bits &= 0xffff0000u;
        }
        if ((word + 1) << 5 > end) {
            bits &= 0x0000ffffu;
        }
        touch_word(table, kind, word, bits);
    }
}

// The flags of sanitizer_patching.h.
constexpr uint32_t FLAG_READ = 1, FLAG_WRITE = 2, FLAG_SYSTEM_ATOMIC = 4, FLAG_PREFETCH = 8;

extern "C" __device__ __noinline__ int
streamsan_global(void *data, uint64_t pc, void *address, uint32_t size, uint32_t flags, const void *value) {
    if (data == nullptr || flags & FLAG_PREFETCH) {
        return GO_ON;
    }
    uint32_t kind = READ;
    if (flags & FLAG_SYSTEM_ATOMIC || (flags & (FLAG_READ | FLAG_WRITE)) == (FLAG_READ | FLAG_WRITE)) {
        kind = ATOMIC;
    } else if (flags & FLAG_WRITE) {
        kind = WRITE;
    }
    touch((Table *)data, kind, (uint64_t)address, size);
    return GO_ON;
}

extern "C" __device__ __noinline__ int streamsan_copy(void *data, uint64_t pc, void *from, uint32_t to, uint32_t size) {
    if (data != nullptr && from != nullptr) {
        touch((Table *)data, READ, (uint64_t)from, size);
    }
    return GO_ON;
}

extern "C" __device__ __noinline__ int
streamsan_bulk_load(void *data, uint64_t pc, uint64_t from, uint32_t to, uint32_t barrier, uint32_t blocks, uint32_t multicast) {
    if (data != nullptr) {
        touch_blocks((Table *)data, READ, from, blocks & 0xffff);
    }
    return GO_ON;
}

extern "C" __device__ __noinline__ int streamsan_bulk_store(void *data, uint64_t pc, uint64_t to, uint32_t from, uint32_t blocks) {
    if (data != nullptr) {
        touch_blocks((Table *)data, WRITE, to, blocks & 0xffff);
    }
    return GO_ON;
}

extern "C" __device__ __noinline__ int streamsan_bulk_reduce(void *data, uint64_t pc, uint64_t to, uint32_t from, uint32_t blocks) {
    if (data != nullptr) {
        touch_blocks((Table *)data, ATOMIC, to, blocks & 0xffff);
    }
    return GO_ON;
}
