/* The host waits for a stream inside a range that is named in one of NVTX's ways (the real header): `nvtx_ranges WAY`. With `outside`
 * as another word it waits when the range is over. Ways: ascii wide attributes registered registered_wide domain. */
#include "common.h"

#include <nvtx3/nvToolsExt.h>
#include <wchar.h>

static nvtxDomainHandle_t domain;

static int is(const char *way, const char *name) { return !strcmp(way, name); }

static void push(const char *way) {
    nvtxEventAttributes_t attributes = {0};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "step";
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
    domain = nvtxDomainCreateA("of the test");
    for (int step = 0; step < 3; ++step) {
        push(way);
        CHECK(cuMemsetD8Async(x, step, 4096, stream));
        if (!outside) CHECK(cuStreamSynchronize(stream));
        if (is(way, "registered") || is(way, "registered_wide") || is(way, "domain")) nvtxDomainRangePop(domain);
        else nvtxRangePop();
        if (outside) CHECK(cuStreamSynchronize(stream));
    }
    return 0;
}
