/* Four processing elements of NVSHMEM, each a process, and teams of some of them. The first one fills its memory and puts into that of the third; the
 * third reads. The word says which teams meet on their streams in between, by their elements:
 *   even          0 and 2, which orders the two (`late`: the put comes behind it)
 *   odd           1 and 3: it does not
 *   halves        0 and 1, 2 and 3: no one meets both
 *   chain         0 and 1, then 1 and 2: by way of 1
 *   unchained     1 and 2, then 0 and 1: the third did not wait for that
 *   column, row   of a split in two dimensions, two wide: 0 and 2, or 0 and 1
 *   twins         two teams of 0 and 2; the first meets on s of both. Then both meet, and the elements do not agree in which order they call
 *   strangers     the same, and the first meets through one team, the third through the other, before they call the other one of each
 *   made_again    a team of 0 and 2 has ended, and a new one has met
 *   reduced       a sum in the team of 0 and 2; `elsewhere`: in that of 2 and 3, which the first is not in */
#include "common.h"
#include <sys/wait.h>

enum { N = 4096, ALL = 4 };

void fake_elements_of(int);
void fake_element(int);
void *nvshmem_malloc(size_t);
int nvshmem_team_split_strided(int, int, int, int, const void *, long, int *);
int nvshmem_team_split_2d(int, int, const void *, long, int *, const void *, long, int *);
void nvshmem_team_destroy(int);
void nvshmemx_putmem_on_stream(void *, const void *, size_t, int, CUstream);
int nvshmemx_barrier_on_stream(int, CUstream);
int nvshmemx_team_sync_on_stream(int, CUstream);
int nvshmemx_float_sum_reduce_on_stream(int, float *, const float *, size_t, CUstream);
void nvshmem_barrier_all(void);

static CUstream s, t;
static const char *how;
static char *x, *y, *sum;
static int me;
static CUdeviceptr own;

static int is(const char *form) { return !strcmp(how, form); }
static int team_of(int start, int stride, int count) {
    int team;
    REQUIRE(!nvshmem_team_split_strided(0, start, stride, count, 0, 0, &team));
    return team;
}
static void meet(int team, CUstream on) {
    if (team >= 0) REQUIRE(!nvshmemx_barrier_on_stream(team, on));
}
static void put(void) {
    if (me == 0) nvshmemx_putmem_on_stream(y, x, N, 2, s);
}
static void read_it(void) {
    if (me == 2) CHECK(cuMemcpyDtoDAsync_v2(own, (CUdeviceptr)(uintptr_t)y, N, s));
}

static void go(void) {
    int even = team_of(0, 2, 2), odd = team_of(1, 2, 2), low = team_of(0, 1, 2), high = team_of(2, 1, 2), middle = team_of(1, 1, 2);
    if (is("late")) meet(even, s);
    put();
    if (is("even")) meet(even, s);
    if (is("odd")) meet(odd, s);
    if (is("halves")) meet(low, s), meet(high, s);
    if (is("chain")) meet(low, s), meet(middle, s);
    if (is("unchained")) meet(middle, s), meet(low, s);
    if (is("column") || is("row")) {
        int row, column;
        REQUIRE(!nvshmem_team_split_2d(0, 2, 0, 0, &row, 0, 0, &column));
        REQUIRE(row != column);
        REQUIRE(!nvshmemx_team_sync_on_stream(is("row") ? row : column, s));
    }
    if (is("twins") || is("strangers")) {
        int other = team_of(0, 2, 2), teams[2] = {even, other};
        /* Each team's n-th call is a meeting of its own. In `twins` the put is before the team `other` on s, which is what the third waits for there;
         * the meeting of `even` is on another stream. */
        if (me == 0) meet(teams[0], t), meet(teams[1], s);
        if (me == 2 && is("twins")) meet(teams[1], s), meet(teams[0], t);
        if (me == 2 && is("strangers")) meet(teams[1], t), meet(teams[0], s);
    }
    if (is("made_again")) {
        if (even >= 0) nvshmem_team_destroy(even);
        meet(team_of(0, 2, 2), s);
    }
    if (is("reduced") && even >= 0) REQUIRE(!nvshmemx_float_sum_reduce_on_stream(even, (float *)sum, (float *)sum, 16, s));
    if (is("elsewhere") && high >= 0) REQUIRE(!nvshmemx_float_sum_reduce_on_stream(high, (float *)sum, (float *)sum, 16, s));
    read_it();
    /* Nobody has seen the others' work end before this. */
    nvshmem_barrier_all();
    CHECK(cuCtxSynchronize());
}

static void element(int which) {
    me = which;
    attach();
    fake_element(which);
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuStreamCreate(&t, 1));
    CHECK(cuMemAlloc_v2(&own, N));
    x = nvshmem_malloc(N), y = nvshmem_malloc(N), sum = nvshmem_malloc(64);
    go();
}

int main(int argc, char **argv) {
    pid_t children[ALL];
    how = argv[1];
    fake_elements_of(ALL);
    for (int which = 1; which < ALL; which++) {
        children[which] = fork();
        if (!children[which]) {
            element(which);
            exit(0);
        }
    }
    element(0);
    for (int which = 1; which < ALL; which++) {
        int status;
        REQUIRE(waitpid(children[which], &status, 0) == children[which] && status == 0);
    }
    puts("done");
    return 0;
}
