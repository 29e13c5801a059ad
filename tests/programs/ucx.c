/* Memory that UCX sends and receives. The second word mends it.
 *   ucx sent, put, stream, message [waits]   a message of what a stream may still write
 *   ucx small [waits]          the same, of a message that is sent at once
 *   ucx reused [waits]         a fill of what a put may still read; mended by asking for its status
 *   ucx flushed [waits]        the same, mended by a flush of the endpoint; the request itself was given back
 *   ucx worker [waits]         the same, mended by a flush of the worker
 *   ucx received, get, stream-received [waits]   a use of what may still be filled
 *   ucx callback [waits]       the same, mended by a callback
 *   ucx list [waits]           a use of the second of two pieces
 *   ucx reply [waits]          a use of what an atomic operation answers
 *   ucx freed [waits]          memory that a get may still fill is freed
 *   ucx later [waits]          one of two puts is over; mended by the other's end
 *   ucx early [waits]          as callback, with a worker that was made before CUDA was in use
 *   ucx immediate, elements, handler, early-handler, in-callback, data, error, closed, destroyed, beside   clean
 *   ucx generic, older, early-older, implicit   clean, and what is not modelled is counted
 * With DLOPEN the functions are looked up by name in a library that is opened; with PLUGIN this is a library that a program opens. */
#include "common.h"
#include "fake/ucx.h"

#define DECLARE(type, name, arguments) type name arguments;
#define DEFINE(type, name, arguments) static type(*p_##name) arguments;
#define FIND(type, name, arguments)                                                                                   \
    p_##name = (type(*) arguments)dlsym(library, #name);                                                              \
    REQUIRE(p_##name != 0);
#ifdef DLOPEN
UCX_FUNCTIONS(DEFINE)
#define U(name) p_##name
#else
UCX_FUNCTIONS(DECLARE)
#define U(name) name
#endif
#ifdef PLUGIN
#define main run
#endif
#define BYTES 4096ul

static CUstream s;
static CUdeviceptr p, q;
static ucp_worker_h worker;
static ucp_ep_h ep;
static int called;

static void finish(void *request) {
    REQUIRE(request && !UCS_PTR_IS_ERR(request));
    while (U(ucp_request_check_status)(request) == UCS_INPROGRESS) U(ucp_worker_progress)(worker);
    U(ucp_request_free)(request);
}
static void fill(CUdeviceptr at) { CHECK(cuMemsetD8Async(at, 1, BYTES, s)); }
static void use(CUdeviceptr at) { CHECK(cuMemcpyDtoDAsync_v2(q, at, 8, s)); }
static void on_receive(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *data) {
    REQUIRE(request && status == UCS_OK && info->length == BYTES && data == &called);
    called = 1;
}
static void on_send(void *request, ucs_status_t status, void *data) {
    REQUIRE(request && status == UCS_OK && !data);
    CHECK(cuStreamSynchronize(s));
    called = 1;
}
static void on_stream(void *request, ucs_status_t status, size_t length, void *data) {
    REQUIRE(request && status == UCS_OK && length == BYTES && data == &p);
    called = 1;
}
static void on_older(void *request, ucs_status_t status) {
    REQUIRE(request && status == UCS_OK);
    called = 1;
}
static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length, const void *param) {
    REQUIRE(arg == &called && !header && !header_length && !data && !length && !param);
    CHECK(cuStreamSynchronize(s));
    called = 1;
    return UCS_OK;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "sent";
    int waits = argc > 2;
#ifdef DLOPEN
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != 0);
    UCX_FUNCTIONS(FIND)
    REQUIRE(!dlsym(library, "ucp_no_such_function"));
#endif
    ucp_context_h context;
    ucp_request_param_t plain = {0}, back = {UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA};
    int is_early = !strcmp(how, "early") || !strcmp(how, "early-handler") || !strcmp(how, "early-older");
    if (!is_early) attach();
    REQUIRE(U(ucp_init_version)(1, 13, 0, 0, &context) == UCS_OK && U(ucp_worker_create)(context, 0, &worker) == UCS_OK);
    REQUIRE(U(ucp_ep_create)(worker, 0, &ep) == UCS_OK);
    ucp_am_handler_param_t handler = {15, 1, 0, on_message, &called};
    if (!strcmp(how, "early-handler")) REQUIRE(U(ucp_worker_set_am_recv_handler)(worker, &handler) == UCS_OK);
    if (!strcmp(how, "early-older")) REQUIRE(U(ucp_tag_send_nb)(ep, &plain, sizeof plain, ucp_dt_make_contig(1), 7, on_older));
    if (is_early) attach();
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuMemAlloc_v2(&p, 2 * BYTES));
    CHECK(cuMemAlloc_v2(&q, 2 * BYTES));
    void *at = (void *)p, *request;
    if (!strcmp(how, "sent") || !strcmp(how, "put") || !strcmp(how, "stream") || !strcmp(how, "message")) {
        fill(p);
        if (waits) CHECK(cuStreamSynchronize(s));
        if (!strcmp(how, "sent")) finish(U(ucp_tag_send_nbx)(ep, at, BYTES, 7, &plain));
        else if (!strcmp(how, "put")) finish(U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain));
        else if (!strcmp(how, "stream")) finish(U(ucp_stream_send_nbx)(ep, at, BYTES, &plain));
        else finish(U(ucp_am_send_nbx)(ep, 1, 0, 0, at, BYTES, &plain));
    } else if (!strcmp(how, "small")) {
        fill(p);
        if (waits) CHECK(cuStreamSynchronize(s));
        REQUIRE(!U(ucp_tag_send_nbx)(ep, at, 64, 7, &plain));
    } else if (!strcmp(how, "reused")) {
        request = U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain);
        if (waits) finish(request);
        fill(p);
        if (!waits) finish(request);
    } else if (!strcmp(how, "flushed") || !strcmp(how, "worker")) {
        U(ucp_request_free)(U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain));
        request = !strcmp(how, "flushed") ? U(ucp_ep_flush_nbx)(ep, &plain) : U(ucp_worker_flush_nbx)(worker, &plain);
        if (waits) finish(request);
        fill(p);
        if (!waits) finish(request);
    } else if (!strcmp(how, "received") || !strcmp(how, "get")) {
        request = !strcmp(how, "get") ? U(ucp_get_nbx)(ep, at, BYTES, 0x1000, 0, &plain)
                                      : U(ucp_tag_recv_nbx)(worker, at, BYTES, 7, ~0ull, &plain);
        if (waits) finish(request);
        use(p);
        if (!waits) finish(request);
    } else if (!strcmp(how, "callback") || !strcmp(how, "early")) {
        back.cb.recv = on_receive, back.user_data = &called;
        request = U(ucp_tag_recv_nbx)(worker, at, BYTES, 7, ~0ull, &back);
        while (waits && !called) U(ucp_worker_progress)(worker);
        use(p);
        while (!called) U(ucp_worker_progress)(worker);
        U(ucp_request_free)(request);
    } else if (!strcmp(how, "stream-received")) {
        size_t length;
        back.cb.recv_stream = on_stream, back.user_data = &p;
        request = U(ucp_stream_recv_nbx)(ep, at, BYTES, &length, &back);
        while (waits && !called) U(ucp_worker_progress)(worker);
        use(p);
        while (!called) U(ucp_worker_progress)(worker);
        U(ucp_request_free)(request);
    } else if (!strcmp(how, "list")) {
        ucp_dt_iov_t pieces[2] = {{at, 64}, {(void *)(p + BYTES), 64}};
        plain.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, plain.datatype = ucp_dt_make_iov();
        request = U(ucp_tag_recv_nbx)(worker, pieces, 2, 7, ~0ull, &plain);
        use(p + 64);
        if (waits) finish(request);
        use(p + BYTES);
        if (!waits) finish(request);
    } else if (!strcmp(how, "reply")) {
        plain.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        plain.datatype = ucp_dt_make_contig(8), plain.reply_buffer = (void *)(p + BYTES);
        uint64_t one = 1;
        request = U(ucp_atomic_op_nbx)(ep, 0, &one, 1, 0x1000, 0, &plain);
        if (waits) finish(request);
        use(p + BYTES);
        if (!waits) finish(request);
    } else if (!strcmp(how, "freed")) {
        request = U(ucp_get_nbx)(ep, at, BYTES, 0x1000, 0, &plain);
        if (waits) finish(request);
        CHECK(cuMemFree_v2(p));
        if (!waits) U(ucp_worker_destroy)(worker);
    } else if (!strcmp(how, "later")) {
        request = U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain);
        void *second = U(ucp_put_nbx)(ep, (void *)(p + BYTES), BYTES, 0x1000, 0, &plain);
        finish(request);
        if (waits) finish(second);
        fill(p + BYTES);
        if (!waits) finish(second);
    } else if (!strcmp(how, "immediate")) {
        back.cb.send = on_send;
        REQUIRE(!U(ucp_tag_send_nbx)(ep, at, 64, 7, &back) && !called);
        fill(p);
    } else if (!strcmp(how, "elements")) {
        plain.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, plain.datatype = ucp_dt_make_contig(16);
        request = U(ucp_put_nbx)(ep, at, BYTES / 16, 0x1000, 0, &plain);
        fill(p + BYTES);
        finish(request);
    } else if (!strcmp(how, "handler") || !strcmp(how, "early-handler")) {
        /* What a handler waits for is over: its calls are the program's. */
        if (!is_early) REQUIRE(U(ucp_worker_set_am_recv_handler)(worker, &handler) == UCS_OK);
        request = U(ucp_am_send_nbx)(ep, 1, 0, 0, (void *)q, 128, &plain);
        fill(p);
        finish(request);
        REQUIRE(called);
        finish(U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain));
    } else if (!strcmp(how, "in-callback")) {
        back.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, back.cb.send = on_send;
        request = U(ucp_put_nbx)(ep, (void *)q, BYTES, 0x1000, 0, &back);
        fill(p);
        while (!called) U(ucp_worker_progress)(worker);
        U(ucp_request_free)(request);
        finish(U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain));
    } else if (!strcmp(how, "data")) {
        /* The callback of one operation says nothing of another. */
        back.cb.recv = on_receive, back.user_data = &called;
        request = U(ucp_tag_recv_nbx)(worker, at, BYTES, 7, ~0ull, &back);
        void *second = U(ucp_tag_recv_nbx)(worker, (void *)(p + BYTES), BYTES, 7, ~0ull, &plain);
        while (!called) U(ucp_worker_progress)(worker);
        use(p);
        finish(second);
        U(ucp_request_free)(request);
    } else if (!strcmp(how, "error")) {
        REQUIRE(UCS_PTR_IS_ERR(U(ucp_get_nbx)(0, at, BYTES, 0x1000, 0, &plain)));
        fill(p);
    } else if (!strcmp(how, "closed")) {
        REQUIRE(U(ucp_tag_send_nbx)(ep, at, BYTES, 7, &plain));
        finish(U(ucp_ep_close_nbx)(ep, &plain));
        fill(p);
    } else if (!strcmp(how, "destroyed")) {
        REQUIRE(U(ucp_tag_recv_nbx)(worker, at, BYTES, 7, ~0ull, &plain));
        U(ucp_worker_destroy)(worker);
        fill(p);
    } else if (!strcmp(how, "beside")) {
        request = U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain);
        use(p);
        fill(p + BYTES);
        finish(request);
    } else if (!strcmp(how, "generic")) {
        plain.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, plain.datatype = FAKE_GENERIC;
        request = U(ucp_tag_recv_nbx)(worker, at, 1, 7, ~0ull, &plain);
        fill(p);
        finish(request);
    } else if (!strcmp(how, "early-older")) {
        while (!called) U(ucp_worker_progress)(worker);
        request = U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain);
        fill(p);
        finish(request);
    } else if (!strcmp(how, "older")) {
        /* All of UCX is left alone from here on, what was under way included. */
        request = U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain);
        void *older = U(ucp_tag_send_nb)(ep, (void *)q, BYTES, ucp_dt_make_contig(1), 7, on_older);
        fill(p);
        while (!called) U(ucp_worker_progress)(worker);
        U(ucp_request_free)(older);
        finish(request);
        fill(p);
        request = U(ucp_put_nbx)(ep, at, BYTES, 0x1000, 0, &plain);
        fill(p);
        finish(request);
    } else if (!strcmp(how, "implicit")) {
        REQUIRE(U(ucp_put_nbi)(ep, at, BYTES, 0x1000, 0) == UCS_OK);
        fill(p);
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
