/* NVIDIA's Sanitizer API, as far as exact mode uses it, for the fake driver: a launch of a patched module writes into its table what a
 * kernel named touch_8_4_4 would touch: `len` bytes from `pointer + from` on, stored.
 *
 * Owns the promises of the API that the shim relies on: launches are announced before they are made; only modules that were patched fill
 * tables; a launch without data touches nothing. A line on standard error for each module patched, and for each launch of patched code that
 * was given no datum at all, which the shim must never let happen. */
#define _GNU_SOURCE
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

/* The head of a table, as shim/patch/exact.cu has it. */
struct Place { uint64_t key; uint32_t page, unused; };
struct Table {
    uint32_t places, capacity;
    struct Place *place;
    uint64_t *keys;
    uint32_t *bits;
    void *cells;
    uint32_t *used;
};

static Callback callback;
static void *user, *patched[16];
static unsigned patches;
static const void *datum;
static int given;

static int is_patched(void *module) {
    for (unsigned i = 0; i < patches; i++)
        if (patched[i] == module) return 1;
    return 0;
}

static void mark(struct Table *table, uint64_t from, uint64_t to) {
    while (from < to) {
        uint64_t key = (from >> 12) << 2 | 2;
        uint32_t number = 0;
        while (number < *table->used && table->keys[-(int64_t)number] != key) number++;
        if (number == *table->used) table->keys[-(int64_t)(*table->used)++] = key;
        for (; from < to && (from >> 12) << 2 == key - 2; from++)
            table->bits[(uint64_t)number * 128 + (from >> 5 & 127)] |= 1u << (from & 31);
    }
}

static void launching(void *context, void *module, void *function, void *stream, void **params) {
    struct Launch launch = {context, stream, (void *)8, module, function, "touch_8_4_4", {1, 1, 1, 32, 1, 1}, 1, (void *)16};
    given = 0;
    callback(user, 5, 1, &launch);
    if (!is_patched(module)) return;
    if (!given) fprintf(stderr, "fake sanitizer: patched code was launched without a word on its data\n");
    if (!datum) return;
    uint64_t at = *(uint64_t *)params[0] + *(uint32_t *)params[1];
    mark((struct Table *)datum, at, at + *(uint32_t *)params[2]);
}

static void loaded(void *context, void *module) {
    void *data[2] = {context, module};
    callback(user, 3, 9, data);
    /* As if an executable graph were made. */
    if (getenv("FAKE_SANITIZER_GRAPH")) callback(user, 10, 1, data);
}

uint32_t sanitizerSubscribe(void **subscriber, Callback f, void *data) {
    void (**hook)(void *, void *, void *, void *, void **) = dlsym(RTLD_DEFAULT, "fake_launch_hook");
    void (**load)(void *, void *) = dlsym(RTLD_DEFAULT, "fake_module_hook");
    if (!hook || !load) return 1;
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
uint32_t sanitizerMemcpyHostToDeviceAsync(void *to, const void *from, size_t bytes, void *stream) {
    memcpy(to, from, bytes);
    return 0;
}
uint32_t sanitizerMemcpyDeviceToHost(void *to, const void *from, size_t bytes, void *stream) {
    memcpy(to, from, bytes);
    return 0;
}
uint32_t sanitizerStreamSynchronize(void *stream) { return 0; }
uint32_t sanitizerGetStreamHandle(void *context, void *stream, void **handle) { *handle = (void *)8; return 0; }
uint32_t sanitizerSetDeviceGraphData(void *exec, void *stream, const void *data) { return 1; }
