/* Blocks of a KV cache that NIXL's C interface moves. The second word mends it.
 *   nixl write [waits]      a transfer of what a stream may still write
 *   nixl small [waits]      the same, of a transfer that is over at once
 *   nixl reused [waits]     a fill of what a write may still read
 *   nixl read [waits]       a use of what a read may still fill
 *   nixl freed [waits]      memory that a read may still fill is freed
 *   nixl again [waits]      a transfer is posted a second time, and its blocks are used before that is over
 *   nixl places [waits]     a use of one of the blocks of a prepared list that a transfer names by place
 *   nixl removed [waits]    the same, of a list that a descriptor was removed from
 *   nixl one-status         a use after the status "in progress": a race, with or without the second word
 *   nixl others, released, destroyed, error, files, beside   clean
 * With DLOPEN the functions are looked up by name in a library that is opened. */
#include "common.h"
#include "fake/nixl.h"

#define DECLARE(type, name, arguments) type name arguments;
#define DEFINE(type, name, arguments) static type(*p_##name) arguments;
#define FIND(type, name, arguments)                                                                                   \
    p_##name = (type(*) arguments)dlsym(library, #name);                                                              \
    REQUIRE(p_##name != 0);
#ifdef DLOPEN
NIXL_FUNCTIONS(DEFINE)
#define N(name) p_nixl_capi_##name
#else
NIXL_FUNCTIONS(DECLARE)
#define N(name) nixl_capi_##name
#endif
#define BYTES 4096ul

static CUstream s;
static CUdeviceptr p, q;
static int agent;

static void *list(int kind, CUdeviceptr at, size_t bytes) {
    void *made;
    REQUIRE(N(create_xfer_dlist)(kind, &made) == 0 && N(xfer_dlist_add_desc)(made, at, bytes, 0) == 0);
    return made;
}
static void *transfer(int operation, int kind, size_t bytes) {
    void *made, *local = list(kind, p, bytes), *remote = list(kind, 0x1000, bytes);
    REQUIRE(N(create_xfer_req)(&agent, operation, local, remote, "peer", &made, 0) == 0);
    /* A transfer keeps what it needs of its lists. */
    REQUIRE(N(destroy_xfer_dlist)(local) == 0);
    return made;
}
static void *post(void *request) {
    REQUIRE(N(post_xfer_req)(&agent, request, 0) == NIXL_CAPI_IN_PROG);
    return request;
}
static void finish(void *request) {
    int status;
    while ((status = N(get_xfer_status)(&agent, request)) == NIXL_CAPI_IN_PROG) usleep(200);
    REQUIRE(status == 0);
}
static void fill(CUdeviceptr at) { CHECK(cuMemsetD8Async(at, 1, BYTES, s)); }
static void use(CUdeviceptr at) { CHECK(cuMemcpyDtoDAsync_v2(q, at, 8, s)); }

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "write";
    int waits = argc > 2, reads = NIXL_CAPI_XFER_OP_READ, writes = NIXL_CAPI_XFER_OP_WRITE, device = NIXL_CAPI_MEM_VRAM;
#ifdef DLOPEN
    void *library = dlopen("libnixl_capi.so.0", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != 0);
    NIXL_FUNCTIONS(FIND)
#endif
    void *request;
    attach();
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuMemAlloc_v2(&p, 4 * BYTES));
    CHECK(cuMemAlloc_v2(&q, BYTES));
    if (!strcmp(how, "write")) {
        fill(p);
        if (waits) CHECK(cuStreamSynchronize(s));
        finish(post(transfer(writes, device, BYTES)));
    } else if (!strcmp(how, "small")) {
        fill(p);
        if (waits) CHECK(cuStreamSynchronize(s));
        REQUIRE(N(post_xfer_req)(&agent, transfer(writes, device, 64), 0) == 0);
    } else if (!strcmp(how, "reused") || !strcmp(how, "read")) {
        int is_read = !strcmp(how, "read");
        request = post(transfer(is_read ? reads : writes, device, BYTES));
        if (waits) finish(request);
        if (is_read) use(p);
        else fill(p);
        if (!waits) finish(request);
    } else if (!strcmp(how, "one-status")) {
        request = post(transfer(reads, device, BYTES));
        REQUIRE(N(get_xfer_status)(&agent, request) == NIXL_CAPI_IN_PROG);
        use(p);
        finish(request);
    } else if (!strcmp(how, "freed")) {
        request = post(transfer(reads, device, BYTES));
        if (waits) finish(request);
        CHECK(cuMemFree_v2(p));
        if (!waits) REQUIRE(N(release_xfer_req)(&agent, request) == 0);
    } else if (!strcmp(how, "again")) {
        request = transfer(writes, device, BYTES);
        finish(post(request));
        fill(p);
        CHECK(cuStreamSynchronize(s));
        post(request);
        if (waits) finish(request);
        fill(p);
        if (!waits) finish(request);
    } else if (!strcmp(how, "places") || !strcmp(how, "removed") || !strcmp(how, "others")) {
        /* Blocks 3, 2, 1, 0, of which the transfer names one. */
        void *local, *remote, *blocks = list(device, p + 3 * BYTES, BYTES);
        for (int block = 2; block >= 0; block--) REQUIRE(N(xfer_dlist_add_desc)(blocks, p + block * BYTES, BYTES, 0) == 0);
        if (!strcmp(how, "removed")) REQUIRE(N(xfer_dlist_rem_desc)(blocks, 0) == 0);
        REQUIRE(N(prep_xfer_dlist)(&agent, 0, blocks, &local, 0) == 0 && N(prep_xfer_dlist)(&agent, "peer", blocks, &remote, 0) == 0);
        int place = !strcmp(how, "removed") ? 1 : 2;
        REQUIRE(N(make_xfer_req)(&agent, reads, local, &place, 1, remote, &place, 1, &request, 0) == 0);
        post(request);
        use(p + 2 * BYTES);
        if (waits) finish(request);
        use(p + (strcmp(how, "others") ? BYTES : 0));
        if (!waits) finish(request);
    } else if (!strcmp(how, "released") || !strcmp(how, "destroyed")) {
        request = post(transfer(reads, device, BYTES));
        REQUIRE((!strcmp(how, "released") ? N(release_xfer_req)(&agent, request) : N(destroy_xfer_req)(request)) == 0);
        fill(p);
    } else if (!strcmp(how, "error")) {
        REQUIRE(N(post_xfer_req)(0, transfer(reads, device, BYTES), 0) == NIXL_CAPI_ERROR_BACKEND);
        fill(p);
    } else if (!strcmp(how, "files")) {
        request = post(transfer(writes, NIXL_CAPI_MEM_FILE, BYTES));
        fill(p);
        finish(request);
    } else if (!strcmp(how, "beside")) {
        request = post(transfer(writes, device, BYTES));
        use(p);
        fill(p + BYTES);
        finish(request);
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
