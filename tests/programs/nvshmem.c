/* Puts and gets of NVSHMEM beside other work, on two streams. The first word says which; with a second one the streams are in order, by an
 * event or by a signal.
 *   put      memory is filled that a put sends
 *   remote   a put writes memory of the other element, which is read
 *   get      memory of the other element is filled that a get fetches
 *   into     a get writes memory that is read
 *   signal   a put to this element, and a read behind a wait for its signal
 *   early    the signal is set before the put; with a second word, behind it
 *   broadcast, others' (of another root: what it would send is filled, which is no race), gathered, exchanged, reduced   a collective, and
 *            a fill of what it sends; landed: a read of the last byte that it fills; untouched: a fill of what no element sends
 *   typed, sized, one, double   a put of floats, a get of words of 64 bits, and values that the call brings; what each writes is read
 *   stepped  every second word is put, and filled; between: the words between them are filled, which is no race
 *   scattered   a reduction, of which each element gets a part, and a fill of the last byte that it reads
 *   waited   as signal, by a wait for any word
 *   hosts    the host puts what a stream fills (in order: behind a wait of the host); fetched: it gets what a stream reads
 *   begun, begun_get   the host begins a put or a get, and a stream fills or reads (in order: behind quiet); fenced: a fence ends nothing
 *   met      as begun, behind a barrier; meets: barriers on two streams order nothing between these
 *   blocked, blocked_part, blocked_all   the hosts reduce, scatter or exchange what a stream fills (in order: behind a wait of the host);
 *            blocked_into: they gather to where a stream reads; blocked_root: they send what another element has, which is no race
 *   counted, counted_real   the host updates a word that a stream fills (in order: likewise); fetched_word: it fetches one
 *   counted_both   the host updates a word that a stream signals in, which is no race
 *   nowhere  a put to an element whose memory this process cannot reach: what it reads is filled */
#include "common.h"

void *nvshmem_malloc(size_t);
void *nvshmem_ptr(const void *, int);
void nvshmemx_putmem_on_stream(void *, const void *, size_t, int, CUstream);
void nvshmemx_putmem_nbi_on_stream(void *, const void *, size_t, int, CUstream);
void nvshmemx_getmem_on_stream(void *, const void *, size_t, int, CUstream);
void nvshmemx_getmem_nbi_on_stream(void *, const void *, size_t, int, CUstream);
void nvshmemx_putmem_signal_on_stream(void *, const void *, size_t, uint64_t *, uint64_t, int, int, CUstream);
void nvshmemx_putmem_signal_nbi_on_stream(void *, const void *, size_t, uint64_t *, uint64_t, int, int, CUstream);
void nvshmemx_signal_op_on_stream(uint64_t *, uint64_t, int, int, CUstream);
void nvshmemx_signal_wait_until_on_stream(uint64_t *, int, uint64_t, CUstream);

int nvshmemx_broadcastmem_on_stream(int, void *, const void *, size_t, int, CUstream);
int nvshmemx_fcollectmem_on_stream(int, void *, const void *, size_t, CUstream);
int nvshmemx_alltoallmem_on_stream(int, void *, const void *, size_t, CUstream);
int nvshmemx_float_sum_reducescatter_on_stream(int, float *, const float *, size_t, CUstream);
void nvshmemx_float_put_on_stream(float *, const float *, size_t, int, CUstream);
void nvshmemx_get64_on_stream(void *, const void *, size_t, int, CUstream);
void nvshmemx_int_p_on_stream(int *, int, int, CUstream);
void nvshmemx_double_p_on_stream(double *, double, int, CUstream);
void nvshmemx_int_iput_on_stream(int *, const int *, ptrdiff_t, ptrdiff_t, size_t, int, CUstream);
void nvshmemx_uint64_wait_until_on_stream(uint64_t *, int, uint64_t, CUstream);
void nvshmem_putmem(void *, const void *, size_t, int);
void nvshmem_putmem_nbi(void *, const void *, size_t, int);
void nvshmem_getmem(void *, const void *, size_t, int);
void nvshmem_double_get_nbi(double *, const double *, size_t, int);
int nvshmem_float_sum_reduce(int, float *, const float *, size_t);
int nvshmem_int32_xor_reducescatter(int, int *, const int *, size_t);
int nvshmem_broadcastmem(int, void *, const void *, size_t, int);
int nvshmem_fcollectmem(int, void *, const void *, size_t);
int nvshmem_double_alltoall(int, double *, const double *, size_t);
void nvshmem_uint64_atomic_add(uint64_t *, uint64_t, int);
uint64_t nvshmem_uint64_atomic_fetch(const uint64_t *, int);
float nvshmemx_float_atomic_fetch_add(float *, float, int);
void nvshmem_quiet(void);
void nvshmem_fence(void);
void nvshmem_barrier_all(void);
void nvshmemx_barrier_all_on_stream(CUstream);
int nvshmemx_float_sum_reduce_on_stream(int, float *, const float *, size_t, CUstream);

enum { N = 4096, SET = 9, AT_LEAST = 5 };

static CUstream a, b;
static CUevent done;
static int ordered;

static CUdeviceptr at(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

/* What follows on b comes behind what is on a. */
static void order(void) {
    if (!ordered) return;
    CHECK(cuEventRecord(done, a));
    CHECK(cuStreamWaitEvent(b, done, 0));
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    CUdeviceptr other;
    attach();
    ordered = argc > 2;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&done, 2));
    CHECK(cuMemAlloc_v2(&other, N));
    char *x = nvshmem_malloc(N), *y = nvshmem_malloc(N);
    uint64_t *signal = nvshmem_malloc(8);
    CHECK(cuMemsetD8Async(at(signal), 0, 8, a));
    CHECK(cuCtxSynchronize());
    if (!strcmp(how, "put") || !strcmp(how, "nowhere")) {
        CHECK(cuMemsetD8Async(at(x), 1, N, a));
        order();
        if (*how == 'p') nvshmemx_putmem_on_stream(y, x, N, 1, b);
        else nvshmemx_putmem_nbi_on_stream(y, x, N, 2, b);
    } else if (!strcmp(how, "broadcast") || !strcmp(how, "others'")) {
        CHECK(cuMemsetD8Async(at(x), 1, N, a));
        order();
        REQUIRE(!nvshmemx_broadcastmem_on_stream(0, y, x, N, *how == 'o', b));
    } else if (!strcmp(how, "gathered") || !strcmp(how, "untouched")) {
        CHECK(cuMemsetD8Async(at(x) + (*how == 'u' ? N / 2 : 0), 1, N / 2, a));
        order();
        REQUIRE(!nvshmemx_fcollectmem_on_stream(0, y, x, N / 2, b));
    } else if (!strcmp(how, "exchanged")) {
        CHECK(cuMemsetD8Async(at(x) + N - 1, 1, 1, a));
        order();
        REQUIRE(!nvshmemx_alltoallmem_on_stream(0, y, x, N / 2, b));
    } else if (!strcmp(how, "reduced")) {
        CHECK(cuMemsetD8Async(at(x) + N - 1, 1, 1, a));
        order();
        REQUIRE(!nvshmemx_float_sum_reduce_on_stream(0, (float *)y, (float *)x, N / sizeof(float), b));
    } else if (!strcmp(how, "typed")) {
        nvshmemx_float_put_on_stream((float *)y, (float *)x, N / 4, 1, a);
        order();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(nvshmem_ptr(y, 1)) + N - 1, 1, b));
    } else if (!strcmp(how, "sized")) {
        nvshmemx_get64_on_stream(y, x, N / 8, 1, a);
        order();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y) + N - 1, 1, b));
    } else if (!strcmp(how, "one")) {
        nvshmemx_int_p_on_stream((int *)y, 7, 1, a);
        order();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(nvshmem_ptr(y, 1)) + 3, 8, b));
    } else if (!strcmp(how, "double")) {
        nvshmemx_double_p_on_stream((double *)y, 1.5, 1, a);
        order();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(nvshmem_ptr(y, 1)) + 7, 8, b));
    } else if (!strcmp(how, "stepped") || !strcmp(how, "between")) {
        CHECK(cuMemsetD8Async(at(x) + (*how == 's' ? 8 : 4), 1, 4, a));
        order();
        nvshmemx_int_iput_on_stream((int *)y, (int *)x, 1, 2, 16, 1, b);
    } else if (!strcmp(how, "scattered")) {
        CHECK(cuMemsetD8Async(at(x) + N - 1, 1, 1, a));
        order();
        REQUIRE(!nvshmemx_float_sum_reducescatter_on_stream(0, (float *)y, (float *)x, N / 8, b));
    } else if (!strcmp(how, "waited")) {
        nvshmemx_putmem_signal_on_stream(y, x, N, signal, 3, SET, 0, a);
        if (ordered) nvshmemx_uint64_wait_until_on_stream(signal, AT_LEAST, 3, b);
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y), N, b));
    } else if (!strcmp(how, "hosts")) {
        CHECK(cuMemsetD8Async(at(x), 1, N, a));
        if (ordered) CHECK(cuStreamSynchronize(a));
        nvshmem_putmem(y, x, N, 1);
    } else if (!strcmp(how, "fetched")) {
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y), N, a));
        if (ordered) CHECK(cuStreamSynchronize(a));
        nvshmem_getmem(y, x, N, 1);
    } else if (!strcmp(how, "begun") || !strcmp(how, "fenced") || !strcmp(how, "met")) {
        nvshmem_putmem_nbi(y, x, N, 1);
        if (*how == 'f') nvshmem_fence();
        if (ordered && *how == 'm') nvshmem_barrier_all();
        else if (ordered) nvshmem_quiet();
        CHECK(cuMemsetD8Async(at(x), 1, N, a));
        nvshmem_quiet();
    } else if (!strcmp(how, "begun_get")) {
        nvshmem_double_get_nbi((double *)y, (double *)x, N / 8, 1);
        if (ordered) nvshmem_quiet();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y) + N - 1, 1, a));
        nvshmem_quiet();
    } else if (!strcmp(how, "blocked") || !strcmp(how, "blocked_part") || !strcmp(how, "blocked_all") || !strcmp(how, "blocked_root")) {
        CHECK(cuMemsetD8Async(at(x) + N - 1, 1, 1, a));
        if (ordered) CHECK(cuStreamSynchronize(a));
        if (!strcmp(how, "blocked")) REQUIRE(!nvshmem_float_sum_reduce(0, (float *)y, (float *)x, N / 4));
        if (!strcmp(how, "blocked_part")) REQUIRE(!nvshmem_int32_xor_reducescatter(0, (int *)y, (int *)x, N / 8));
        if (!strcmp(how, "blocked_all")) REQUIRE(!nvshmem_double_alltoall(0, (double *)y, (double *)x, N / 16));
        if (!strcmp(how, "blocked_root")) REQUIRE(!nvshmem_broadcastmem(0, y, x, N, 1));
    } else if (!strcmp(how, "blocked_into")) {
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y) + N - 1, 1, a));
        if (ordered) CHECK(cuStreamSynchronize(a));
        REQUIRE(!nvshmem_fcollectmem(0, y, x, N / 2));
    } else if (!strcmp(how, "counted") || !strcmp(how, "fetched_word") || !strcmp(how, "counted_real")) {
        CHECK(cuMemsetD8Async(at(nvshmem_ptr(y, 1)), 1, 8, a));
        if (ordered) CHECK(cuStreamSynchronize(a));
        if (!strcmp(how, "counted")) nvshmem_uint64_atomic_add((uint64_t *)y, 1, 1);
        else if (*how == 'f') REQUIRE(nvshmem_uint64_atomic_fetch((uint64_t *)y, 1) == 5);
        else REQUIRE(nvshmemx_float_atomic_fetch_add((float *)y + 1, 2, 1) == 2);
    } else if (!strcmp(how, "counted_both")) {
        nvshmemx_signal_op_on_stream(signal, 1, SET, 1, a);
        nvshmem_uint64_atomic_add(signal, 1, 1);
    } else if (!strcmp(how, "meets")) {
        CHECK(cuMemsetD8Async(at(x), 1, N, a));
        nvshmemx_barrier_all_on_stream(a);
        order();
        nvshmemx_barrier_all_on_stream(b);
        CHECK(cuMemcpyDtoDAsync_v2(other, at(x), N, b));
    } else if (!strcmp(how, "landed")) {
        REQUIRE(!nvshmemx_fcollectmem_on_stream(0, y, x, N / 2, a));
        order();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y) + N - 1, 1, b));
    } else if (!strcmp(how, "remote")) {
        nvshmemx_putmem_nbi_on_stream(y, x, N, 1, a);
        order();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(nvshmem_ptr(y, 1)), N, b));
    } else if (!strcmp(how, "get")) {
        CHECK(cuMemsetD8Async(at(nvshmem_ptr(x, 1)), 1, N, a));
        order();
        nvshmemx_getmem_on_stream(y, x, N, 1, b);
    } else if (!strcmp(how, "into")) {
        nvshmemx_getmem_nbi_on_stream(y, x, N, 1, a);
        order();
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y), N, b));
    } else if (!strcmp(how, "signal")) {
        nvshmemx_putmem_signal_on_stream(y, x, N, signal, 3, SET, 0, a);
        if (ordered) nvshmemx_signal_wait_until_on_stream(signal, AT_LEAST, 3, b);
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y), N, b));
    } else {
        REQUIRE(!strcmp(how, "early"));
        if (!ordered) nvshmemx_signal_op_on_stream(signal, 1, SET, 0, a);
        nvshmemx_putmem_signal_nbi_on_stream(y, x, N, signal, ordered ? 1 : 2, SET, 0, a);
        nvshmemx_signal_wait_until_on_stream(signal, AT_LEAST, 1, b);
        CHECK(cuMemcpyDtoDAsync_v2(other, at(y), N, b));
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
