/* Blocks of a KV cache that an RDMA card sends and receives (ibverbs). The second word mends it.
 *   verbs sent [waits]       a send of what a stream may still write
 *   verbs written [waits]    an RDMA write of it
 *   verbs reused [waits]     a fill of what an RDMA write may still read
 *   verbs received [waits]   a use of what a message may still fill
 *   verbs read [waits]       a use of what an RDMA read may still fill
 *   verbs added [waits]      a use of what an atomic operation answers
 *   verbs freed [waits]      memory that an RDMA read may still fill is freed
 *   verbs shared [waits]     as received, from a queue that several pairs share
 *   verbs unsignalled [waits]  a fill of what unsignalled work reads; mended by the completion of later work
 *   verbs later [waits]      a fill of what work reads whose completion has not been polled, after one that has
 *   verbs host [waits]       as received, in pinned memory of the host
 *   verbs inline [waits]     data that a stream may still write is copied while it is posted
 *   verbs moved [waits]      as written, with memory that is named by other addresses
 *   verbs renamed [waits]    as moved, and the access to the memory was changed in between
 *   verbs replaced [waits]   as written, with a registration that was given other memory
 *   verbs kept [waits]       as moved; a new registration and an end of it failed in between
 *   verbs next-key [waits]   as written; the key was another's until the call that gave it back returned
 *   verbs next-pair [waits]  as received; so was the number of the pair
 *   verbs pair-kept [waits]  as received, in a pair that could not be destroyed
 *   verbs descriptor [waits] as written, with memory that is registered by a descriptor
 *   verbs thread [waits]     as reused; another thread polls
 *   verbs early [waits]      as written, with a device that was opened before CUDA was in use
 *   verbs told               a stream writes a value behind the fill, by which the host may know that it is over
 *   verbs told-early         it writes the value before the fill: a race
 *   verbs event, beside, other, pieces, copied, refused, failed, destroyed, reset, all, closed, looked-up   clean
 *   verbs extended, unknown, immediate, provider, builder, early-builder   clean, and what is not modelled is counted
 * With PLUGIN this is a library that a program opens. */
#include "common.h"
#include "fake/verbs.h"
#include <pthread.h>

#ifdef PLUGIN
#define main run
#endif
#define BYTES 4096ul

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr at, unsigned value, unsigned flags);

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static CUstream s;
static CUdeviceptr p, q;

static struct ibv_qp *make_pair(struct ibv_srq *srq, struct ibv_cq *completions, int all) {
    struct ibv_qp_init_attr attr = {.send_cq = completions, .recv_cq = completions, .srq = srq, .qp_type = 2, .sq_sig_all = all};
    return ibv_create_qp(pd, &attr);
}
static struct ibv_sge entry(uint64_t at, size_t bytes) { return (struct ibv_sge){at, bytes, mr->lkey}; }
static struct ibv_send_wr request(uint64_t number, int opcode, unsigned flags, struct ibv_sge *sge) {
    return (struct ibv_send_wr){.wr_id = number, .sg_list = sge, .num_sge = 1, .opcode = opcode, .send_flags = flags};
}
static void post(int opcode, uint64_t at, size_t bytes) {
    struct ibv_sge sge = entry(at, bytes);
    struct ibv_send_wr wr = request(7, opcode, IBV_SEND_SIGNALED, &sge), *bad = 0;
    REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
}
static struct ibv_wc poll_one(void) {
    struct ibv_wc wc = {0};
    while (ibv_poll_cq(cq, 1, &wc) == 0) usleep(200);
    return wc;
}
static void finish(void) { REQUIRE(poll_one().status == 0); }
static void *finish_there(void *unused) {
    finish();
    return unused;
}
static void finish_elsewhere(void) {
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, 0, finish_there, 0) && !pthread_join(thread, 0));
}
static void fill(CUdeviceptr at) { CHECK(cuMemsetD8Async(at, 1, BYTES, s)); }
static void use(CUdeviceptr at) { CHECK(cuMemcpyDtoDAsync_v2(q, at, 64, s)); }
/* A message to itself, of memory that nothing else uses. */
static void message(struct ibv_sge *sge) {
    struct ibv_send_wr wr = request(1, IBV_WR_SEND, 0, sge), *bad = 0;
    REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
}

/* Another thread's, while a call that destroys an object returns. */
static void register_again(void) { mr = ibv_reg_mr(pd, (void *)p, 4 * BYTES, IBV_ACCESS_LOCAL_WRITE); }
static void receive_again(void) {
    qp = make_pair(0, cq, 0);
    struct ibv_sge sge = entry(p, BYTES);
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad = 0;
    REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
}
static void *meanwhile_there(void *what) {
    ((void (*)(void))what)();
    return 0;
}
static void (*other_thread)(void);
static void meanwhile(void) {
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, 0, meanwhile_there, (void *)other_thread) && !pthread_join(thread, 0));
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "sent";
    int waits = argc > 2;
    int is_early = !strcmp(how, "early") || !strcmp(how, "early-builder");
    if (!is_early) attach();
    struct ibv_context *(*open)(struct ibv_device *) = ibv_open_device;
    if (!strcmp(how, "looked-up")) {
        /* As NCCL does, whose devices are its own. */
        void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
        REQUIRE(library && (open = (struct ibv_context * (*)(struct ibv_device *)) dlsym(library, "ibv_open_device")));
    }
    context = open((struct ibv_device *)&context);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, 0, 0, 0);
    qp = make_pair(0, cq, !strcmp(how, "all"));
    if (!strcmp(how, "early-builder")) REQUIRE(ibv_qp_to_qp_ex(qp));
    if (is_early) attach();
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuMemAlloc_v2(&p, 4 * BYTES));
    CHECK(cuMemAlloc_v2(&q, 2 * BYTES));
    mr = ibv_reg_mr(pd, (void *)p, 4 * BYTES, IBV_ACCESS_LOCAL_WRITE);
    REQUIRE(context && pd && cq && qp && mr);
    struct ibv_sge sge = entry(p, BYTES), quiet = entry(p + 3 * BYTES, 64);
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad = 0;
    struct ibv_send_wr *bad_send = 0;
    if (!strcmp(how, "sent") || !strcmp(how, "written") || !strcmp(how, "early") || !strcmp(how, "looked-up")) {
        fill(p);
        if (waits) CHECK(cuStreamSynchronize(s));
        post(!strcmp(how, "sent") ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, p, BYTES);
        finish();
    } else if (!strcmp(how, "told") || !strcmp(how, "told-early")) {
        void *flag;
        CHECK(cuMemHostAlloc(&flag, 64, 0));
        if (!strcmp(how, "told-early")) CHECK(cuStreamWriteValue32_v2(s, (CUdeviceptr)flag, 1, 0));
        fill(p);
        if (!strcmp(how, "told")) CHECK(cuStreamWriteValue32_v2(s, (CUdeviceptr)flag, 1, 0));
        while (*(volatile unsigned *)flag != 1) usleep(200);
        post(IBV_WR_SEND, p, BYTES);
        finish();
    } else if (!strcmp(how, "event")) {
        CUevent event;
        CHECK(cuEventCreate(&event, 2));
        fill(p);
        CHECK(cuEventRecord(event, s));
        while (cuEventQuery(event)) usleep(200);
        post(IBV_WR_SEND, p, BYTES);
        finish();
    } else if (!strcmp(how, "reused")) {
        post(IBV_WR_RDMA_WRITE, p, BYTES);
        if (waits) finish();
        fill(p);
        if (!waits) finish();
    } else if (!strcmp(how, "thread")) {
        post(IBV_WR_RDMA_WRITE, p, BYTES);
        if (waits) finish_elsewhere();
        fill(p);
        if (!waits) finish_elsewhere();
    } else if (!strcmp(how, "received")) {
        REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
        message(&quiet);
        if (waits) finish();
        use(p);
        if (!waits) finish();
    } else if (!strcmp(how, "read") || !strcmp(how, "added")) {
        post(!strcmp(how, "read") ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD, p, !strcmp(how, "read") ? BYTES : 8);
        if (waits) finish();
        use(p);
        if (!waits) finish();
    } else if (!strcmp(how, "freed")) {
        post(IBV_WR_RDMA_READ, p, BYTES);
        if (waits) finish();
        CHECK(cuMemFree_v2(p));
        if (!waits) finish();
    } else if (!strcmp(how, "shared")) {
        struct ibv_srq *srq = fake_create_srq(pd);
        qp = make_pair(srq, cq, 0);
        REQUIRE(ibv_post_srq_recv(srq, &wr, &bad) == 0);
        message(&quiet);
        if (waits) finish();
        use(p);
        if (!waits) finish();
    } else if (!strcmp(how, "unsignalled") || !strcmp(how, "later")) {
        /* A chain of three: the first says nothing, the second and the third do. */
        struct ibv_sge second = entry(p + BYTES, BYTES), third = entry(p + 2 * BYTES, BYTES);
        struct ibv_send_wr c = request(3, IBV_WR_SEND, IBV_SEND_SIGNALED, &third);
        struct ibv_send_wr b = request(2, IBV_WR_SEND, IBV_SEND_SIGNALED, &second);
        struct ibv_send_wr a = request(1, IBV_WR_SEND, 0, &sge);
        b.next = &c, a.next = &b;
        REQUIRE(ibv_post_send(qp, &a, &bad_send) == 0);
        int is_later = !strcmp(how, "later");
        if (is_later || waits) REQUIRE(poll_one().wr_id == 2);
        if (is_later && waits) REQUIRE(poll_one().wr_id == 3);
        fill(is_later ? p + 2 * BYTES : p);
        if (!is_later && !waits) REQUIRE(poll_one().wr_id == 2);
        if (!(is_later && waits)) REQUIRE(poll_one().wr_id == 3);
    } else if (!strcmp(how, "host")) {
        void *host;
        CHECK(cuMemHostAlloc(&host, BYTES, 0));
        mr = ibv_reg_mr(pd, host, BYTES, IBV_ACCESS_LOCAL_WRITE);
        post(IBV_WR_RDMA_READ, (uint64_t)host, BYTES);
        if (waits) finish();
        CHECK(cuMemcpyHtoDAsync_v2(p, host, BYTES, s));
        if (!waits) finish();
    } else if (!strcmp(how, "inline")) {
        void *host;
        CHECK(cuMemHostAlloc(&host, BYTES, 0));
        CHECK(cuMemcpyDtoHAsync_v2(host, p, 64, s));
        if (waits) CHECK(cuStreamSynchronize(s));
        struct ibv_sge small = {(uint64_t)host, 64, 0};
        struct ibv_send_wr copied = request(7, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_INLINE, &small);
        REQUIRE(ibv_post_send(qp, &copied, &bad_send) == 0);
        finish();
    } else if (!strcmp(how, "copied")) {
        /* The buffer of inline data can be used again at once. */
        void *host;
        CHECK(cuMemHostAlloc(&host, BYTES, 0));
        struct ibv_sge small = {(uint64_t)host, 64, 0};
        struct ibv_send_wr copied = request(7, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_INLINE, &small);
        REQUIRE(ibv_post_send(qp, &copied, &bad_send) == 0);
        CHECK(cuMemcpyDtoHAsync_v2(host, p, 64, s));
        finish();
    } else if (!strcmp(how, "moved") || !strcmp(how, "renamed") || !strcmp(how, "kept")) {
        mr = ibv_reg_mr_iova(pd, (void *)p, 4 * BYTES, 0x10000, IBV_ACCESS_LOCAL_WRITE);
        if (!strcmp(how, "renamed")) REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, 0, 0) == 0);
        if (!strcmp(how, "kept")) {
            REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, 0, (void *)q, 666, 0) == -1);
            fake_is_busy = 1;
            REQUIRE(ibv_dereg_mr(mr) == EBUSY);
        }
        fill(p + BYTES);
        if (waits) CHECK(cuStreamSynchronize(s));
        post(IBV_WR_RDMA_WRITE, 0x10000 + BYTES, BYTES);
        finish();
    } else if (!strcmp(how, "replaced")) {
        mr = ibv_reg_mr_iova(pd, (void *)q, BYTES, 0x10000, IBV_ACCESS_LOCAL_WRITE);
        REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, 0, (void *)p, 4 * BYTES, 0) == 0);
        fill(p + BYTES);
        if (waits) CHECK(cuStreamSynchronize(s));
        post(IBV_WR_RDMA_WRITE, p + BYTES, BYTES);
        finish();
    } else if (!strcmp(how, "next-key")) {
        other_thread = register_again, fake_meanwhile = meanwhile;
        REQUIRE(ibv_dereg_mr(mr) == 0);
        fill(p);
        if (waits) CHECK(cuStreamSynchronize(s));
        post(IBV_WR_RDMA_WRITE, p, BYTES);
        finish();
    } else if (!strcmp(how, "next-pair")) {
        struct ibv_sge before = entry(p + 2 * BYTES, BYTES);
        wr.sg_list = &before;
        REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
        other_thread = receive_again, fake_meanwhile = meanwhile;
        REQUIRE(ibv_destroy_qp(qp) == 0);
        message(&quiet);
        if (waits) finish();
        use(p);
        if (!waits) finish();
    } else if (!strcmp(how, "pair-kept")) {
        REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
        fake_is_busy = 1;
        REQUIRE(ibv_destroy_qp(qp) == EBUSY);
        message(&quiet);
        if (waits) finish();
        use(p);
        if (!waits) finish();
    } else if (!strcmp(how, "descriptor")) {
        mr = ibv_reg_dmabuf_mr(pd, 0, 4 * BYTES, p, 5, IBV_ACCESS_LOCAL_WRITE);
        fill(p + BYTES);
        if (waits) CHECK(cuStreamSynchronize(s));
        post(IBV_WR_RDMA_WRITE, p + BYTES, BYTES);
        finish();
    } else if (!strcmp(how, "beside")) {
        post(IBV_WR_RDMA_WRITE, p, BYTES);
        use(p);
        finish();
    } else if (!strcmp(how, "other")) {
        post(IBV_WR_RDMA_READ, p, BYTES);
        fill(p + BYTES);
        finish();
    } else if (!strcmp(how, "pieces")) {
        struct ibv_sge two[2] = {entry(p, BYTES), entry(p + 2 * BYTES, BYTES)};
        struct ibv_send_wr both = request(7, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, two);
        both.num_sge = 2;
        REQUIRE(ibv_post_send(qp, &both, &bad_send) == 0);
        fill(p + BYTES);
        finish();
        fill(p + 2 * BYTES);
    } else if (!strcmp(how, "refused")) {
        /* The second of a chain is refused, and the third is never looked at. */
        struct ibv_sge second = entry(p + BYTES, BYTES), third = entry(p + 2 * BYTES, BYTES);
        struct ibv_send_wr c = request(7, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, &third);
        struct ibv_send_wr b = request(666, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, &second);
        struct ibv_send_wr a = request(7, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, &sge);
        b.next = &c, a.next = &b;
        REQUIRE(ibv_post_send(qp, &a, &bad_send) == ENOMEM && bad_send == &b);
        fill(p + BYTES), fill(p + 2 * BYTES);
        finish();
        fill(p);
        CHECK(cuStreamSynchronize(s));
        wr.wr_id = 666;
        REQUIRE(ibv_post_recv(qp, &wr, &bad) == ENOMEM && bad == &wr);
        fill(p);
    } else if (!strcmp(how, "failed")) {
        /* A completion with an error is one, too: without a valid opcode, and of work that asked for none. */
        struct ibv_send_wr broken = request(7, IBV_WR_RDMA_READ, 0, &sge);
        broken.atomic.rkey = 0xdead;
        REQUIRE(ibv_post_send(qp, &broken, &bad_send) == 0);
        REQUIRE(poll_one().status == 10);
        fill(p);
    } else if (!strcmp(how, "destroyed") || !strcmp(how, "reset")) {
        REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
        if (!strcmp(how, "reset")) REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
        else REQUIRE(ibv_destroy_qp(qp) == 0);
        fill(p);
    } else if (!strcmp(how, "all")) {
        /* The pair signals all work, with numbers that say nothing. */
        for (int i = 0; i < 3; i++) {
            struct ibv_sge one = entry(p + i * BYTES, BYTES);
            struct ibv_send_wr each = request(0, IBV_WR_SEND, 0, &one);
            REQUIRE(ibv_post_send(qp, &each, &bad_send) == 0);
        }
        for (int i = 0; i < 3; i++) finish(), fill(p + i * BYTES);
    } else if (!strcmp(how, "closed")) {
        REQUIRE(ibv_dereg_mr(mr) == 0 && ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_close_device(context) == 0);
    } else if (!strcmp(how, "extended")) {
        /* Completions that ibv_poll_cq does not read. */
        qp = make_pair(0, fake_create_cq_ex(context), 0);
        post(IBV_WR_RDMA_READ, p, BYTES);
        REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
        fill(p);
    } else if (!strcmp(how, "unknown")) {
        sge.lkey = 1;
        struct ibv_send_wr unknown = request(7, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, &sge);
        REQUIRE(ibv_post_send(qp, &unknown, &bad_send) == 0);
        fill(p);
        finish();
    } else if (!strcmp(how, "immediate")) {
        REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
        post(IBV_WR_RDMA_WRITE_WITH_IMM, p + BYTES, 64);
        finish(), finish();
        fill(p);
    } else if (!strcmp(how, "provider")) {
        post(IBV_WR_DRIVER1, p, BYTES);
        fill(p);
        finish();
    } else if (!strcmp(how, "builder")) {
        REQUIRE(ibv_qp_to_qp_ex(qp));
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
