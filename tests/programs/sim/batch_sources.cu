// Copies of batches whose sources the host changes: by each kind of memory, each order in which the source
// may be accessed, each function, and each thing that the host does before the copy is known to be over. For
// each case the program prints the parameters of the function that makes it, and when that is a race:
// "never", "documented" (the driver reads the source in the call, and CUDA does not promise it) or "always".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <sys/mman.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Memory { HEAP, STACK, STATIC, MAPPING, PINNED, MEMORIES };
enum Order { STREAM = 1, DURING_CALL, ANY };
enum Deed { NOTHING, LOAD, STORE_BEFORE, STORE_AFTER_WAIT, STORE, STORE_SAME, GIVE_BACK, STORE_BETWEEN, DEEDS };
enum Function { LINEAR, BOX, FUNCTIONS };

// A small block, which free() writes into.
constexpr size_t SIZE = 1000, MAPPED = 1 << 17;
static char global[SIZE];
static cudaStream_t stream;
static char *target;
static volatile int sink;

static void enqueue(int function, char *from, size_t size, int order) {
    auto access = (cudaMemcpySrcAccessOrder)order;
    if (function == LINEAR) {
        void *dst[] = {target, target + size / 2};
        const void *src[] = {from, from + size / 2};
        size_t sizes[] = {size / 2, size / 2}, first[] = {0};
        cudaMemcpyAttributes attributes = {};
        attributes.srcAccessOrder = access;
        CHECK(cudaMemcpyBatchAsync(dst, src, sizes, 2, &attributes, first, 1, stream));
    } else {
        cudaMemcpy3DBatchOp op = {};
        op.src.type = op.dst.type = cudaMemcpyOperandTypePointer;
        op.src.op.ptr.ptr = from, op.dst.op.ptr.ptr = target;
        op.extent = make_cudaExtent(size / 4, 2, 2);
        op.srcAccessOrder = access;
        CHECK(cudaMemcpy3DBatchAsync(1, &op, 0, stream));
    }
}

template <int M, int O, int D, int F> __attribute__((noinline)) void test() {
    char local[SIZE], *from = local;
    size_t size = M == MAPPING ? MAPPED : SIZE;
    if (M == HEAP) from = (char *)malloc(size);
    if (M == STATIC) from = global;
    if (M == MAPPING) from = (char *)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (M == PINNED) CHECK(cudaMallocHost(&from, size));
    memset(from, 1, size);
    if (D == STORE_BEFORE) memset(from, 2, size);
    enqueue(F, from, size, O);
    bool gone = false;
    if (D == LOAD) for (size_t i = 0; i < size; i++) sink = from[i];
    if (D == STORE) memset(from + 7, 3, 100);
    if (D == STORE_SAME) memset(from, 1, size);
    if (D == GIVE_BACK && M == HEAP) free(from), gone = true;
    if (D == GIVE_BACK && M == MAPPING) munmap(from, size), gone = true;
    // Before the next use of the same bytes, instead of before the wait.
    if (D == STORE_BETWEEN) memset(from, 3, size), enqueue(F, from, size, O);
    CHECK(cudaStreamSynchronize(stream));
    if (D == STORE_AFTER_WAIT) memset(from, 3, size);
    if (M == HEAP && !gone) free(from);
    if (M == MAPPING && !gone) munmap(from, size);
    if (M == PINNED) CHECK(cudaFreeHost(from));
    // A store of the same bytes is seen in memory that is watched in place.
    bool changes = D == STORE || D == STORE_BETWEEN || (D == STORE_SAME && M == PINNED) || (D == GIVE_BACK && (M == HEAP || M == MAPPING));
    bool later = O == ANY || (O == STREAM && M == PINNED);
    printf("%d,%d,%d,%d %s\n", M, O, D, F, !changes || O == DURING_CALL ? "never" : later ? "always" : "documented");
}

template <int M, int O, int D> void functions() { test<M, O, D, LINEAR>(), test<M, O, D, BOX>(); }
template <int M, int D = 0> void deeds() {
    functions<M, STREAM, D>(), functions<M, DURING_CALL, D>(), functions<M, ANY, D>();
    if constexpr (D + 1 < DEEDS) deeds<M, D + 1>();
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&target, MAPPED));
    deeds<HEAP>(), deeds<STACK>(), deeds<STATIC>(), deeds<MAPPING>(), deeds<PINNED>();
    puts("done");
    return 0;
}
