/* A stand-in for libnixl_capi.so.0. A transfer is in progress until its status is asked for the second time; up to 64 bytes are moved at
 * once. What is read from a peer it writes as a backend without GPUDirect does: by copies on a stream of its own. With SORTED it is a
 * version that can keep lists sorted, and does. */
#include "nixl.h"
#include "cuda_mini.h"
#include <stdlib.h>

struct list {
    int count;
    struct {
        uintptr_t at;
        size_t bytes;
    } all[8];
};
struct request {
    int operation, asked, is_posted;
    struct list local;
};
static CUstream own;

static int move(struct request *request) {
    if (!own) cuStreamCreate(&own, 1);
    for (int i = 0; request->operation == NIXL_CAPI_XFER_OP_READ && i < request->local.count; i++)
        cuMemsetD8Async(request->local.all[i].at, 0, request->local.all[i].bytes, own);
    cuStreamSynchronize(own);
    request->is_posted = 0;
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_create_xfer_dlist(int kind, nixl_capi_xfer_dlist_t *list) {
    (void)kind;
    *list = calloc(1, sizeof(struct list));
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_destroy_xfer_dlist(nixl_capi_xfer_dlist_t list) {
    free(list);
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_xfer_dlist_add_desc(nixl_capi_xfer_dlist_t to, uintptr_t at, size_t bytes, uint64_t device) {
    struct list *list = to;
    (void)device;
    int place = list->count++;
#ifdef SORTED
    for (; place && list->all[place - 1].at > at; place--) list->all[place] = list->all[place - 1];
#endif
    list->all[place].at = at, list->all[place].bytes = bytes;
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_xfer_dlist_rem_desc(nixl_capi_xfer_dlist_t from, int place) {
    struct list *list = from;
    for (list->count--; place < list->count; place++) list->all[place] = list->all[place + 1];
    return NIXL_CAPI_SUCCESS;
}
#ifdef SORTED
int nixl_capi_xfer_dlist_is_sorted(nixl_capi_xfer_dlist_t list, bool *is_sorted) {
    (void)list;
    *is_sorted = true;
    return NIXL_CAPI_SUCCESS;
}
#endif
int nixl_capi_prep_xfer_dlist(nixl_capi_agent_t agent, const char *name, nixl_capi_xfer_dlist_t list, nixl_capi_xfer_dlist_handle_t *to,
                              nixl_capi_opt_args_t options) {
    (void)agent, (void)name, (void)options;
    *to = malloc(sizeof(struct list));
    *(struct list *)*to = *(struct list *)list;
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_create_xfer_req(nixl_capi_agent_t agent, int operation, nixl_capi_xfer_dlist_t local, nixl_capi_xfer_dlist_t remote,
                              const char *peer, nixl_capi_xfer_req_t *to, nixl_capi_opt_args_t options) {
    (void)agent, (void)remote, (void)peer, (void)options;
    struct request *request = calloc(1, sizeof *request);
    request->operation = operation, request->local = *(struct list *)local;
    *to = request;
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_make_xfer_req(nixl_capi_agent_t agent, int operation, nixl_capi_xfer_dlist_handle_t local, const int *places, size_t count,
                            nixl_capi_xfer_dlist_handle_t remote, const int *remote_places, size_t remote_count, nixl_capi_xfer_req_t *to,
                            nixl_capi_opt_args_t options) {
    (void)agent, (void)remote, (void)remote_places, (void)remote_count, (void)options;
    struct request *request = calloc(1, sizeof *request);
    request->operation = operation;
    for (size_t i = 0; i < count; i++) request->local.all[request->local.count++] = ((struct list *)local)->all[places[i]];
    *to = request;
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_post_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t which, nixl_capi_opt_args_t options) {
    struct request *request = which;
    (void)options;
    if (!agent) return NIXL_CAPI_ERROR_BACKEND;
    request->is_posted = 1, request->asked = 0;
    return request->local.count == 1 && request->local.all[0].bytes <= 64 ? move(request) : NIXL_CAPI_IN_PROG;
}
int nixl_capi_get_xfer_status(nixl_capi_agent_t agent, nixl_capi_xfer_req_t which) {
    struct request *request = which;
    (void)agent;
    if (!request->is_posted) return NIXL_CAPI_SUCCESS;
    return request->asked++ ? move(request) : NIXL_CAPI_IN_PROG;
}
int nixl_capi_release_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t which) {
    (void)agent;
    ((struct request *)which)->is_posted = 0;
    return NIXL_CAPI_SUCCESS;
}
int nixl_capi_destroy_xfer_req(nixl_capi_xfer_req_t which) {
    free(which);
    return NIXL_CAPI_SUCCESS;
}
