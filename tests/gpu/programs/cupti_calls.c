// A preload that counts driver calls by name as CUPTI reports them, and writes "name count" lines to $CUPTI_CALLS at exit.
// The oracle for the shim's own counts: see `python3 tests/gpu calls`. Needs CUPTI (toolkit, or PyPI's nvidia-cuda-cupti).
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };
static struct { const char *name; unsigned long count; } calls[MOST];
static CUpti_SubscriberHandle subscriber;

static void CUPTIAPI note(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info) {
    (void)data;
    const CUpti_CallbackData *call = info;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API || call->callbackSite != CUPTI_API_ENTER || id >= MOST) return;
    calls[id].name = call->functionName;
    __atomic_add_fetch(&calls[id].count, 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void begin(void) {
    if (!getenv("CUPTI_CALLS")) return;
    CUptiResult r = cuptiSubscribe(&subscriber, note, NULL);
    if (r == CUPTI_SUCCESS) r = cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
    if (r != CUPTI_SUCCESS) fprintf(stderr, "cupti_calls: CUPTI answered %d\n", (int)r);
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("CUPTI_CALLS");
    // Helpers and launchers of the program inherit this library: only who used CUDA writes.
    unsigned long total = 0;
    for (int id = 0; id < MOST; id++) total += calls[id].count;
    if (!total) return;
    FILE *to = path ? fopen(path, "w") : NULL;
    if (!to) return;
    for (int id = 0; id < MOST; id++)
        if (calls[id].count) fprintf(to, "%s %lu\n", calls[id].name, calls[id].count);
    fclose(to);
}
