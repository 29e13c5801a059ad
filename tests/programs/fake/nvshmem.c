/* NVSHMEM without NVSHMEM: two processing elements in one process, of which the program is the first. Their memory lies side by side; a third
 * one has none that this process can reach. Puts, gets and signals are copies and fills. */
#include "cuda_mini.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { HEAP = 1 << 20, SET = 9 };
static CUdeviceptr heap;
static size_t used;

static void check(int result) {
    if (result) abort();
}

void *nvshmem_malloc(size_t size) {
    if (!heap) check(cuMemAlloc_v2(&heap, 2 * HEAP));
    CUdeviceptr at = heap + used;
    used += (size + 511) / 512 * 512;
    return (void *)(uintptr_t)at;
}
void *nvshmem_ptr(const void *at, int pe) { return pe < 2 ? (char *)at + pe * HEAP : NULL; }

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
int nvshmem_team_my_pe(int team) { return team == 0 ? 0 : -1; }
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
