/* What the tests need of ibverbs: the parts of infiniband/verbs.h that programs compile in, with rdma-core's layouts and numbers
 * (the assertions: those of version 44). */
#ifndef VERBS_MINI_H
#define VERBS_MINI_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_device;
struct ibv_context;
struct ibv_qp;
struct ibv_cq;
struct ibv_srq;
struct ibv_send_wr;
struct ibv_recv_wr;
struct ibv_wc;

struct ibv_context_ops {
    void *before_poll_cq[11];
    int (*poll_cq)(struct ibv_cq *cq, int most, struct ibv_wc *wc);
    void *before_post_srq_recv[8];
    int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
    void *before_post_send[4];
    int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
    int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
    void *after_post_recv[5];
};
struct ibv_context {
    struct ibv_device *device;
    struct ibv_context_ops ops;
    int cmd_fd, async_fd, num_comp_vectors;
    pthread_mutex_t mutex;
    void *abi_compat;
};
struct ibv_pd {
    struct ibv_context *context;
    uint32_t handle;
};
struct ibv_mr {
    struct ibv_context *context;
    struct ibv_pd *pd;
    void *addr;
    size_t length;
    uint32_t handle, lkey, rkey;
};
struct ibv_cq {
    struct ibv_context *context;
    void *channel, *cq_context;
    uint32_t handle;
    int cqe;
};
struct ibv_srq {
    struct ibv_context *context;
    void *srq_context;
    struct ibv_pd *pd;
    uint32_t handle;
};
struct ibv_qp {
    struct ibv_context *context;
    void *qp_context;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    uint32_t handle, qp_num;
    int state, qp_type;
};
struct ibv_qp_init_attr {
    void *qp_context;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    uint32_t cap[5];
    int qp_type, sq_sig_all;
};
struct ibv_qp_attr {
    int qp_state;
    char others[140];
};
struct ibv_sge {
    uint64_t addr;
    uint32_t length, lkey;
};
struct ibv_send_wr {
    uint64_t wr_id;
    struct ibv_send_wr *next;
    struct ibv_sge *sg_list;
    int num_sge, opcode;
    unsigned send_flags;
    uint32_t imm_data;
    struct {
        uint64_t remote_addr, compare_add, swap;
        uint32_t rkey;
    } atomic;
    uint32_t remote_srqn;
    char bind_mw[48];
};
struct ibv_recv_wr {
    uint64_t wr_id;
    struct ibv_recv_wr *next;
    struct ibv_sge *sg_list;
    int num_sge;
};
struct ibv_wc {
    uint64_t wr_id;
    int status, opcode;
    uint32_t vendor_err, byte_len, imm_data, qp_num, src_qp;
    unsigned wc_flags;
    uint16_t pkey_index, slid;
    uint8_t sl, dlid_path_bits;
};
_Static_assert(sizeof(struct ibv_context_ops) == 256 && offsetof(struct ibv_context, ops.poll_cq) == 96, "the header's");
_Static_assert(offsetof(struct ibv_context, ops.post_send) == 208 && offsetof(struct ibv_context, ops.post_recv) == 216, "the header's");
_Static_assert(offsetof(struct ibv_context, ops.post_srq_recv) == 168 && sizeof(struct ibv_context) == 328, "the header's");
_Static_assert(offsetof(struct ibv_qp, qp_num) == 52 && sizeof(struct ibv_qp_init_attr) == 64 && sizeof(struct ibv_qp_attr) == 144, "the header's");
_Static_assert(sizeof(struct ibv_send_wr) == 128 && offsetof(struct ibv_send_wr, opcode) == 28, "the header's");
_Static_assert(sizeof(struct ibv_recv_wr) == 32 && sizeof(struct ibv_wc) == 48 && sizeof(struct ibv_mr) == 48, "the header's");

enum {
    IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM,
    IBV_WR_RDMA_READ,
    IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_DRIVER1 = 11
};
enum { IBV_SEND_SIGNALED = 2, IBV_SEND_INLINE = 8 };
enum { IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR = 5, IBV_WC_RECV = 128, IBV_WC_RECV_RDMA_WITH_IMM };
enum { IBV_QP_STATE = 1, IBV_QPS_RESET = 0 };
enum { IBV_ACCESS_LOCAL_WRITE = 1, IBV_ACCESS_ZERO_BASED = 32 };
enum { IBV_REREG_MR_CHANGE_TRANSLATION = 1, IBV_REREG_MR_CHANGE_PD = 2, IBV_REREG_MR_CHANGE_ACCESS = 4 };

struct ibv_context *ibv_open_device(struct ibv_device *device);
int ibv_close_device(struct ibv_context *context);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access);
int ibv_dereg_mr(struct ibv_mr *mr);
extern void (*fake_meanwhile)(void);
extern int fake_is_busy;
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, void *channel, int vector);
int ibv_destroy_cq(struct ibv_cq *cq);
struct ibv_srq *fake_create_srq(struct ibv_pd *pd);
struct ibv_cq *fake_create_cq_ex(struct ibv_context *context);
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ibv_destroy_qp(struct ibv_qp *qp);
void *ibv_qp_to_qp_ex(struct ibv_qp *qp);

/* As the header's inline functions: calls through the table of the context. */
static inline int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    return qp->context->ops.post_send(qp, wr, bad);
}
static inline int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return qp->context->ops.post_recv(qp, wr, bad);
}
static inline int ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return srq->context->ops.post_srq_recv(srq, wr, bad);
}
static inline int ibv_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc) { return cq->context->ops.poll_cq(cq, most, wc); }
#endif
