/* NVSHMEM without NVSHMEM: two processing elements in one process, of which the program is the first. Their memory lies side by side; a third
 * one has none that this process can reach. Puts, gets and signals are copies and fills. Or two processes, each of which is one of them
 * (`fake_elements`), or up to four (`fake_elements_of`): the others' memory is opened by its handle, and barriers are the system's. Teams are split
 * in steps; each has a number that only its element knows. */
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

enum { MOST = 4, TEAMS = 16 };
/* Of several processes: which one this is, what all see (a barrier for each set of elements), and the others' memory. */
struct All { pthread_barrier_t barrier[1 << MOST]; CUipcHandle memory[MOST]; };
static int me, are_several, count = 2;
static struct All *all;
static CUdeviceptr others[MOST];
/* The elements of each team, as bits; none: it does not exist. */
static int teams[TEAMS] = {3, 3};

/* Before the processes part. */
void fake_elements_of(int elements) {
    pthread_barrierattr_t shared;
    count = elements;
    teams[0] = teams[1] = (1 << count) - 1;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) abort();
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    for (int set = 1; set < 1 << count; set++) pthread_barrier_init(&all->barrier[set], &shared, __builtin_popcount(set));
}
void fake_elements(void) { fake_elements_of(2); }
static void meet_in(int team) {
    if (are_several) pthread_barrier_wait(&all->barrier[teams[team]]);
}
static void meet(void) { meet_in(0); }
/* This process is one of them. */
void fake_element(int which) {
    are_several = 1;
    me = which;
    check(cuMemAlloc_v2(&heap, HEAP));
    check(cuIpcGetMemHandle(&all->memory[me], heap));
    meet();
    for (int other = 0; other < count; other++)
        if (other != me) check(cuIpcOpenMemHandle_v2(&others[other], all->memory[other], 1));
    meet();
}

void *nvshmem_malloc(size_t size) {
    if (!heap) check(cuMemAlloc_v2(&heap, 2 * HEAP));
    CUdeviceptr at = heap + used;
    used += (size + 511) / 512 * 512;
    return (void *)(uintptr_t)at;
}
void *nvshmem_ptr(const void *at, int pe) {
    if (are_several) return pe == me ? (void *)at : (void *)(uintptr_t)(others[pe] + ((CUdeviceptr)(uintptr_t)at - heap));
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

/* A collective is a copy in this element's memory. */
static int is_team(int team) { return team >= 0 && team < TEAMS && teams[team]; }
int nvshmem_team_n_pes(int team) { return is_team(team) ? __builtin_popcount(teams[team]) : -1; }
/* The place of an element in a team, and the element at a place. */
static int place_of(int team, int pe) { return teams[team] >> pe & 1 ? __builtin_popcount(teams[team] & ((1 << pe) - 1)) : -1; }
static int element_at(int team, int place) {
    for (int pe = 0; pe < MOST; pe++)
        if (place_of(team, pe) == place) return pe;
    return -1;
}
int nvshmem_team_my_pe(int team) { return is_team(team) ? place_of(team, me) : -1; }
int nvshmem_team_translate_pe(int team, int place, int other) {
    return is_team(team) && is_team(other) && element_at(team, place) >= 0 ? place_of(other, element_at(team, place)) : -1;
}
/* An element's numbers of its teams differ from those of the others. */
static int make(int set, int *team) {
    int at = 2 + me;
    *team = -1;
    if (!(set >> me & 1)) return 0;
    while (teams[at]) at++;
    teams[at] = set;
    *team = at;
    return 0;
}
int nvshmem_team_split_strided(int parent, int start, int stride, int size, const void *config, long mask, int *team) {
    int set = 0;
    for (int i = 0; i < size; i++) set |= 1 << element_at(parent, start + i * stride);
    meet_in(parent);
    return make(set, team);
}
int nvshmem_team_split_2d(int parent, int range, const void *xc, long xm, int *x, const void *yc, long ym, int *y) {
    int size = nvshmem_team_n_pes(parent), own = nvshmem_team_my_pe(parent), row = 0, column = 0;
    for (int i = 0; i < size; i++) {
        if (i / range == own / range) row |= 1 << element_at(parent, i);
        if (i % range == own % range) column |= 1 << element_at(parent, i);
    }
    meet_in(parent);
    return make(row, x) | make(column, y);
}
void nvshmem_team_destroy(int team) { meet_in(team), teams[team] = 0; }
int nvshmemx_barrier_on_stream(int team, CUstream s) { return meet_in(team), 0; }
void nvshmemx_barrier_all_on_stream(CUstream s) { meet(); }
int nvshmemx_team_sync_on_stream(int team, CUstream s) { return meet_in(team), 0; }
void nvshmemx_sync_all_on_stream(CUstream s) { meet(); }
int nvshmem_barrier(int team) { return meet_in(team), 0; }
int nvshmem_team_sync(int team) { return meet_in(team), 0; }
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
