/* Two processing elements of NVSHMEM, each a process: the first puts into the memory of the second, which reads it there. The word says what is
 * between the two: a barrier of all elements on their streams (all), of a team (team), sync, or nothing (nothing). early: the put comes behind
 * the barrier; late: the read comes before it; second: each meets twice, and only the second time counts. host: the host waits for the put, and
 * the hosts meet; unseen: they meet, and nobody has waited for the stream. reduced, gathered, exchanged, scattered: a collective on streams in
 * place of the barrier; sent: a broadcast by the first; sent_back: one by the second, which waits for nobody. With `-early` the put comes
 * behind it. into, from: the second reads where the first gathers to, or puts where it gathers from, behind its own end of the gathering; with
 * `-met` there is a barrier between. */
#include "common.h"
#include <sys/wait.h>

enum { N = 4096 };

void fake_elements(void);
void fake_element(int);
void *nvshmem_malloc(size_t);
void nvshmemx_putmem_on_stream(void *, const void *, size_t, int, CUstream);
int nvshmemx_barrier_on_stream(int, CUstream);
void nvshmemx_barrier_all_on_stream(CUstream);
void nvshmemx_sync_all_on_stream(CUstream);
void nvshmem_barrier_all(void);
void nvshmemx_getmem_on_stream(void *, const void *, size_t, int, CUstream);
int nvshmemx_broadcastmem_on_stream(int, void *, const void *, size_t, int, CUstream);
int nvshmemx_fcollectmem_on_stream(int, void *, const void *, size_t, CUstream);
int nvshmemx_alltoallmem_on_stream(int, void *, const void *, size_t, CUstream);
int nvshmemx_float_sum_reduce_on_stream(int, float *, const float *, size_t, CUstream);
int nvshmemx_float_sum_reducescatter_on_stream(int, float *, const float *, size_t, CUstream);

static CUstream s;
static const char *how;

static char *to, *from;

static int is(const char *form) { return !strcmp(how, form); }
static int begins(const char *form) { return !strncmp(how, form, strlen(form)) && (how[strlen(form)] == 0 || how[strlen(form)] == '-'); }
static int ends(const char *form) { return strstr(how, form) != 0; }

static void meet(void) {
    if (is("nothing") || is("host") || is("unseen")) return;
    if (is("team")) REQUIRE(!nvshmemx_barrier_on_stream(0, s));
    else if (is("sync")) nvshmemx_sync_all_on_stream(s);
    else if (begins("reduced")) REQUIRE(!nvshmemx_float_sum_reduce_on_stream(0, (float *)to, (float *)from, 16, s));
    else if (begins("scattered")) REQUIRE(!nvshmemx_float_sum_reducescatter_on_stream(0, (float *)to, (float *)from, 16, s));
    else if (begins("gathered")) REQUIRE(!nvshmemx_fcollectmem_on_stream(0, to, from, 64, s));
    else if (begins("exchanged")) REQUIRE(!nvshmemx_alltoallmem_on_stream(0, to, from, 64, s));
    else if (begins("sent")) REQUIRE(!nvshmemx_broadcastmem_on_stream(0, to, from, 64, 0, s));
    else if (begins("sent_back")) REQUIRE(!nvshmemx_broadcastmem_on_stream(0, to, from, 64, 1, s));
    else nvshmemx_barrier_all_on_stream(s);
}

static void hosts_meet(void) {
    if (is("host") || is("unseen")) nvshmem_barrier_all();
}

static void element(int which) {
    CUdeviceptr other;
    attach();
    fake_element(which);
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuMemAlloc_v2(&other, N));
    char *x = nvshmem_malloc(N), *y = nvshmem_malloc(N);
    to = nvshmem_malloc(N), from = nvshmem_malloc(N);
    if (begins("into") || begins("from")) {
        REQUIRE(!nvshmemx_fcollectmem_on_stream(0, to, from, 64, s));
        if (ends("-met")) meet();
        if (which == 1 && begins("into")) nvshmemx_getmem_on_stream(x, to, 64, 0, s);
        if (which == 1 && begins("from")) nvshmemx_putmem_on_stream(from, x, 64, 0, s);
        nvshmem_barrier_all();
        CHECK(cuCtxSynchronize());
        return;
    }
    if (is("second")) meet();
    if (ends("early")) meet();
    if (which == 0) nvshmemx_putmem_on_stream(y, x, N, 1, s);
    if (which == 0 && is("host")) CHECK(cuStreamSynchronize(s));
    hosts_meet();
    if (which == 1 && is("late")) CHECK(cuMemcpyDtoDAsync_v2(other, (CUdeviceptr)(uintptr_t)y, N, s));
    if (!ends("early")) meet();
    if (which == 1 && !is("late")) CHECK(cuMemcpyDtoDAsync_v2(other, (CUdeviceptr)(uintptr_t)y, N, s));
    /* Neither host has seen the other's work end before this. */
    nvshmem_barrier_all();
    CHECK(cuCtxSynchronize());
}

int main(int argc, char **argv) {
    int status;
    how = argv[1];
    fake_elements();
    pid_t child = fork();
    if (!child) {
        element(1);
        exit(0);
    }
    element(0);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    puts("done");
    return 0;
}
