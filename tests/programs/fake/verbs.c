/* A stand-in for libibverbs.so.1 with one device, whose queue pairs are connected to themselves: what is sent is received by the same
 * pair. A thread does the work that is posted, in order, and fills the completion queues. It touches no memory. Key 0xdead is an error of
 * the work that names it as the peer's; work with number 666 and what follows it in its chain is refused. */
#include "verbs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct queue {
    uint64_t numbers[64];
    int first, last;
};
struct completions {
    struct ibv_cq cq;
    struct ibv_wc entries[64];
    int first, last;
};
struct shared {
    struct ibv_srq srq;
    struct queue receives;
};
struct pair {
    struct ibv_qp qp;
    int signals_all;
    struct queue receives;
};
struct work {
    struct pair *pair;
    struct ibv_send_wr wr;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct work posted[256];
static int done, end;
static uint32_t next_key = 0x100, next_pair = 40;

static void complete(struct ibv_cq *cq, struct ibv_wc wc) {
    struct completions *to = (struct completions *)cq;
    to->entries[to->last++ % 64] = wc;
}
static void execute(struct work *work) {
    struct pair *pair = work->pair;
    struct ibv_send_wr *wr = &work->wr;
    static const int opcodes[] = {1, 1, 0, 0, 2, 3, 4, 0, 0, 0, 0, 0};
    int is_bad = wr->atomic.rkey == 0xdead;
    struct ibv_wc wc = {.wr_id = wr->wr_id, .status = is_bad ? 10 : 0, .opcode = is_bad ? 0x55 : opcodes[wr->opcode], .qp_num = pair->qp.qp_num};
    int receives = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct queue *from = pair->qp.srq ? &((struct shared *)pair->qp.srq)->receives : &pair->receives;
    if (!is_bad && receives && from->first < from->last) {
        struct ibv_wc got = {.wr_id = from->numbers[from->first++ % 64], .qp_num = pair->qp.qp_num};
        got.opcode = wr->opcode == IBV_WR_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
        complete(pair->qp.recv_cq, got);
    }
    if (is_bad || pair->signals_all || wr->send_flags & IBV_SEND_SIGNALED) complete(pair->qp.send_cq, wc);
}
static void *card(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (done == end) pthread_cond_wait(&more, &lock);
        execute(&posted[done++ % 256]);
    }
    return unused;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    int result = 0;
    pthread_mutex_lock(&lock);
    for (; wr && !result; wr = result ? wr : wr->next) {
        if (wr->wr_id == 666) *bad = wr, result = ENOMEM;
        else posted[end++ % 256] = (struct work){(struct pair *)qp, *wr};
    }
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
    return result;
}
static int receive(struct queue *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    int result = 0;
    pthread_mutex_lock(&lock);
    for (; wr && !result; wr = result ? wr : wr->next) {
        if (wr->wr_id == 666) *bad = wr, result = ENOMEM;
        else to->numbers[to->last++ % 64] = wr->wr_id;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return receive(&((struct pair *)qp)->receives, wr, bad);
}
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return receive(&((struct shared *)srq)->receives, wr, bad);
}
static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc) {
    struct completions *from = (struct completions *)cq;
    int found = 0;
    pthread_mutex_lock(&lock);
    while (found < most && from->first < from->last) wc[found++] = from->entries[from->first++ % 64];
    pthread_mutex_unlock(&lock);
    return found;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
    static int is_running;
    pthread_t thread;
    if (!is_running++) pthread_create(&thread, 0, card, 0);
    struct ibv_context *context = calloc(1, sizeof *context);
    context->device = device;
    context->ops.poll_cq = poll_cq;
    context->ops.post_srq_recv = post_srq_recv;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    return context;
}
int ibv_close_device(struct ibv_context *context) {
    /* The provider's own operations are back where they were. */
    int is_own = context->ops.poll_cq == poll_cq && context->ops.post_send == post_send && context->ops.post_recv == post_recv;
    free(context);
    return is_own ? 0 : EINVAL;
}
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    pd->context = context;
    return pd;
}
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    struct ibv_mr *mr = malloc(sizeof *mr);
    (void)access;
    *mr = (struct ibv_mr){pd->context, pd, addr, length, 0, next_key, next_key};
    next_key++;
    return mr;
}
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access) {
    (void)iova;
    return ibv_reg_mr(pd, addr, length, access);
}
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access) {
    (void)iova, (void)fd;
    struct ibv_mr *mr = malloc(sizeof *mr);
    (void)access;
    *mr = (struct ibv_mr){pd->context, pd, (void *)offset, length, 0, next_key, next_key};
    next_key++;
    return mr;
}
/* Without a new translation the names stay what they are. */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access) {
    (void)access;
    if (length == 666) return -1;
    if (flags & IBV_REREG_MR_CHANGE_PD) mr->pd = pd;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) mr->addr = addr, mr->length = length;
    return 0;
}
/* Nothing can be destroyed. */
int fake_is_busy;
/* What another thread does once an object is destroyed and before the call has returned. */
void (*fake_meanwhile)(void);
static void meanwhile(void) {
    if (fake_meanwhile) fake_meanwhile();
}
int ibv_dereg_mr(struct ibv_mr *mr) {
    if (fake_is_busy) return EBUSY;
    next_key = mr->lkey;
    free(mr);
    meanwhile();
    return 0;
}
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, void *channel, int vector) {
    struct completions *queue = calloc(1, sizeof *queue);
    (void)vector;
    queue->cq = (struct ibv_cq){context, channel, cq_context, 0, cqe};
    return &queue->cq;
}
/* As the header's inline ibv_create_cq_ex: through no symbol that is observed. */
struct ibv_cq *fake_create_cq_ex(struct ibv_context *context) {
    struct completions *queue = calloc(1, sizeof *queue);
    queue->cq.context = context;
    return &queue->cq;
}
int ibv_destroy_cq(struct ibv_cq *cq) {
    free(cq);
    return 0;
}
struct ibv_srq *fake_create_srq(struct ibv_pd *pd) {
    struct shared *shared = calloc(1, sizeof *shared);
    shared->srq.context = pd->context;
    shared->srq.pd = pd;
    return &shared->srq;
}
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    struct pair *pair = calloc(1, sizeof *pair);
    pair->qp = (struct ibv_qp){pd->context, attr->qp_context, pd, attr->send_cq, attr->recv_cq, attr->srq, 0, next_pair++, 3, attr->qp_type};
    pair->signals_all = attr->sq_sig_all;
    return &pair->qp;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
    if (mask & IBV_QP_STATE) qp->state = attr->qp_state;
    return 0;
}
/* Work may still name it. */
int ibv_destroy_qp(struct ibv_qp *qp) {
    if (fake_is_busy) return EBUSY;
    next_pair = qp->qp_num;
    meanwhile();
    return 0;
}
void *ibv_qp_to_qp_ex(struct ibv_qp *qp) { return qp; }
