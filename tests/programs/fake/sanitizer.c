/* NVIDIA's Sanitizer API, as far as exact mode uses it, for the fake driver: a launch of a patched module writes into its table what a
 * kernel named touch_8_4_4 would touch: `len` bytes from `pointer + from` on, stored.
 *
 * Owns the promises of the API that the shim relies on: launches are announced before they are made; only modules that were patched fill
 * tables; a launch without data touches nothing; the kernels of a graph are announced one by one, between the graph's begin and end. A line on standard error for each module patched, and for each launch of patched code that
 * was given no datum at all, which the shim must never let happen. */
#define _GNU_SOURCE
#include "cuda_mini.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Callback)(void *, uint32_t, uint32_t, const void *);
struct Launch {
    void *context, *stream, *stream_handle, *module, *function;
    const char *name;
    uint32_t shape[9];
    uint64_t grid;
    void *launch;
};

/* A table, as shim/patch/exact.cu has it; with few pages only its beginning matters. */
enum { COUNTERS_AT = (1 << 18) * 16 + (1 << 17) * 8, SECTORS_AT = COUNTERS_AT + 128, BYTES_AT = SECTORS_AT + 64 * 16 };
static const uint64_t IN_PART = 1ull << 63;

static Callback callback;
static void *user, *patched[16];
static unsigned patches;
static const void *datum;
static int given;
static uint64_t grid;

static int is_patched(void *module) {
    for (unsigned i = 0; i < patches; i++)
        if (patched[i] == module) return 1;
    return 0;
}

static void mark(uint64_t data, uint64_t from, uint64_t to) {
    char *table = (char *)(data & ~1ull);
    uint32_t *used = (uint32_t *)(table + COUNTERS_AT);
    uint64_t *keys = (uint64_t *)used - 1;
    while (from < to) {
        uint64_t key = (from >> 12) << 18 | (data & 1 ? grid & 0xffff : 0) << 2 | 2;
        uint32_t number = 0;
        while (number < *used && (keys[-(int64_t)number] & ~IN_PART) != key) number++;
        if (number == 64) abort();
        if (number == *used) keys[-(int64_t)(*used)++] = key;
        /* The first sector of a page byte by byte, so that both ways are gone. */
        for (; from < to && from >> 12 == key >> 18; from++) {
            if ((from & 31) == 0 && to - from >= 32 && (from & 0xfff) != 0) {
                ((uint64_t *)(table + SECTORS_AT))[number * 2 + (from >> 11 & 1)] |= 1ull << (from >> 5 & 63);
                from += 31;
            } else {
                ((uint32_t *)(table + BYTES_AT))[number * 128 + (from >> 5 & 127)] |= 1u << (from & 31);
                keys[-(int64_t)number] |= IN_PART;
            }
        }
    }
}

static void touch(void **params) {
    if (!given) fprintf(stderr, "fake sanitizer: patched code was launched without a word on its data\n");
    if (!datum) return;
    uint64_t at = *(uint64_t *)params[0] + *(uint32_t *)params[1];
    mark((uint64_t)datum, at, at + *(uint32_t *)params[2]);
}

/* `Sanitizer_GraphLaunchData` and `Sanitizer_GraphNodeLaunchData`. */
struct GraphLaunch { void *context, *stream, *stream_handle, *exec; uint32_t upload; };
struct NodeLaunch { void *exec; uint32_t id; void *node; uint32_t type; struct Launch launch; };

static void graph_launching(void *context, void *exec, void *node, const CUkernelNode *kernel, void *stream) {
    struct GraphLaunch graph = {context, stream, (void *)8, exec, 0};
    if (!node) return callback(user, 10, 6, &graph);
    void *module;
    cuFuncGetModule(&module, kernel->f);
    struct NodeLaunch launch = {exec, 1, node, 0, {context, stream, (void *)8, module, kernel->f, "touch_8_4_4",
        {kernel->gx, kernel->gy, kernel->gz, kernel->bx, kernel->by, kernel->bz}, 1, (void *)16}};
    /* The number of the grid is unique within the launch; the last datum is that of all. */
    launch.launch.grid = grid = 0x7fff0000 + ((uintptr_t)node & 0xffff);
    given = 0;
    callback(user, 10, 4, &launch);
    if (is_patched(module)) touch(kernel->params);
}

static void launching(void *context, void *module, void *function, void *stream, void **params) {
    struct Launch launch = {context, stream, (void *)8, module, function, "touch_8_4_4", {1, 1, 1, 32, 1, 1}, 1, (void *)16};
    given = 0;
    callback(user, 5, 1, &launch);
    if (!is_patched(module)) return;
    touch(params);
}

static void loaded(void *context, void *module) {
    void *data[2] = {context, module};
    callback(user, 3, 9, data);
    /* As if an executable graph were made, with a kernel of this module; or one of which nothing is told. */
    const char *graph = getenv("FAKE_SANITIZER_GRAPH");
    struct Launch launch = {.context = context, .module = module};
    if (graph) {
        callback(user, 10, 1, data);
        if (!strcmp(graph, "held")) callback(user, 5, 2, &launch);
        callback(user, 10, 2, data);
    }
}

uint32_t sanitizerSubscribe(void **subscriber, Callback f, void *data) {
    void (**hook)(void *, void *, void *, void *, void **) = dlsym(RTLD_DEFAULT, "fake_launch_hook");
    void (**load)(void *, void *) = dlsym(RTLD_DEFAULT, "fake_module_hook");
    void (**graph)(void *, void *, void *, const CUkernelNode *, void *) = dlsym(RTLD_DEFAULT, "fake_graph_hook");
    if (!hook || !load || !graph) return 1;
    *graph = graph_launching;
    callback = f, user = data, *subscriber = (void *)24, *hook = launching, *load = loaded;
    return 0;
}
uint32_t sanitizerEnableDomain(uint32_t on, void *subscriber, uint32_t domain) { return 0; }
uint32_t sanitizerAddPatches(const void *image, void *context) { return 0; }
uint32_t sanitizerPatchInstructions(uint32_t instruction, void *module, const char *function) { return 0; }
uint32_t sanitizerPatchModule(void *module) {
    if (getenv("FAKE_SANITIZER_REFUSES") || patches == 16) return 1;
    fprintf(stderr, "fake sanitizer: patched\n");
    patched[patches++] = module;
    return 0;
}
uint32_t sanitizerSetLaunchCallbackData(void *launch, void *function, void *stream, const void *data) {
    datum = data, given = 1;
    return 0;
}
uint32_t sanitizerAlloc(void *context, void **address, size_t bytes) {
    *address = malloc(bytes);
    return !*address;
}
uint32_t sanitizerAllocHost(void *context, void **address, size_t bytes) { return sanitizerAlloc(context, address, bytes); }
uint32_t sanitizerMemset(void *at, int value, size_t bytes, void *stream) { memset(at, value, bytes); return 0; }
uint32_t sanitizerMemcpyDeviceToHost(void *to, const void *from, size_t bytes, void *stream) {
    memcpy(to, from, bytes);
    return 0;
}
uint32_t sanitizerStreamSynchronize(void *stream) { return 0; }
uint32_t sanitizerGetStreamHandle(void *context, void *stream, void **handle) { *handle = (void *)8; return 0; }
uint32_t sanitizerSetDeviceGraphData(void *exec, void *stream, const void *data) { return 1; }
