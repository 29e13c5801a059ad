/* An engine that CUDA does not see, in the program's own words (streamsan.h): a block of a KV cache is filled on a stream and sent, and
 * another one is received and used. The second word mends it.
 *   external sent [waits]      the engine reads the block while the stream may still fill it
 *   external received [waits]  the stream uses the block while the engine may still write it
 *   external reused [waits]    the stream fills the block again while the engine may still read it
 *   external freed [waits]     the block is freed while the engine may still write it
 *   external host [waits]      two engines write the same bytes
 *   external pieces            two engines write two halves under one key, and then the stream uses both (clean)
 *   external beside            the engine reads, and so does the stream (clean)
 *   external other             the engine and the stream have two blocks (clean)
 *   external unknown           a key that was never begun ends (clean) */
#include "../../include/streamsan.h"
#include "common.h"

#define BYTES 4096ul

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "sent";
    int waits = argc > 2;
    attach();
    CUstream s;
    CUdeviceptr block, more;
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuMemAlloc_v2(&block, BYTES));
    CHECK(cuMemAlloc_v2(&more, BYTES));
    if (!strcmp(how, "sent")) {
        CHECK(cuMemsetD8Async(block, 1, BYTES, s));
        if (waits) CHECK(cuStreamSynchronize(s));
        STREAMSAN_EXTERNAL_BEGIN(read, block, BYTES, 7);
        STREAMSAN_EXTERNAL_END(7);
    } else if (!strcmp(how, "received")) {
        STREAMSAN_EXTERNAL_BEGIN(write, block, BYTES, &block);
        if (waits) STREAMSAN_EXTERNAL_END(&block);
        CHECK(cuMemcpyDtoDAsync_v2(more, block, BYTES, s));
        if (!waits) STREAMSAN_EXTERNAL_END(&block);
    } else if (!strcmp(how, "reused")) {
        STREAMSAN_EXTERNAL_BEGIN(read, block, BYTES, 7);
        if (waits) STREAMSAN_EXTERNAL_END(7);
        CHECK(cuMemsetD8Async(block, 1, BYTES, s));
        if (!waits) STREAMSAN_EXTERNAL_END(7);
    } else if (!strcmp(how, "freed")) {
        STREAMSAN_EXTERNAL_BEGIN(write, block, BYTES, 7);
        if (waits) STREAMSAN_EXTERNAL_END(7);
        CHECK(cuMemFree_v2(block));
        if (!waits) STREAMSAN_EXTERNAL_END(7);
        block = 0;
    } else if (!strcmp(how, "host")) {
        STREAMSAN_EXTERNAL_BEGIN(write, block, BYTES, 1);
        if (waits) STREAMSAN_EXTERNAL_END(1);
        STREAMSAN_EXTERNAL_BEGIN(read_write, block + 64, 64, 2);
        if (!waits) STREAMSAN_EXTERNAL_END(1);
        STREAMSAN_EXTERNAL_END(2);
    } else if (!strcmp(how, "pieces")) {
        STREAMSAN_EXTERNAL_BEGIN(write, block, BYTES / 2, 7);
        STREAMSAN_EXTERNAL_BEGIN(write, block + BYTES / 2, BYTES / 2, 7);
        STREAMSAN_EXTERNAL_END(7);
        CHECK(cuMemsetD8Async(block, 1, BYTES, s));
    } else if (!strcmp(how, "beside")) {
        STREAMSAN_EXTERNAL_BEGIN(read, block, BYTES, 7);
        CHECK(cuMemcpyDtoDAsync_v2(more, block, BYTES, s));
        STREAMSAN_EXTERNAL_END(7);
    } else if (!strcmp(how, "other")) {
        STREAMSAN_EXTERNAL_BEGIN(write, block, BYTES, 7);
        CHECK(cuMemsetD8Async(more, 1, BYTES, s));
        STREAMSAN_EXTERNAL_END(7);
    } else if (!strcmp(how, "unknown")) {
        STREAMSAN_EXTERNAL_END(7);
        CHECK(cuMemsetD8Async(block, 1, BYTES, s));
    }
    CHECK(cuStreamSynchronize(s));
    printf("done %d\n", STREAMSAN_ACTIVE());
    return 0;
}
