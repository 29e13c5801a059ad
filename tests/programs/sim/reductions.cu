// Bulk reductions from shared memory, generated: direction x operation x how their end is known.
// First argument: `racy` or `mended`. Each kernel is one form; prints how many forms ran and how
// many results were right. The markers name the lines that race.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define T (int)threadIdx.x
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
DEV unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV unsigned peer(const void* p, unsigned rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at(p)), "r"(rank)); return r; }
DEV void meet() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEV void fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
DEV void init(u64* b) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" :: "r"(at(b)) : "memory"); }
DEV void expect(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void wait(u64* b) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" :: "r"(at(b)) : "memory");
}

// An operation by its text, with the type of its elements.
#define OPERATION(name, type, text)                                                                                  \
    struct name {                                                                                                    \
        typedef type E;                                                                                              \
        DEV static void out(void* g, const void* s, int n) {                                                         \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." text " [%0], [%1], %2;\n"             \
                         "cp.async.bulk.commit_group;" :: "l"(g), "r"(at(s)), "r"(n) : "memory");                    \
        }                                                                                                            \
        DEV static void across(unsigned to, const void* s, int n, unsigned b) {                                      \
            asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." text       \
                         " [%0], [%1], %2, [%3];" :: "r"(to), "r"(at(s)), "r"(n), "r"(b) : "memory");                \
        }                                                                                                            \
    };
OPERATION(AddU, unsigned, "add.u32")
OPERATION(AddS, int, "add.s32")
OPERATION(MinS, int, "min.s32")
OPERATION(MaxU, unsigned, "max.u32")
OPERATION(Inc, unsigned, "inc.u32")
OPERATION(Dec, unsigned, "dec.u32")
OPERATION(And, unsigned, "and.b32")
OPERATION(Or, unsigned, "or.b32")
OPERATION(Xor, unsigned, "xor.b32")
OPERATION(AddL, u64, "add.u64")

enum { TARGET, TARGET_READ, SOURCE, ZEROED };

// To global memory. What is used: the target behind a wait, or behind one for the reads only; the
// source; the target as it was before.
template <class O, int USE, bool M> __global__ void out(typename O::E* sums, typename O::E* f) {
    typedef typename O::E E;
    __shared__ __align__(128) E tile[32];
    if (T < 32) tile[T] = (E)(T * 3 + 1);
    if (USE == ZEROED) {
        if (T < 32) sums[T] = (E)(T + 40); // zeroed: one
        if (M) fence();
        else asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    } else fence();
    __syncthreads();
    if (T == 0) {
        O::out(sums, tile, 32 * sizeof(E)); // target: one
        if (USE == SOURCE ? M : !M && USE == TARGET_READ) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        if (USE == ZEROED || USE != SOURCE && M) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    if (USE == SOURCE) {
        if (T < 32) tile[31 - T] = 7; // source: other
    } else if (T >= 32) f[T - 32] = sums[63 - T]; // target: other
    if (T == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// To shared memory: of the block itself, or of the other one of the cluster.
template <class O, bool OWN, bool M> __global__ void __cluster_dims__(2, 1, 1) across(typename O::E*, typename O::E* f) {
    typedef typename O::E E;
    __shared__ __align__(128) E tile[32], box[32];
    __shared__ u64 full;
    unsigned rank = blockIdx.x & 1, target = OWN ? 0 : 1;
    if (T == 0) init(&full);
    if (T < 32) box[T] = (E)(T + 40), tile[T] = (E)(T * 3 + 1);
    fence();
    meet();
    if (T == 0 && rank == target) expect(&full, 32 * sizeof(E));
    if (T == 0 && rank == 0) O::across(peer(box, target), tile, 32 * sizeof(E), peer(&full, target)); // across: one
    if (rank == target) {
        if (M || T == 0) wait(&full);
        if (T >= 32) f[T - 32] = box[63 - T]; // across: other
    }
    meet();
}

static int forms, right;
template <class E> static E expected(const char* op, E old, E value) {
    if (!strncmp(op, "Add", 3)) return old + value;
    if (!strncmp(op, "Min", 3)) return old < value ? old : value;
    if (!strncmp(op, "Max", 3)) return old > value ? old : value;
    if (!strcmp(op, "Inc")) return old >= value ? 0 : old + 1;
    if (!strcmp(op, "Dec")) return old == 0 || old > value ? value : old - 1;
    if (!strcmp(op, "And")) return old & value;
    if (!strcmp(op, "Or")) return old | value;
    return old ^ value;
}
template <class E> static void form(const char* op, bool reads, int blocks, void (*kernel)(E*, E*)) {
    E *sums, *f, host[32];
    for (int i = 0; i < 32; i++) host[i] = (E)(i + 40);
    cudaMalloc(&sums, sizeof host);
    cudaMalloc(&f, sizeof host);
    cudaMemcpy(sums, host, sizeof host, cudaMemcpyHostToDevice);
    kernel<<<blocks, 64>>>(sums, f);
    cudaError_t error = cudaDeviceSynchronize();
    if (error) { printf("%s: %s\n", op, cudaGetErrorName(error)); exit(1); }
    if (reads) cudaMemcpy(host, f, sizeof host, cudaMemcpyDeviceToHost);
    bool same = true;
    for (int i = 0; i < 32 && reads; i++) same &= host[i] == expected<E>(op, (E)(31 - i + 40), (E)((31 - i) * 3 + 1));
    forms++;
    right += same;
    cudaFree(sums);
    cudaFree(f);
}
template <class O, bool M> static void forms_of(const char* op) {
    typedef typename O::E E;
    form<E>(op, true, 1, out<O, TARGET, M>);
    form<E>(op, true, 1, out<O, TARGET_READ, M>);
    form<E>(op, false, 1, out<O, SOURCE, M>);
    form<E>(op, true, 1, out<O, ZEROED, M>);
    form<E>(op, true, 2, across<O, true, M>);
    form<E>(op, true, 2, across<O, false, M>);
}
template <bool M> static void all() {
    forms_of<AddU, M>("AddU");
    forms_of<AddS, M>("AddS");
    forms_of<MinS, M>("MinS");
    forms_of<MaxU, M>("MaxU");
    forms_of<Inc, M>("Inc");
    forms_of<Dec, M>("Dec");
    forms_of<And, M>("And");
    forms_of<Or, M>("Or");
    forms_of<Xor, M>("Xor");
    forms_of<AddL, M>("AddL");
}
int main(int argc, char** argv) {
    if (argc > 1 && !strcmp(argv[1], "mended")) all<true>();
    else all<false>();
    printf("%d forms, %d right\n", forms, right);
    return 0;
}
