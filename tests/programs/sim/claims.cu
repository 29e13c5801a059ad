// Two kernels on two streams that nothing orders, which touch an element where a compare-and-swap has claimed a word:
// hash tables, visited sets. By each form of table, word and test, and each mistake. Each case uses memory of a size
// that no other has. For each of them, the program prints the size, what excuses the pair ("claims";
// "locks" where the word is given back; or "race": nothing), and the case.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

constexpr int SLOTS = 256, KEYS = 64;
typedef unsigned long long Long;
static cudaStream_t a, b;
static int cases;

enum How { CLAIMER, RETURNS, FLAG, NUMBER, EVERYONE, LOSER, EITHER, LOOKS, EMPTIES, SWAPS_BACK, UPDATES, NARROW, HOWS };
static const char *const hows[] = {"the claimer", "others return", "a flag", "its number", "everyone", "the loser", "claimer or any", "a swap that is a load",
                                   "emptied by a store", "emptied by a swap", "updated by a swap", "swapped within the block"};
enum Empty { ZERO, ONES, GIVEN, EMPTIES_OF };
static const char *const empties[] = {"zero", "ones", "given"};

// One slot of some other memory for each key.
template <int H, int E, class W> __global__ void once(W *words, int *owner, const W *keys, W given, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    W key = keys[i], empty = E == ZERO ? W(0) : E == ONES ? ~W(0) : given;
    int slot = (i * 7 + 3) % SLOTS;
    W old;
    if (H == NARROW) old = atomicCAS_block(&words[slot], empty, key);
    else if (H == LOOKS) old = atomicCAS(&words[slot], empty, empty);
    else if (H == UPDATES) {
        W seen = words[slot];
        do old = seen, seen = atomicCAS(&words[slot], old, old + key);
        while (seen != old);
        empty = seen;
    } else old = atomicCAS(&words[slot], empty, key);
    if (H == RETURNS) {
        if (old != empty) return;
        owner[slot] = i;
    } else if (H == NUMBER) {
        int mine = old == empty ? i + 1 : 0;
        if (mine) owner[slot] = mine;
    } else if (H == EVERYONE) owner[slot] = i;
    else if (H == LOSER) {
        if (old != empty) owner[slot] = i;
    } else if (H == EITHER) {
        if (old == empty || i % 3) owner[slot] = i;
    } else if (H == SWAPS_BACK) {
        // A lock: without the fences its next holder need not see the element.
        if (old == empty) __threadfence(), owner[slot] = i, __threadfence();
    } else if (old == empty) owner[slot] = i;
    if (H == EMPTIES) words[(i & 1) ? slot : slot + 1] = empty;
    if (H == SWAPS_BACK) atomicCAS(&words[slot], key, empty);
}

// Probes until it finds the key or a free slot.
template <int H, int E, class W> __global__ void probes(W *words, int *owner, const W *keys, W given, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    W key = keys[i], empty = E == ZERO ? W(0) : E == ONES ? ~W(0) : given;
    int slot = (i * 7 + 3) % SLOTS;
    bool mine = false;
    for (int probe = 0; probe < SLOTS; probe++, slot = (slot + 1) % SLOTS) {
        W old = H == NARROW ? atomicCAS_block(&words[slot], empty, key) : atomicCAS(&words[slot], empty, H == LOOKS ? empty : key);
        if (old != empty && old != key) continue;
        if (H == FLAG) {
            mine = old == empty;
            break;
        }
        if (H == EVERYONE || (H == LOSER ? old != empty : old == empty)) owner[slot] = i;
        if (H == EMPTIES) words[slot] = empty;
        return;
    }
    if (H == FLAG && mine) owner[slot] = i;
}

// Looks at so many slots one after the other, in code without a loop (0: as many as are given, four at a turn).
template <int H, int TURNS, class W> __global__ void unrolled(W *words, int *owner, const W *keys, int turns, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int slot = 0;
    auto is_claimed = [&](int turn) {
        slot = (i * 7 + 3 + turn) % SLOTS;
        return (H == NARROW ? atomicCAS_block(&words[slot], W(0), keys[i]) : atomicCAS(&words[slot], W(0), keys[i])) == W(0);
    };
    if (TURNS == 0) {
#pragma unroll 4
        for (int turn = 0; turn < turns; turn++)
            if (is_claimed(turn)) {
                owner[slot] = i;
                return;
            }
    }
#pragma unroll
    for (int turn = 0; turn < TURNS; turn++)
        if (is_claimed(turn)) {
            owner[slot] = i;
            return;
        }
    if (H == EVERYONE) owner[slot] = i;
}

template <class W> struct Slot { W word; int owner, count; };

template <class W> struct Case {
    W *words, *others, *keys;
    int *owner;
    size_t size;
    Case() : size(sizeof(Slot<W>) * SLOTS + 512 * ++cases) {
        W host[2 * KEYS];
        for (int i = 0; i < 2 * KEYS; i++) host[i] = W(i + 1);
        for (W **p : {&words, &others}) {
            CHECK(cudaMalloc(p, sizeof(W) * (SLOTS + 1)));
            CHECK(cudaMemset(*p, 0, sizeof(W) * (SLOTS + 1)));
        }
        CHECK(cudaMalloc(&owner, size));
        CHECK(cudaMemset(owner, 0, size));
        CHECK(cudaMalloc(&keys, sizeof host));
        CHECK(cudaMemcpy(keys, host, sizeof host, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
    }
    void end(const char *verdict, const char *form, const char *how, int empty, const char *tables) {
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        printf("%zu %s %s of %zu bytes, %s, %s, %s\n", size, verdict, form, sizeof(W), how, empties[empty], tables);
    }
};

template <int H, int E, class W, bool PROBES, bool ONE> __attribute__((noinline)) void tables_of() {
    Case<W> m;
    W *second = ONE ? m.words : m.others;
    if (PROBES) {
        probes<H, E><<<KEYS / 32, 32, 0, a>>>(m.words, m.owner, m.keys, W(7), KEYS);
        probes<H, E><<<KEYS / 32, 32, 0, b>>>(second, m.owner, m.keys + KEYS, W(7), KEYS);
    } else {
        once<H, E><<<KEYS / 32, 32, 0, a>>>(m.words, m.owner, m.keys, W(7), KEYS);
        once<H, E><<<KEYS / 32, 32, 0, b>>>(second, m.owner, m.keys + KEYS, W(7), KEYS);
    }
    m.end(H == SWAPS_BACK ? "locks" : ONE && H < EVERYONE ? "claims" : "race", PROBES ? "probes" : "once", hows[H], E, ONE ? "one table" : "two tables");
}
template <int H, int E, class W, bool PROBES> void tables() {
    tables_of<H, E, W, PROBES, true>();
    if constexpr (H < EVERYONE) tables_of<H, E, W, PROBES, false>();
}
template <int H, int TURNS, class W, bool ONE> __attribute__((noinline)) void unrolled_of() {
    Case<W> m;
    unrolled<H, TURNS><<<KEYS / 32, 32, 0, a>>>(m.words, m.owner, m.keys, 6, KEYS);
    unrolled<H, TURNS><<<KEYS / 32, 32, 0, b>>>(ONE ? m.words : m.others, m.owner, m.keys + KEYS, 6, KEYS);
    const char *form = TURNS == 0 ? "by fours" : TURNS == 2 ? "two probes" : "six probes";
    m.end(ONE && H == CLAIMER ? "claims" : "race", form, hows[H], ZERO, ONE ? "one table" : "two tables");
}
template <int TURNS, class W> void all_unrolled() {
    unrolled_of<CLAIMER, TURNS, W, true>(), unrolled_of<CLAIMER, TURNS, W, false>();
    unrolled_of<EVERYONE, TURNS, W, true>(), unrolled_of<NARROW, TURNS, W, true>();
}
template <int E, class W> void all() {
    tables<CLAIMER, E, W, false>(), tables<RETURNS, E, W, false>(), tables<NUMBER, E, W, false>(), tables<EVERYONE, E, W, false>();
    tables<LOSER, E, W, false>(), tables<EITHER, E, W, false>(), tables<LOOKS, E, W, false>(), tables<EMPTIES, E, W, false>();
    tables<SWAPS_BACK, E, W, false>(), tables<UPDATES, E, W, false>(), tables<NARROW, E, W, false>();
    tables<CLAIMER, E, W, true>(), tables<FLAG, E, W, true>(), tables<EVERYONE, E, W, true>(), tables<LOSER, E, W, true>();
    tables<LOOKS, E, W, true>(), tables<EMPTIES, E, W, true>(), tables<NARROW, E, W, true>();
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    all<ZERO, int>(), all<ONES, unsigned>(), all<GIVEN, int>();
    all_unrolled<0, int>(), all_unrolled<2, int>(), all_unrolled<6, int>();
    all<ZERO, Long>(), all<ONES, Long>(), all<GIVEN, Long>();
    all_unrolled<0, Long>(), all_unrolled<2, Long>(), all_unrolled<6, Long>();
    puts("done");
}
