/* A driver without a GPU: hands out handles, copies memory, runs nothing, counts every call by symbol.
 *
 * Owns what the functions do (fake_<name>). The symbols themselves, one trampoline for each name of the table of cuda-sys,
 * are generated beside this file (`symbols.S`, `names.inc`): so no two names share an address, as in the real driver, and a
 * name without a function here answers CUDA_ERROR_NOT_SUPPORTED (801).
 *
 * FAKE_CUDA_LOG=FILE: the counters live in that file, readable after the process was killed. */
#define _GNU_SOURCE
#define MINI_IMPLEMENTS
#include "cuda_mini.h"
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IMPL(name, arguments) __attribute__((visibility("hidden"))) CUresult fake_##name arguments;
MINI_API(IMPL)

enum { OK = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_SUPPORTED = 801 };

extern const char *const fake_names[];
extern void *const fake_symbols[];
extern const unsigned fake_count;
extern const char fake_implemented[];

static uint64_t own_counters[2048];
__attribute__((visibility("hidden"))) uint64_t *fake_counters = own_counters;

__attribute__((constructor)) static void open_log(void) {
    const char *path = getenv("FAKE_CUDA_LOG");
    if (!path) return;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof own_counters)) return;
    void *at = mmap(0, sizeof own_counters, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED) fake_counters = at;
}

__attribute__((visibility("hidden"))) CUresult fake_unsupported(void) { return NOT_SUPPORTED; }

/* A test decides what one symbol answers, whatever its function would do: by number; -1: none. */
__attribute__((visibility("hidden"))) int fake_answered = -1;
static CUresult given;
__attribute__((visibility("hidden"))) CUresult fake_given(void) { return given; }
__attribute__((visibility("default"))) void fake_answer(const char *symbol, CUresult answer) {
    given = answer;
    fake_answered = -1;
    for (unsigned i = 0; symbol && i < fake_count; i++)
        if (!strcmp(fake_names[i], symbol)) fake_answered = i;
}

/* Handles: addresses of small objects with a tag. */
enum Tag { CONTEXT = 0xc0, STREAM, EVENT, MODULE, LIBRARY, FUNCTION, KERNEL, GRAPH };
struct Object {
    enum Tag tag;
    unsigned flags;
    void *owner;
    char name[96];
    unsigned params;
    struct { size_t offset, size; } param[32];
};

static struct Object *make(enum Tag tag, unsigned flags, void *owner) {
    struct Object *object = calloc(1, sizeof *object);
    object->tag = tag;
    object->flags = flags;
    object->owner = owner;
    return object;
}
static int is(void *handle, enum Tag tag) { return handle && ((struct Object *)handle)->tag == tag; }

static struct Object primary = {.tag = CONTEXT};
static __thread CUcontext current;

CUresult fake_cuInit(unsigned flags) { return OK; }
CUresult fake_cuDriverGetVersion(int *version) { *version = 13000; return OK; }
CUresult fake_cuDeviceGet(CUdevice *device, int ordinal) { *device = 0; return ordinal ? 101 : OK; }
CUresult fake_cuDeviceGetCount(int *count) { *count = 1; return OK; }
CUresult fake_cuDeviceGetName(char *name, int length, CUdevice device) {
    snprintf(name, length, "Fake GPU");
    return OK;
}
CUresult fake_cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1;
    return OK;
}
CUresult fake_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { *bytes = (size_t)1 << 34; return OK; }
CUresult fake_cuDeviceGetUuid_v2(void *uuid, CUdevice device) { memset(uuid, 7, 16); return OK; }
CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { *context = &primary; return OK; }
CUresult fake_cuDevicePrimaryCtxRelease_v2(CUdevice device) { return OK; }
CUresult fake_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    *flags = 0, *active = 1;
    return OK;
}
CUresult fake_cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    *context = current = make(CONTEXT, flags, 0);
    return OK;
}
CUresult fake_cuCtxDestroy_v2(CUcontext context) { return is(context, CONTEXT) ? OK : INVALID_CONTEXT; }
CUresult fake_cuCtxSetCurrent(CUcontext context) { current = context; return OK; }
CUresult fake_cuCtxGetCurrent(CUcontext *context) { *context = current; return OK; }
CUresult fake_cuCtxGetDevice(CUdevice *device) { *device = 0; return current ? OK : INVALID_CONTEXT; }
CUresult fake_cuCtxSynchronize(void) { return OK; }

static int good_stream(CUstream stream) { return (uintptr_t)stream < 3 || is(stream, STREAM); }
CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags) { *stream = make(STREAM, flags, current); return OK; }
CUresult fake_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    return fake_cuStreamCreate(stream, flags);
}
CUresult fake_cuStreamDestroy_v2(CUstream stream) { return is(stream, STREAM) ? OK : INVALID_HANDLE; }
CUresult fake_cuStreamSynchronize(CUstream stream) { return good_stream(stream) ? OK : INVALID_HANDLE; }
CUresult fake_cuStreamQuery(CUstream stream) { return good_stream(stream) ? OK : INVALID_HANDLE; }
CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    return good_stream(stream) && is(event, EVENT) ? OK : INVALID_HANDLE;
}
CUresult fake_cuStreamGetFlags(CUstream stream, unsigned *flags) {
    *flags = is(stream, STREAM) ? ((struct Object *)stream)->flags : 0;
    return OK;
}
CUresult fake_cuStreamGetPriority(CUstream stream, int *priority) { *priority = 0; return OK; }
CUresult fake_cuStreamGetCtx(CUstream stream, CUcontext *context) {
    *context = is(stream, STREAM) ? ((struct Object *)stream)->owner : current;
    return OK;
}
CUresult fake_cuStreamIsCapturing(CUstream stream, int *status) { *status = 0; return OK; }
CUresult fake_cuEventCreate(CUevent *event, unsigned flags) { *event = make(EVENT, flags, current); return OK; }
CUresult fake_cuEventRecord(CUevent event, CUstream stream) {
    return good_stream(stream) && is(event, EVENT) ? OK : INVALID_HANDLE;
}
CUresult fake_cuEventQuery(CUevent event) { return is(event, EVENT) ? OK : INVALID_HANDLE; }
CUresult fake_cuEventSynchronize(CUevent event) { return is(event, EVENT) ? OK : INVALID_HANDLE; }
CUresult fake_cuEventDestroy_v2(CUevent event) { return is(event, EVENT) ? OK : INVALID_HANDLE; }

CUresult fake_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    *address = (CUdeviceptr)(uintptr_t)aligned_alloc(512, (bytes + 511) & ~(size_t)511);
    return *address ? OK : 2;
}
/* An array's handle is the address of its descriptor: CUDA_ARRAY3D_DESCRIPTOR. */
CUresult fake_cuArray3DGetDescriptor_v2(void *out, CUarray array) { memcpy(out, array, 40); return OK; }
CUresult fake_cuMemFree_v2(CUdeviceptr address) { free((void *)(uintptr_t)address); return OK; }

/* Memory and events of other processes: something of one's own stands for them, for nothing is run. */
struct Ipc { int process; uint64_t what, bytes; };
static struct { CUdeviceptr at; size_t bytes; } imported[16];
static int imports;

static CUipcHandle handle_of(uint64_t what, uint64_t bytes) {
    struct Ipc ipc = {getpid(), what, bytes};
    CUipcHandle handle = {{0}};
    memcpy(&handle, &ipc, sizeof ipc);
    return handle;
}
CUresult fake_cuIpcGetMemHandle(CUipcHandle *handle, CUdeviceptr address) {
    *handle = handle_of(address, malloc_usable_size((void *)(uintptr_t)address));
    return OK;
}
CUresult fake_cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcHandle handle, unsigned flags) {
    struct Ipc ipc;
    memcpy(&ipc, &handle, sizeof ipc);
    if (imports == 16 || fake_cuMemAlloc_v2(address, ipc.bytes)) return 2;
    imported[imports].at = *address, imported[imports++].bytes = ipc.bytes;
    return OK;
}
CUresult fake_cuIpcCloseMemHandle(CUdeviceptr address) { return fake_cuMemFree_v2(address); }
CUresult fake_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
    for (int i = imports - 1; i >= 0; i--)
        if (address - imported[i].at < imported[i].bytes) {
            if (base) *base = imported[i].at;
            if (bytes) *bytes = imported[i].bytes;
            return OK;
        }
    return NOT_FOUND;
}
CUresult fake_cuIpcGetEventHandle(CUipcHandle *handle, CUevent event) {
    *handle = handle_of((uintptr_t)event, 0);
    return is(event, EVENT) ? OK : INVALID_HANDLE;
}
CUresult fake_cuIpcOpenEventHandle(CUevent *event, CUipcHandle handle) { return fake_cuEventCreate(event, 0); }

CUresult fake_cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    *address = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    return *address ? OK : 2;
}
CUresult fake_cuMemFreeHost(void *address) { free(address); return OK; }
CUresult fake_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    return fake_cuMemAlloc_v2(address, bytes);
}
CUresult fake_cuMemFreeAsync(CUdeviceptr address, CUstream stream) { return fake_cuMemFree_v2(address); }

static CUresult copy(void *to, const void *from, size_t bytes) { memmove(to, from, bytes); return OK; }
#define AT(address) ((void *)(uintptr_t)(address))
CUresult fake_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) { return copy(AT(to), from, bytes); }
CUresult fake_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) { return copy(to, AT(from), bytes); }
CUresult fake_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return copy(AT(to), from, bytes);
}
CUresult fake_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(to, AT(from), bytes);
}
CUresult fake_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(AT(to), AT(from), bytes);
}
CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    memset(AT(to), value, bytes);
    return OK;
}
CUresult fake_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t words, CUstream stream) {
    for (size_t i = 0; i < words; i++) ((unsigned *)AT(to))[i] = value;
    return OK;
}

/* Set by the fake of NVIDIA's Sanitizer API: context and module of each load. */
void (*fake_module_hook)(void *, void *);
CUresult fake_cuModuleLoadData(CUmodule *module, const void *image) {
    *module = make(MODULE, 0, current);
    if (fake_module_hook) fake_module_hook(current, *module);
    return OK;
}
CUresult fake_cuModuleUnload(CUmodule module) { return is(module, MODULE) ? OK : INVALID_HANDLE; }
CUresult fake_cuLibraryLoadData(CUlibrary *library, const void *image, void *o, void **ov, unsigned n, void *l,
                                void **lv, unsigned m) {
    *library = make(LIBRARY, 0, 0);
    return OK;
}

/* A kernel's name says its parameters: NAME_8_8_4 takes two of 8 bytes and one of 4. */
static void *function(enum Tag tag, void *owner, const char *name) {
    struct Object *made = make(tag, 0, owner);
    snprintf(made->name, sizeof made->name, "%s", name);
    size_t at = 0;
    const char *part = strchr(name, '_');
    while (part && made->params < 32) {
        size_t size = strtoul(part + 1, 0, 10);
        if (size == 0) break;
        size_t align = size < 8 ? size : 8;
        at = (at + align - 1) / align * align;
        made->param[made->params].offset = at;
        made->param[made->params++].size = size;
        at += size;
        part = strchr(part + 1, '_');
    }
    return made;
}
CUresult fake_cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    if (!is(module, MODULE)) return INVALID_HANDLE;
    *out = function(FUNCTION, module, name);
    return OK;
}
CUresult fake_cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name) {
    if (!is(library, LIBRARY)) return INVALID_HANDLE;
    *out = function(KERNEL, library, name);
    return OK;
}
static CUresult param(struct Object *object, size_t index, size_t *offset, size_t *size) {
    if (index >= object->params) return INVALID_VALUE;
    *offset = object->param[index].offset;
    if (size) *size = object->param[index].size;
    return OK;
}
/* As measured on driver 580: a CUkernel is no CUfunction to these, and the other way round. */
CUresult fake_cuFuncGetName(const char **name, CUfunction f) {
    if (!is(f, FUNCTION)) return INVALID_HANDLE;
    *name = ((struct Object *)f)->name;
    return OK;
}
CUresult fake_cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size) {
    return is(f, FUNCTION) ? param(f, index, offset, size) : INVALID_HANDLE;
}
CUresult fake_cuFuncGetModule(CUmodule *module, CUfunction f) {
    if (!is(f, FUNCTION)) return INVALID_HANDLE;
    *module = ((struct Object *)f)->owner;
    return OK;
}
CUresult fake_cuKernelGetName(const char **name, CUkernel k) {
    if (!is(k, KERNEL)) return INVALID_HANDLE;
    *name = ((struct Object *)k)->name;
    return OK;
}
CUresult fake_cuKernelGetParamInfo(CUkernel k, size_t index, size_t *offset, size_t *size) {
    return is(k, KERNEL) ? param(k, index, offset, size) : INVALID_HANDLE;
}
CUresult fake_cuKernelGetLibrary(CUlibrary *library, CUkernel k) {
    if (!is(k, KERNEL)) return INVALID_HANDLE;
    *library = ((struct Object *)k)->owner;
    return OK;
}
/* Set by the fake of NVIDIA's Sanitizer API: context, module, function, stream, parameters of each launch. */
void (*fake_launch_hook)(void *, void *, void *, void *, void **);
CUresult fake_cuLaunchKernel(LAUNCH_ARGS) {
    if (!(is(f, FUNCTION) || is(f, KERNEL)) || !good_stream(s)) return INVALID_HANDLE;
    if (fake_launch_hook) fake_launch_hook(current, ((struct Object *)f)->owner, f, s, params);
    return OK;
}

/* Graphs of kernels that nothing orders; an executable graph is its graph. Parameters: at most four of at most eight bytes. */
struct Node { CUkernelNode kernel; uint64_t values[4]; void *params[4]; };
struct Graph { struct Object object; struct Node nodes[8]; size_t count; };
/* Set by the fake of NVIDIA's Sanitizer API: context, executable graph, node, its kernel; without a node at the launch's begin and end. */
void (*fake_graph_hook)(void *, void *, void *, const CUkernelNode *, void *);

CUresult fake_cuGraphCreate(CUgraph *graph, unsigned flags) {
    struct Graph *made = calloc(1, sizeof *made);
    made->object.tag = GRAPH;
    *graph = made;
    return OK;
}
CUresult fake_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count, const CUkernelNode *kernel) {
    struct Graph *g = graph;
    struct Object *f = kernel->f;
    if (!is(g, GRAPH) || !is(f, FUNCTION) || g->count == 8 || count || f->params > 4) return INVALID_VALUE;
    struct Node *n = &g->nodes[g->count++];
    n->kernel = *kernel, n->kernel.params = n->params;
    for (unsigned i = 0; i < f->params; i++) {
        memcpy(&n->values[i], kernel->params[i], f->param[i].size);
        n->params[i] = &n->values[i];
    }
    *node = n;
    return OK;
}
CUresult fake_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags) {
    *exec = graph;
    return is(graph, GRAPH) ? OK : INVALID_HANDLE;
}
CUresult fake_cuGraphLaunch(CUgraphExec exec, CUstream s) {
    struct Graph *g = exec;
    if (!is(g, GRAPH) || !good_stream(s)) return INVALID_HANDLE;
    if (!fake_graph_hook) return OK;
    fake_graph_hook(current, g, 0, 0, s);
    for (size_t i = 0; i < g->count; i++) fake_graph_hook(current, g, &g->nodes[i], &g->nodes[i].kernel, s);
    return OK;
}
CUresult fake_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    struct Graph *g = graph;
    for (size_t i = 0; nodes && i < g->count && i < *count; i++) nodes[i] = &g->nodes[i];
    *count = g->count;
    return OK;
}
CUresult fake_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) { *count = 0; return OK; }
CUresult fake_cuGraphNodeGetType(CUgraphNode node, int *type) { *type = 0; return OK; }
CUresult fake_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUkernelNode *params) {
    *params = ((struct Node *)node)->kernel;
    return OK;
}
CUresult fake_cuLaunchHostFunc(CUstream stream, CUhostFn f, void *data) { f(data); return OK; }

/* The newest version of a base name that is implemented here, or else that exists; with bit 1 of the flags its per-thread
 * form where there is one. */
static void *resolve(const char *name, int version, uint64_t flags) {
    static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
    static const char *const threads[] = {"_ptsz", "_ptds", ""};
    for (int any = 0; any < 2; any++)
        for (int t = flags & 2 ? 0 : 2; t < 3; t++)
            for (int v = 0; v < 4; v++) {
                if (!strcmp(name, "cuGetProcAddress") && version < 12000 && *versions[v]) continue;
                char full[128];
                snprintf(full, sizeof full, "%s%s%s", name, versions[v], threads[t]);
                for (unsigned i = 0; i < fake_count; i++)
                    if (!strcmp(fake_names[i], full) && (any || fake_implemented[i])) return fake_symbols[i];
            }
    return 0;
}
CUresult fake_cuGetProcAddress(const char *name, void **address, int version, uint64_t flags) {
    *address = resolve(name, version, flags);
    return *address ? OK : NOT_FOUND;
}
CUresult fake_cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status) {
    *address = resolve(name, version, flags);
    if (status) *status = *address ? 0 : 1;
    return *address ? OK : NOT_FOUND;
}
