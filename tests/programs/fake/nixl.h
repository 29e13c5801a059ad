/* What the tests need of NIXL's C interface: the parts of nixl_capi.h that are observed. */
#ifndef NIXL_MINI_H
#define NIXL_MINI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *nixl_capi_agent_t, *nixl_capi_xfer_dlist_t, *nixl_capi_xfer_dlist_handle_t, *nixl_capi_xfer_req_t, *nixl_capi_opt_args_t;
enum { NIXL_CAPI_SUCCESS = 0, NIXL_CAPI_ERROR_BACKEND = -2, NIXL_CAPI_IN_PROG = 1 };
enum { NIXL_CAPI_MEM_DRAM, NIXL_CAPI_MEM_VRAM, NIXL_CAPI_MEM_FILE = 4 };
enum { NIXL_CAPI_XFER_OP_READ, NIXL_CAPI_XFER_OP_WRITE };

#define NIXL_FUNCTIONS(X)                                                                                             \
    X(int, nixl_capi_create_xfer_dlist, (int kind, nixl_capi_xfer_dlist_t *list))                                     \
    X(int, nixl_capi_destroy_xfer_dlist, (nixl_capi_xfer_dlist_t list))                                               \
    X(int, nixl_capi_xfer_dlist_add_desc, (nixl_capi_xfer_dlist_t list, uintptr_t at, size_t bytes, uint64_t device)) \
    X(int, nixl_capi_xfer_dlist_rem_desc, (nixl_capi_xfer_dlist_t list, int place))                                   \
    X(int, nixl_capi_prep_xfer_dlist,                                                                                 \
      (nixl_capi_agent_t agent, const char *name, nixl_capi_xfer_dlist_t list, nixl_capi_xfer_dlist_handle_t *to,     \
       nixl_capi_opt_args_t options))                                                                                 \
    X(int, nixl_capi_create_xfer_req,                                                                                 \
      (nixl_capi_agent_t agent, int operation, nixl_capi_xfer_dlist_t local, nixl_capi_xfer_dlist_t remote,           \
       const char *peer, nixl_capi_xfer_req_t *to, nixl_capi_opt_args_t options))                                     \
    X(int, nixl_capi_make_xfer_req,                                                                                   \
      (nixl_capi_agent_t agent, int operation, nixl_capi_xfer_dlist_handle_t local, const int *places, size_t count,  \
       nixl_capi_xfer_dlist_handle_t remote, const int *remote_places, size_t remote_count, nixl_capi_xfer_req_t *to, \
       nixl_capi_opt_args_t options))                                                                                 \
    X(int, nixl_capi_post_xfer_req, (nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t options)) \
    X(int, nixl_capi_get_xfer_status, (nixl_capi_agent_t agent, nixl_capi_xfer_req_t request))                        \
    X(int, nixl_capi_release_xfer_req, (nixl_capi_agent_t agent, nixl_capi_xfer_req_t request))                       \
    X(int, nixl_capi_destroy_xfer_req, (nixl_capi_xfer_req_t request))
#endif
