/* What the tests need of UCX: the parts of ucp/api/ucp.h that are observed, with its layouts and numbers. */
#ifndef UCX_MINI_H
#define UCX_MINI_H
#include <stddef.h>
#include <stdint.h>

typedef int ucs_status_t;
typedef void *ucs_status_ptr_t;
typedef struct ucp_context *ucp_context_h;
typedef struct ucp_worker *ucp_worker_h;
typedef struct ucp_ep *ucp_ep_h;
typedef struct {
    uint64_t sender_tag;
    size_t length;
} ucp_tag_recv_info_t;
typedef struct {
    uint32_t op_attr_mask, flags;
    void *request;
    union {
        void (*send)(void *request, ucs_status_t status, void *user_data);
        void (*recv)(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data);
        void (*recv_stream)(void *request, ucs_status_t status, size_t length, void *user_data);
    } cb;
    uint64_t datatype;
    void *user_data, *reply_buffer;
    int memory_type;
    void *recv_info, *memh;
} ucp_request_param_t;
typedef struct {
    void *buffer;
    size_t length;
} ucp_dt_iov_t;
typedef struct {
    uint64_t field_mask;
    unsigned id;
    uint32_t flags;
    ucs_status_t (*cb)(void *arg, const void *header, size_t header_length, void *data, size_t length, const void *param);
    void *arg;
} ucp_am_handler_param_t;

_Static_assert(sizeof(ucp_request_param_t) == 72 && offsetof(ucp_request_param_t, memh) == 64, "the header's");
_Static_assert(sizeof(ucp_am_handler_param_t) == 32, "the header's");

enum { UCS_OK = 0, UCS_INPROGRESS = 1, UCS_ERR_NO_MEMORY = -4, UCS_ERR_LAST = -100 };
enum {
    UCP_OP_ATTR_FIELD_CALLBACK = 2,
    UCP_OP_ATTR_FIELD_USER_DATA = 4,
    UCP_OP_ATTR_FIELD_DATATYPE = 8,
    UCP_OP_ATTR_FIELD_REPLY_BUFFER = 32
};
#define UCS_PTR_IS_ERR(pointer) ((uintptr_t)(pointer) >= (uintptr_t)UCS_ERR_LAST)
#define ucp_dt_make_contig(size) ((uint64_t)(size) << 3)
#define ucp_dt_make_iov() ((uint64_t)2)
#define FAKE_GENERIC 7ull

#define UCX_FUNCTIONS(X)                                                                                              \
    X(ucs_status_t, ucp_init_version, (unsigned major, unsigned minor, const void *params, const void *config, ucp_context_h *context)) \
    X(ucs_status_t, ucp_worker_create, (ucp_context_h context, const void *params, ucp_worker_h *worker))            \
    X(void, ucp_worker_destroy, (ucp_worker_h worker))                                                               \
    X(unsigned, ucp_worker_progress, (ucp_worker_h worker))                                                          \
    X(ucs_status_t, ucp_worker_set_am_recv_handler, (ucp_worker_h worker, const ucp_am_handler_param_t *param))      \
    X(ucs_status_t, ucp_ep_create, (ucp_worker_h worker, const void *params, ucp_ep_h *ep))                          \
    X(ucs_status_ptr_t, ucp_ep_close_nbx, (ucp_ep_h ep, const ucp_request_param_t *param))                           \
    X(ucs_status_ptr_t, ucp_ep_flush_nbx, (ucp_ep_h ep, const ucp_request_param_t *param))                           \
    X(ucs_status_ptr_t, ucp_worker_flush_nbx, (ucp_worker_h worker, const ucp_request_param_t *param))               \
    X(ucs_status_ptr_t, ucp_tag_send_nbx,                                                                            \
      (ucp_ep_h ep, const void *buffer, size_t count, uint64_t tag, const ucp_request_param_t *param))               \
    X(ucs_status_ptr_t, ucp_tag_recv_nbx,                                                                            \
      (ucp_worker_h worker, void *buffer, size_t count, uint64_t tag, uint64_t mask, const ucp_request_param_t *param)) \
    X(ucs_status_ptr_t, ucp_stream_send_nbx, (ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param)) \
    X(ucs_status_ptr_t, ucp_stream_recv_nbx,                                                                         \
      (ucp_ep_h ep, void *buffer, size_t count, size_t *length, const ucp_request_param_t *param))                   \
    X(ucs_status_ptr_t, ucp_am_send_nbx,                                                                             \
      (ucp_ep_h ep, unsigned id, const void *header, size_t header_length, const void *buffer, size_t count,         \
       const ucp_request_param_t *param))                                                                            \
    X(ucs_status_ptr_t, ucp_put_nbx,                                                                                 \
      (ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote, void *rkey, const ucp_request_param_t *param)) \
    X(ucs_status_ptr_t, ucp_get_nbx,                                                                                 \
      (ucp_ep_h ep, void *buffer, size_t count, uint64_t remote, void *rkey, const ucp_request_param_t *param))      \
    X(ucs_status_ptr_t, ucp_atomic_op_nbx,                                                                           \
      (ucp_ep_h ep, int opcode, const void *buffer, size_t count, uint64_t remote, void *rkey, const ucp_request_param_t *param)) \
    X(ucs_status_t, ucp_request_check_status, (void *request))                                                       \
    X(void, ucp_request_free, (void *request))                                                                       \
    X(ucs_status_ptr_t, ucp_tag_send_nb,                                                                             \
      (ucp_ep_h ep, const void *buffer, size_t count, uint64_t datatype, uint64_t tag, void (*cb)(void *, ucs_status_t))) \
    X(ucs_status_t, ucp_put_nbi, (ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote, void *rkey))
#endif
