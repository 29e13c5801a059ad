/* Blocks of a caching allocator as PyTorch's: `torch_blocks racy`: two streams write one block; `apart`: two blocks; `freed`: a block
 * given back while another stream uses it, then handed out again; `waited`: the same with the wait that belongs there; `elsewhere`: the
 * allocator happens to hand out another block; `fresh`: all on the
 * default stream, by threads that take a block before they have used CUDA, as autograd's do (clean). */
#include "common.h"
#include <pthread.h>
#include <stdint.h>

int64_t c10_told(void);
void c10_use(CUstream stream);
CUdeviceptr c10_take(int slot, int64_t size);
void c10_give(CUdeviceptr block, int64_t size);

static void *fresh(void *unused) {
    CUcontext context;
    CUdeviceptr x = c10_take(1, 4096);
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemsetD8Async(x, 1, 4096, 0));
    c10_give(x, 4096);
    return 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "racy";
    int apart = !strcmp(how, "apart"), waited = !strcmp(how, "waited"), elsewhere = !strcmp(how, "elsewhere");
    int freed = !strcmp(how, "freed") || waited || elsewhere;
    begin("f_4_4");
    CUstream a, b;
    CUevent done;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&done, 2));
    c10_use(a);
    CUdeviceptr x = c10_take(1, 4096), y = apart ? c10_take(2, 512) : x;
    if (!strcmp(how, "fresh")) {
        c10_give(x, 4096);
        c10_use(0);
        for (int n = 0; n < 3; n++) {
            pthread_t thread;
            REQUIRE(!pthread_create(&thread, 0, fresh, 0) && !pthread_join(thread, 0));
        }
    } else if (freed) {
        CHECK(cuEventRecord(done, a));
        CHECK(cuStreamWaitEvent(b, done, 0));
        CHECK(cuMemsetD8Async(x, 1, 4096, b));
        c10_give(x, 4096);
        if (waited) {
            CHECK(cuEventRecord(done, b));
            CHECK(cuStreamWaitEvent(a, done, 0));
        }
        x = c10_take(elsewhere ? 2 : 1, 1024);
        CHECK(cuMemsetD8Async(x, 2, 1024, a));
        c10_give(x, 1024);
    } else {
        CHECK(cuMemsetD8Async(x, 1, 4096, a));
        CHECK(cuMemsetD8Async(y, 2, 512, b));
        CHECK(cuCtxSynchronize());
        c10_give(x, 4096);
        if (apart) c10_give(y, 512);
    }
    CHECK(cuCtxSynchronize());
    printf("%lld\n", (long long)c10_told());
    return 0;
}
