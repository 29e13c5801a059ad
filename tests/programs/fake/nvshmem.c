/* NVSHMEM without NVSHMEM: two processing elements in one process, of which the program is the first. Their memory lies side by side; a third
 * one has none that this process can reach. Puts, gets and signals are copies and fills. Or two processes, each of which is one of them
 * (`fake_elements`): the other's memory is opened by its handle, and barriers are the system's. */
#include "cuda_mini.h"
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HEAP = 1 << 20, SET = 9 };
static CUdeviceptr heap;
static size_t used;

static void check(int result) {
    if (result) abort();
}

/* Of two processes: which one this is, what both see, and the other one's memory. */
struct Both { pthread_barrier_t barrier; CUipcHandle memory[2]; };
static int me, are_two;
static struct Both *both;
static CUdeviceptr others;

/* Before the processes part. */
void fake_elements(void) {
    pthread_barrierattr_t shared;
    both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) abort();
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&both->barrier, &shared, 2);
}
static void meet(void) {
    if (are_two) pthread_barrier_wait(&both->barrier);
}
/* This process is the one or the other. */
void fake_element(int which) {
    are_two = 1;
    me = which;
    check(cuMemAlloc_v2(&heap, HEAP));
    check(cuIpcGetMemHandle(&both->memory[me], heap));
    meet();
    check(cuIpcOpenMemHandle_v2(&others, both->memory[!me], 1));
    meet();
}

void *nvshmem_malloc(size_t size) {
    if (!heap) check(cuMemAlloc_v2(&heap, 2 * HEAP));
    CUdeviceptr at = heap + used;
    used += (size + 511) / 512 * 512;
    return (void *)(uintptr_t)at;
}
void *nvshmem_ptr(const void *at, int pe) {
    if (are_two) return pe == me ? (void *)at : (void *)(uintptr_t)(others + ((CUdeviceptr)(uintptr_t)at - heap));
    return pe < 2 ? (char *)at + pe * HEAP : NULL;
}

static void copy(const void *to, const void *from, size_t bytes, CUstream s) {
    if (to && from) check(cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, s));
}
void nvshmemx_putmem_on_stream(void *to, const void *from, size_t bytes, int pe, CUstream s) { copy(nvshmem_ptr(to, pe), from, bytes, s); }
void nvshmemx_putmem_nbi_on_stream(void *to, const void *from, size_t bytes, int pe, CUstream s) { copy(nvshmem_ptr(to, pe), from, bytes, s); }
void nvshmemx_getmem_on_stream(void *to, const void *from, size_t bytes, int pe, CUstream s) { copy(to, nvshmem_ptr(from, pe), bytes, s); }
void nvshmemx_getmem_nbi_on_stream(void *to, const void *from, size_t bytes, int pe, CUstream s) { copy(to, nvshmem_ptr(from, pe), bytes, s); }
void nvshmemx_signal_op_on_stream(uint64_t *signal, uint64_t value, int op, int pe, CUstream s) {
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)nvshmem_ptr(signal, pe);
    if (op == SET) check(cuMemsetD8Async(at, (unsigned char)value, 8, s));
}
void nvshmemx_putmem_signal_on_stream(void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe, CUstream s) {
    nvshmemx_putmem_on_stream(to, from, bytes, pe, s);
    nvshmemx_signal_op_on_stream(signal, value, op, pe, s);
}
void nvshmemx_putmem_signal_nbi_on_stream(void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe, CUstream s) {
    nvshmemx_putmem_signal_on_stream(to, from, bytes, signal, value, op, pe, s);
}
/* The driver without a GPU runs nothing later than it is called. */
void nvshmemx_signal_wait_until_on_stream(uint64_t *signal, int compare, uint64_t value, CUstream s) {}

/* One team, in which this element is the first of two. A collective is a copy in this element's memory. */
int nvshmem_team_n_pes(int team) { return team == 0 ? 2 : -1; }
int nvshmem_team_my_pe(int team) { return team == 0 ? me : -1; }
int nvshmem_team_translate_pe(int team, int pe, int other) { return team == 0 && other <= 1 ? pe : -1; }
int nvshmemx_barrier_on_stream(int team, CUstream s) { return meet(), 0; }
void nvshmemx_barrier_all_on_stream(CUstream s) { meet(); }
int nvshmemx_team_sync_on_stream(int team, CUstream s) { return meet(), 0; }
void nvshmemx_sync_all_on_stream(CUstream s) { meet(); }
int nvshmem_barrier(int team) { return meet(), 0; }
void nvshmem_barrier_all(void) { meet(); }
void nvshmem_sync_all(void) { meet(); }
void nvshmem_quiet(void) {}
void nvshmem_fence(void) {}
void nvshmemx_quiet_on_stream(CUstream s) {}
int nvshmemx_broadcastmem_on_stream(int team, void *to, const void *from, size_t bytes, int root, CUstream s) {
    copy(to, root == 0 ? from : nvshmem_ptr(from, root), bytes, s);
    return 0;
}
int nvshmemx_fcollectmem_on_stream(int team, void *to, const void *from, size_t bytes, CUstream s) {
    for (int pe = 0; pe < 2; pe++) copy((char *)to + pe * bytes, nvshmem_ptr(from, pe), bytes, s);
    return 0;
}
int nvshmemx_alltoallmem_on_stream(int team, void *to, const void *from, size_t bytes, CUstream s) {
    for (int pe = 0; pe < 2; pe++) copy((char *)to + pe * bytes, nvshmem_ptr(from, pe), bytes, s);
    return 0;
}
int nvshmemx_float_sum_reduce_on_stream(int team, float *to, const float *from, size_t count, CUstream s) {
    copy(to, from, count * sizeof *to, s);
    return 0;
}

int nvshmemx_float_sum_reducescatter_on_stream(int team, float *to, const float *from, size_t count, CUstream s) {
    copy(to, from + me * count, count * sizeof *to, s);
    return 0;
}

/* Of types, in steps, one at a time. */
void nvshmemx_float_put_on_stream(float *to, const float *from, size_t count, int pe, CUstream s) { copy(nvshmem_ptr(to, pe), from, 4 * count, s); }
void nvshmemx_get64_on_stream(void *to, const void *from, size_t count, int pe, CUstream s) { copy(to, nvshmem_ptr(from, pe), 8 * count, s); }
void nvshmemx_int_p_on_stream(int *to, int value, int pe, CUstream s) {
    check(cuMemsetD8Async((CUdeviceptr)(uintptr_t)nvshmem_ptr(to, pe), (unsigned char)value, 4, s));
}
void nvshmemx_double_p_on_stream(double *to, double value, int pe, CUstream s) {
    if (value != 1.5) abort();
    check(cuMemsetD8Async((CUdeviceptr)(uintptr_t)nvshmem_ptr(to, pe), 1, 8, s));
}
void nvshmemx_int_iput_on_stream(int *to, const int *from, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe, CUstream s) {
    for (size_t i = 0; i < count; i++) copy(nvshmem_ptr(to + i * dst, pe), from + i * sst, 4, s);
}
void nvshmemx_uint64_wait_until_on_stream(uint64_t *word, int compare, uint64_t value, CUstream s) {}

/* By the host, on a stream of NVSHMEM's own. */
static void move(const void *to, const void *from, size_t bytes) {
    static CUstream own;
    if (!own) check(cuStreamCreate(&own, 1));
    copy(to, from, bytes, own);
    check(cuStreamSynchronize(own));
}
void nvshmem_putmem(void *to, const void *from, size_t bytes, int pe) { move(nvshmem_ptr(to, pe), from, bytes); }
void nvshmem_putmem_nbi(void *to, const void *from, size_t bytes, int pe) { move(nvshmem_ptr(to, pe), from, bytes); }
void nvshmem_getmem(void *to, const void *from, size_t bytes, int pe) { move(to, nvshmem_ptr(from, pe), bytes); }
/* Collectives that block, and atomics. */
int nvshmem_float_sum_reduce(int team, float *to, const float *from, size_t count) { return move(to, from, count * sizeof *to), 0; }
int nvshmem_int32_xor_reducescatter(int team, int *to, const int *from, size_t count) { return move(to, from + me * count, count * sizeof *to), 0; }
int nvshmem_broadcastmem(int team, void *to, const void *from, size_t bytes, int root) {
    return move(to, root == me ? from : nvshmem_ptr(from, root), bytes), 0;
}
int nvshmem_fcollectmem(int team, void *to, const void *from, size_t bytes) {
    for (int pe = 0; pe < 2; pe++) move((char *)to + pe * bytes, nvshmem_ptr(from, pe), bytes);
    return 0;
}
int nvshmem_double_alltoall(int team, double *to, const double *from, size_t count) {
    for (int pe = 0; pe < 2; pe++) move(to + pe * count, nvshmem_ptr(from + me * count, pe), count * sizeof *to);
    return 0;
}
static void update(const void *word, size_t bytes) {
    static CUdeviceptr old;
    if (!old) check(cuMemAlloc_v2(&old, 8));
    move((void *)(uintptr_t)old, word, bytes);
    move(word, (void *)(uintptr_t)old, bytes);
}
void nvshmem_uint64_atomic_add(uint64_t *word, uint64_t value, int pe) { update(nvshmem_ptr(word, pe), 8); }
uint64_t nvshmem_uint64_atomic_fetch(const uint64_t *word, int pe) { return update(nvshmem_ptr(word, pe), 8), 5; }
float nvshmemx_float_atomic_fetch_add(float *word, float value, int pe) { return update(nvshmem_ptr(word, pe), 4), value; }
void nvshmem_double_get_nbi(double *to, const double *from, size_t count, int pe) { move(to, nvshmem_ptr(from, pe), 8 * count); }
