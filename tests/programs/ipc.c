/* One process fills memory that another one copies out of. How the two are ordered is told by CASE: not at all (nothing), by the first
 * one's host (host) or an event of both (event), or by an event that was recorded before the fill (early). */
#include "common.h"
#include <sys/wait.h>

enum { N = 4096 };
struct Message { CUipcHandle memory, event; };

static void fill(const char *how, int to, int back) {
    struct Message message;
    CUdeviceptr x;
    CUstream s;
    CUevent e;
    char end;
    begin("fill_8");
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuEventCreate(&e, 2 | 4));
    CHECK(cuMemAlloc_v2(&x, N));
    CHECK(cuIpcGetMemHandle(&message.memory, x));
    CHECK(cuIpcGetEventHandle(&message.event, e));
    if (!strcmp(how, "early")) CHECK(cuEventRecord(e, s));
    CHECK(cuMemsetD8Async(x, 1, N, s));
    if (!strcmp(how, "event")) CHECK(cuEventRecord(e, s));
    if (!strcmp(how, "host")) CHECK(cuStreamSynchronize(s));
    REQUIRE(write(to, &message, sizeof message) == sizeof message);
    REQUIRE(read(back, &end, 1) == 1);
    CHECK(cuCtxSynchronize());
}

static void copy(int from, int back) {
    struct Message message;
    CUdeviceptr x, y;
    CUstream s;
    CUevent e;
    begin("copy_8");
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuMemAlloc_v2(&y, N));
    REQUIRE(read(from, &message, sizeof message) == sizeof message);
    CHECK(cuIpcOpenMemHandle_v2(&x, message.memory, 1));
    CHECK(cuIpcOpenEventHandle(&e, message.event));
    CHECK(cuStreamWaitEvent(s, e, 0));
    CHECK(cuMemcpyDtoDAsync_v2(y, x, N, s));
    CHECK(cuStreamSynchronize(s));
    CHECK(cuIpcCloseMemHandle(x));
    REQUIRE(write(back, "", 1) == 1);
}

int main(int argc, char **argv) {
    int there[2], back[2], status;
    REQUIRE(!pipe(there) && !pipe(back));
    pid_t child = fork();
    if (!child) {
        copy(there[0], back[1]);
        exit(0);
    }
    fill(argv[1], there[1], back[0]);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    puts("done");
    return 0;
}
