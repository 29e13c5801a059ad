/* The host waits for a stream inside a range that is named in one of NVTX's ways (the real header): `nvtx_ranges WAY`. With `outside`
 * as another word it waits when the range is over. Ways: ascii wide attributes registered registered_wide domain domain_wide; ended
 * with a payload, as NCCL's: domain_payload; for ranges of the process, which another thread than the waiting one begins: start
 * start_wide start_attributes start_domain start_domain_payload. */
#include "common.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <wchar.h>

static nvtxDomainHandle_t domain;
static nvtxRangeId_t range;
static int answer = 7;
static nvtxPayloadData_t payload = {NVTX_TYPE_PAYLOAD_SCHEMA_RAW, sizeof answer, &answer};

static int is(const char *way, const char *name) { return !strcmp(way, name); }

static nvtxEventAttributes_t named(void) {
    nvtxEventAttributes_t attributes = {0};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "step";
    return attributes;
}

static void *start(void *argument) {
    const char *way = argument;
    nvtxEventAttributes_t attributes = named();
    if (is(way, "start")) range = nvtxRangeStartA("step");
    else if (is(way, "start_wide")) range = nvtxRangeStartW(L"step");
    else if (is(way, "start_attributes")) range = nvtxRangeStartEx(&attributes);
    else range = nvtxDomainRangeStartEx(domain, &attributes);
    return NULL;
}

static void *stop(void *argument) {
    if (is(argument, "start_domain")) nvtxDomainRangeEnd(domain, range);
    else if (is(argument, "start_domain_payload")) nvtxRangeEndPayload(domain, range, &payload, 1);
    else nvtxRangeEnd(range);
    return NULL;
}

static void elsewhere(void *(*what)(void *), const char *way) {
    pthread_t thread;
    pthread_create(&thread, NULL, what, (void *)way);
    pthread_join(thread, NULL);
}

static void push(const char *way) {
    nvtxEventAttributes_t attributes = named();
    if (!strncmp(way, "start", 5)) { elsewhere(start, way); return; }
    if (is(way, "ascii")) { nvtxRangePushA("step"); return; }
    if (is(way, "wide")) { nvtxRangePushW(L"step"); return; }
    if (is(way, "registered") || is(way, "registered_wide")) {
        attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        attributes.message.registered =
            is(way, "registered") ? nvtxDomainRegisterStringA(domain, "step") : nvtxDomainRegisterStringW(domain, L"step");
    }
    if (is(way, "attributes")) nvtxRangePushEx(&attributes);
    else nvtxDomainRangePushEx(domain, &attributes);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "ascii";
    int outside = argc > 2 && is(argv[2], "outside");
    begin("f_4_4");
    CUstream stream;
    CUdeviceptr x;
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemAlloc_v2(&x, 4096));
    domain = is(way, "domain_wide") ? nvtxDomainCreateW(L"of the test") : nvtxDomainCreateA("of the test");
    /* A range of another domain, and one that is open all the time. */
    nvtxDomainHandle_t other = nvtxDomainCreateA("other");
    nvtxRangeId_t all = nvtxRangeStartA("all");
    for (int step = 0; step < 3; ++step) {
        /* One without a name around all, begun and ended with payloads. */
        nvtxRangePushPayload(other, &payload, 1);
        nvtxRangeId_t nameless = nvtxRangeStartPayload(other, &payload, 1);
        push(way);
        nvtxEventAttributes_t attributes = named();
        attributes.message.ascii = "of no interest";
        nvtxDomainRangePushEx(other, &attributes);
        CHECK(cuMemsetD8Async(x, step, 4096, stream));
        if (!outside) CHECK(cuStreamSynchronize(stream));
        if (!strncmp(way, "start", 5)) elsewhere(stop, way);
        else if (is(way, "domain_payload")) nvtxRangePopPayload(domain, &payload, 1);
        else if (!strncmp(way, "registered", 10) || !strncmp(way, "domain", 6)) nvtxDomainRangePop(domain);
        else nvtxRangePop();
        if (outside) CHECK(cuStreamSynchronize(stream));
        nvtxDomainRangePop(other);
        nvtxRangeEndPayload(other, nameless, &payload, 1);
        nvtxRangePopPayload(other, &payload, 1);
    }
    nvtxRangeEnd(all);
    return 0;
}
