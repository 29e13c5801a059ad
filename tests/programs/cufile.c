/* Files that cuFile reads and writes beside streams. The second word mends it.
 *   cufile read [waits]         a read fills memory that a copy may still read
 *   cufile write [waits]        a write reads what a fill may still write
 *   cufile default [waits]      the same with the default stream, which cuFile does not wait for either
 *   cufile on-stream [waits]    a read on a stream, and a use on another one
 *   cufile write-on-stream [waits]   a fill, and a write on another stream
 *   cufile batch [waits]        a use of what a batch reads, before its status is known
 *   cufile one-of-two [waits]   a use of the entry whose status is not known yet
 *   cufile alike [waits]        two entries with one cookie: after one status none is known to be over
 *   cufile reused [waits]       a fill of what a batch writes to a file
 *   cufile short, same, failed, cancelled   clean
 * With DLOPEN the functions are looked up by name in a library that is opened. */
#include "common.h"
#include "fake/cufile.h"

#define DECLARE(type, name, arguments) type name arguments;
#define DEFINE(type, name, arguments) static type(*p_##name) arguments;
#define FIND(type, name, arguments)                                                                                   \
    p_##name = (type(*) arguments)dlsym(library, #name);                                                              \
    REQUIRE(p_##name != 0);
#ifdef DLOPEN
CUFILE_FUNCTIONS(DEFINE)
#define C(name) p_##name
#else
CUFILE_FUNCTIONS(DECLARE)
#define C(name) name
#endif
#define BYTES 4096ul

static CUstream s, t;
static void wait(void) {
    CUevent event;
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuEventRecord(event, s));
    CHECK(cuStreamWaitEvent(t, event, 0));
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "read";
    int waits = argc > 2;
#ifdef DLOPEN
    void *library = dlopen("libcufile.so.0", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != 0);
    CUFILE_FUNCTIONS(FIND)
    REQUIRE(!dlsym(library, "cuFileNoSuchFunction"));
#endif
    size_t length = 1 << 20, size = BYTES;
    off_t zero = 0;
    ssize_t moved = -1;
    CUdeviceptr p, q;
    unsigned count = 0;
    CUfileIOEvents_t events[4];
    attach();
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuStreamCreate(&t, 1));
    CHECK(cuMemAlloc_v2(&p, 2 * BYTES));
    CHECK(cuMemAlloc_v2(&q, 2 * BYTES));
    CUfileIOParams_t entries[2] = {{1, {{(void *)p, 0, 0, BYTES}}, &length, CUFILE_READ, (void *)1},
                                   {1, {{(void *)p, BYTES, BYTES, BYTES}}, &length, CUFILE_READ, (void *)2}};
    void *batch = &entries;
    if (!strcmp(how, "read")) {
        CHECK(cuMemcpyDtoDAsync_v2(q, p, BYTES, s));
        if (waits) CHECK(cuStreamSynchronize(s));
        REQUIRE(C(cuFileRead)(&length, (void *)p, BYTES, 0, 0) == (ssize_t)BYTES);
    } else if (!strcmp(how, "write") || !strcmp(how, "default")) {
        CUstream on = !strcmp(how, "write") ? s : 0;
        CHECK(cuMemsetD8Async(p, 1, BYTES, on));
        if (waits) CHECK(cuStreamSynchronize(on));
        REQUIRE(C(cuFileWrite)(&length, (void *)p, BYTES, 0, 0) == (ssize_t)BYTES);
    } else if (!strcmp(how, "short")) {
        /* The file ends before the bytes that are still in use. */
        length = 100;
        CHECK(cuMemsetD8Async(p + 100, 1, BYTES - 100, s));
        REQUIRE(C(cuFileRead)(&length, (void *)p, BYTES, 0, 0) == 100);
        REQUIRE(C(cuFileRead)(&length, (void *)p, BYTES, 200, 0) == 0);
    } else if (!strcmp(how, "on-stream")) {
        REQUIRE(C(cuFileReadAsync)(&length, (void *)p, &size, &zero, &zero, &moved, s).err == 0 && moved == (ssize_t)BYTES);
        if (waits) wait();
        CHECK(cuMemcpyDtoDAsync_v2(q, p, BYTES, t));
    } else if (!strcmp(how, "write-on-stream")) {
        CHECK(cuMemsetD8Async(p, 1, BYTES, s));
        if (waits) wait();
        REQUIRE(C(cuFileWriteAsync)(&length, (void *)p, &size, &zero, &zero, &moved, t).err == 0);
    } else if (!strcmp(how, "same")) {
        REQUIRE(C(cuFileReadAsync)(&length, (void *)p, &size, &zero, &zero, &moved, s).err == 0);
        CHECK(cuMemcpyDtoDAsync_v2(q, p, BYTES, s));
        REQUIRE(C(cuFileWriteAsync)(&length, (void *)q, &size, &zero, &zero, &moved, s).err == 0);
    } else if (!strcmp(how, "batch")) {
        REQUIRE(C(cuFileBatchIOSubmit)(batch, 2, entries, 0).err == 0);
        if (waits) REQUIRE(C(cuFileBatchIOGetStatus)(batch, 2, &count, events, 0).err == 0 && count == 2);
        CHECK(cuMemcpyDtoDAsync_v2(q, p, BYTES, s));
        if (!waits) REQUIRE(C(cuFileBatchIOGetStatus)(batch, 2, &count, events, 0).err == 0 && count == 2);
    } else if (!strcmp(how, "one-of-two")) {
        REQUIRE(C(cuFileBatchIOSubmit)(batch, 2, entries, 0).err == 0);
        REQUIRE(C(cuFileBatchIOGetStatus)(batch, 1, &count, events, 0).err == 0 && count == 1 && events[0].cookie == (void *)2);
        CHECK(cuMemcpyDtoDAsync_v2(q, p + (waits ? BYTES : 0), BYTES, s));
        REQUIRE(C(cuFileBatchIOGetStatus)(batch, 1, &count, events, 0).err == 0 && count == 1);
    } else if (!strcmp(how, "alike")) {
        entries[0].cookie = entries[1].cookie;
        REQUIRE(C(cuFileBatchIOSubmit)(batch, 2, entries, 0).err == 0);
        REQUIRE(C(cuFileBatchIOGetStatus)(batch, 1, &count, events, 0).err == 0 && count == 1);
        if (waits) REQUIRE(C(cuFileBatchIOGetStatus)(batch, 1, &count, events, 0).err == 0 && count == 1);
        CHECK(cuMemcpyDtoDAsync_v2(q, p, BYTES, s));
        if (!waits) REQUIRE(C(cuFileBatchIOGetStatus)(batch, 1, &count, events, 0).err == 0 && count == 1);
    } else if (!strcmp(how, "reused")) {
        entries[0].opcode = CUFILE_WRITE;
        REQUIRE(C(cuFileBatchIOSubmit)(batch, 1, entries, 0).err == 0);
        if (waits) REQUIRE(C(cuFileBatchIOGetStatus)(batch, 1, &count, events, 0).err == 0 && count == 1);
        CHECK(cuMemsetD8Async(p, 1, BYTES, s));
        if (!waits) REQUIRE(C(cuFileBatchIOGetStatus)(batch, 1, &count, events, 0).err == 0 && count == 1);
    } else if (!strcmp(how, "failed")) {
        REQUIRE(C(cuFileBatchIOSubmit)(0, 2, entries, 0).err == 5022);
        CHECK(cuMemsetD8Async(p, 1, BYTES, s));
    } else if (!strcmp(how, "cancelled")) {
        REQUIRE(C(cuFileBatchIOSubmit)(batch, 2, entries, 0).err == 0);
        REQUIRE(C(cuFileBatchIOCancel)(batch).err == 0);
        CHECK(cuMemsetD8Async(p, 1, BYTES, s));
        C(cuFileBatchIODestroy)(batch);
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
