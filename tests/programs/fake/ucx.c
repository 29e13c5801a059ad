/* A stand-in for libucp.so.0. Up to 64 bytes are sent at once; everything else completes in ucp_worker_progress, one operation a call and
 * in order. What is received it writes as UCX does without GPUDirect: by copies on a stream of its own. An endpoint of 0 is an error. */
#include "ucx.h"
#include "cuda_mini.h"
#include <stdlib.h>

struct ucp_worker {
    ucp_am_handler_param_t handler;
};
struct ucp_ep {
    ucp_worker_h worker;
};
struct request {
    int kind, is_done, is_free;
    ucp_request_param_t param;
    void (*older)(void *, ucs_status_t);
    void *buffer;
    size_t bytes;
};
enum { SEND, RECEIVE, STREAM_RECEIVE, MESSAGE };

static CUstream own;
static struct request *queue[64];
static int first, last;

static void write_memory(void *at, size_t bytes) {
    if (!own) cuStreamCreate(&own, 1);
    if (bytes) cuMemsetD8Async((CUdeviceptr)at, 0, bytes, own);
    cuStreamSynchronize(own);
}
static void *start(int kind, void *ep, const void *buffer, size_t count, const ucp_request_param_t *param) {
    int is_list = param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE && param->datatype == 2;
    int is_large = param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE && param->datatype != 8;
    if (!ep) return (void *)(intptr_t)UCS_ERR_NO_MEMORY;
    if (kind == SEND && count && count <= 64 && !is_large) return 0;
    struct request *request = calloc(1, sizeof *request);
    *request = (struct request){kind, 0, 0, *param, 0, (void *)buffer, count};
    if (is_list) request->buffer = ((ucp_dt_iov_t *)buffer)->buffer, request->bytes = ((ucp_dt_iov_t *)buffer)->length;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE && (param->datatype & 7) == 7) request->bytes = 0;
    return queue[last++ % 64] = request;
}

ucs_status_t ucp_init_version(unsigned major, unsigned minor, const void *params, const void *config, ucp_context_h *context) {
    (void)major, (void)minor, (void)params, (void)config;
    *context = 0;
    return UCS_OK;
}
ucs_status_t ucp_worker_create(ucp_context_h context, const void *params, ucp_worker_h *worker) {
    (void)context, (void)params;
    *worker = calloc(1, sizeof **worker);
    return UCS_OK;
}
void ucp_worker_destroy(ucp_worker_h worker) { (void)worker, first = last; }
ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param) {
    worker->handler = *param;
    return UCS_OK;
}
ucs_status_t ucp_ep_create(ucp_worker_h worker, const void *params, ucp_ep_h *ep) {
    (void)params;
    *ep = calloc(1, sizeof **ep);
    (*ep)->worker = worker;
    return UCS_OK;
}
unsigned ucp_worker_progress(ucp_worker_h worker) {
    if (first == last) return 0;
    struct request *request = queue[first++ % 64];
    ucp_tag_recv_info_t info = {0, request->bytes};
    if (request->kind == RECEIVE || request->kind == STREAM_RECEIVE) write_memory(request->buffer, request->bytes);
    void *data = request->param.op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA ? request->param.user_data : 0;
    request->is_done = 1;
    if (request->kind == MESSAGE && worker->handler.cb) worker->handler.cb(worker->handler.arg, 0, 0, 0, 0, 0);
    if (request->older) request->older(request, UCS_OK);
    else if (request->param.op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK && !request->is_free) {
        if (request->kind == RECEIVE) request->param.cb.recv(request, UCS_OK, &info, data);
        else if (request->kind == STREAM_RECEIVE) request->param.cb.recv_stream(request, UCS_OK, request->bytes, data);
        else request->param.cb.send(request, UCS_OK, data);
    }
    return 1;
}
ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param) { return start(SEND, ep, 0, 0, param); }
ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param) { return start(SEND, ep, 0, 0, param); }
ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param) { return start(SEND, worker, 0, 0, param); }
ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t tag, const ucp_request_param_t *param) {
    (void)tag;
    return start(SEND, ep, buffer, count, param);
}
ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, uint64_t tag, uint64_t mask, const ucp_request_param_t *param) {
    (void)tag, (void)mask;
    return start(RECEIVE, worker, buffer, count, param);
}
ucs_status_ptr_t ucp_stream_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param) {
    return start(SEND, ep, buffer, count, param);
}
ucs_status_ptr_t ucp_stream_recv_nbx(ucp_ep_h ep, void *buffer, size_t count, size_t *length, const ucp_request_param_t *param) {
    (void)length;
    return start(STREAM_RECEIVE, ep, buffer, count, param);
}
ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length, const void *buffer, size_t count,
                                 const ucp_request_param_t *param) {
    (void)id, (void)header, (void)header_length;
    return start(MESSAGE, ep, buffer, count, param);
}
ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote, void *rkey, const ucp_request_param_t *param) {
    (void)remote, (void)rkey;
    return start(SEND, ep, buffer, count, param);
}
ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote, void *rkey, const ucp_request_param_t *param) {
    (void)remote, (void)rkey;
    return start(RECEIVE, ep, buffer, count, param);
}
ucs_status_ptr_t ucp_atomic_op_nbx(ucp_ep_h ep, int opcode, const void *buffer, size_t count, uint64_t remote, void *rkey,
                                   const ucp_request_param_t *param) {
    (void)opcode, (void)remote, (void)rkey;
    return start(SEND, ep, buffer, count, param);
}
ucs_status_t ucp_request_check_status(void *request) { return ((struct request *)request)->is_done ? UCS_OK : UCS_INPROGRESS; }
/* Its memory stays: the operation goes on. */
void ucp_request_free(void *request) { ((struct request *)request)->is_free = 1; }
ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h ep, const void *buffer, size_t count, uint64_t datatype, uint64_t tag, void (*cb)(void *, ucs_status_t)) {
    ucp_request_param_t param = {UCP_OP_ATTR_FIELD_DATATYPE};
    param.datatype = datatype;
    struct request *request = ucp_tag_send_nbx(ep, buffer, count, tag, &param);
    if (request) request->older = cb;
    return request;
}
ucs_status_t ucp_put_nbi(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote, void *rkey) {
    (void)ep, (void)buffer, (void)length, (void)remote, (void)rkey;
    return UCS_OK;
}
