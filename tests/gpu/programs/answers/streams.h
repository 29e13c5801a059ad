// Streams, events, host functions, memory operations, captures.
#pragma once
#include "ask.h"

static void streams() {
    cudaStream_t s, n;
    int low, high, priority;
    unsigned flags;
    ASK(cudaStreamCreate(nullptr));
    ASK(cudaStreamCreateWithFlags(&s, 2));
    ASK(cudaStreamCreateWithFlags(&s, cudaStreamDefault));
    ASK(cudaStreamCreateWithFlags(&n, cudaStreamNonBlocking));
    ASK(cudaStreamGetFlags(s, &flags));
    ASK(flags);
    ASK(cudaStreamGetFlags(n, &flags));
    ASK(flags);
    ASK(cudaStreamGetFlags(0, &flags));
    ASK(flags);
    ASK(cudaStreamGetFlags(cudaStreamPerThread, &flags));
    ASK(flags);
    ASK(cudaDeviceGetStreamPriorityRange(&low, &high));
    ASK(low);
    ASK(high < low);
    ASK(cudaDeviceGetStreamPriorityRange(nullptr, nullptr));
    ASK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -100));
    ASK(cudaStreamGetPriority(s, &priority));
    ASK(priority == high);
    ASK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 100));
    ASK(cudaStreamGetPriority(s, &priority));
    ASK(priority == low);
    ASK(cudaStreamQuery(s));
    ASK(cudaStreamQuery(0));
    ASK(cudaStreamSynchronize(cudaStreamLegacy));
    ASK(cudaStreamSynchronize(cudaStreamPerThread));
    ASK(cudaStreamDestroy(s));
    ASK(cudaStreamDestroy(nullptr));
    ASK(cudaStreamDestroy(cudaStreamLegacy));
    ASK(cudaStreamDestroy(cudaStreamPerThread));
    unsigned long long id = 0, other = 0;
    ASK(cudaStreamGetId(n, &id));
    MUST(cudaStreamGetId(0, &other));
    ASK(id != other);
    ASK(cudaStreamWaitEvent(n, nullptr, 0));
    ASK(cudaStreamAddCallback(n, nullptr, nullptr, 0));
    ASK(cudaLaunchHostFunc(n, nullptr, nullptr));
    void *device, *managed;
    MUST(cudaMalloc(&device, 64));
    MUST(cudaMallocManaged(&managed, 64));
    ASK(cudaStreamAttachMemAsync(n, device, 0, cudaMemAttachSingle));
    ASK(cudaStreamAttachMemAsync(n, managed, 0, cudaMemAttachSingle));
    ASK(cudaStreamAttachMemAsync(n, managed, 3, cudaMemAttachSingle));
    ASK(cudaMemPrefetchAsync(device, 64, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, n));
    ASK(cudaMemPrefetchAsync(managed, 64, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, n));
    ASK(cudaMemPrefetchAsync(managed, 64, cudaMemLocation{cudaMemLocationTypeDevice, 99}, 0, n));
    ASK(cudaMemPrefetchAsync(managed, 0, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, n));
    CUcontext mine, current;
    ASK(cuStreamGetCtx(n, &mine));
    MUST(cuCtxGetCurrent(&current));
    ASK(mine == current);
    int device_of = 9;
    ASK(cudaStreamGetDevice(n, &device_of));
    ASK(device_of);
    ASK(cuStreamCreateWithPriority((CUstream *)&s, 7, 0));
    ASK(cuStreamDestroy(nullptr));
    cudaStreamAttrValue value = {};
    ASK(cudaStreamGetAttribute(n, cudaStreamAttributeSynchronizationPolicy, &value));
    ASK((int)value.syncPolicy);
    ASK(cudaStreamGetAttribute(n, (cudaStreamAttrID)77, &value));
    ASK(cudaStreamCopyAttributes(n, n));
}

static void events() {
    cudaEvent_t a, b, untimed;
    cudaStream_t s;
    float ms = -1;
    Gate gate;
    MUST(cudaStreamCreate(&s));
    ASK(cudaEventCreateWithFlags(&a, 0x80));
    ASK(cudaEventCreate(nullptr));
    ASK(cudaEventCreate(&a));
    ASK(cudaEventCreate(&b));
    ASK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming | cudaEventBlockingSync));
    ASK(cudaEventQuery(a));
    ASK(cudaEventSynchronize(a));
    ASK(cudaEventElapsedTime(&ms, a, b));
    ASK(cudaStreamWaitEvent(s, a, 0));
    ASK(cudaStreamWaitEvent(s, a, 7));
    ASK(cudaEventRecord(a, s));
    ASK(cudaEventElapsedTime(&ms, a, b));
    gate.close(s);
    ASK(cudaStreamQuery(s));
    ASK(cudaEventRecord(b, s));
    ASK(cudaEventQuery(b));
    ASK(cudaEventQuery(a));
    ASK(cudaEventElapsedTime(&ms, a, b));
    ASK(cudaEventRecord(untimed, s));
    ASK(cudaEventElapsedTime(&ms, a, untimed));
    gate.open = 1;
    ASK(cudaEventSynchronize(b));
    ASK(cudaEventQuery(b));
    ASK(cudaEventElapsedTime(&ms, a, b));
    ASK(ms > 0);
    ASK(cudaEventElapsedTime(&ms, b, a));
    ASK(ms < 0);
    ASK(cudaEventElapsedTime(nullptr, a, b));
    ASK(cudaEventElapsedTime(&ms, nullptr, b));
    ASK(cudaEventRecord(nullptr, s));
    ASK(cudaEventQuery(nullptr));
    ASK(cudaEventSynchronize(nullptr));
    ASK(cudaEventDestroy(nullptr));
    ASK(cudaEventRecordWithFlags(a, s, cudaEventRecordExternal));
    ASK(cudaEventRecordWithFlags(a, s, 8));
    ASK(cuEventElapsedTime(&ms, a, untimed));
    ASK(cudaEventDestroy(a));
}

static CUresult inside[4];
static void host_functions() {
    cudaStream_t s;
    static void *device;
    MUST(cudaMalloc(&device, 64));
    MUST(cudaStreamCreate(&s));
    MUST(cudaLaunchHostFunc(s, [](void *) {
        CUdeviceptr p;
        inside[0] = cuMemAlloc(&p, 16);
        inside[1] = cuStreamQuery(0);
        inside[2] = cuCtxSynchronize();
        inside[3] = cuMemFree((CUdeviceptr)device);
    }, nullptr));
    MUST(cudaStreamSynchronize(s));
    ASK(inside[0]);
    ASK(inside[1]);
    ASK(inside[2]);
    ASK(inside[3]);
    static cudaError_t told = cudaErrorUnknown;
    MUST(cudaStreamAddCallback(s, [](cudaStream_t, cudaError_t status, void *) { told = status; }, nullptr, 0));
    MUST(cudaStreamSynchronize(s));
    ASK(told);
    ASK(cudaStreamAddCallback(s, [](cudaStream_t, cudaError_t, void *) {}, nullptr, 1));
}

static void memory_operations() {
    cudaStream_t s;
    unsigned *device, plain = 0;
    MUST(cudaStreamCreate(&s));
    MUST(cudaMalloc(&device, 64));
    CUdeviceptr at = (CUdeviceptr)device;
    ASK(cuStreamWriteValue32(s, at, 5, 0));
    ASK(cuStreamWriteValue32(s, at + 2, 5, 0));
    ASK(cuStreamWriteValue64(s, at + 4, 5, 0));
    ASK(cuStreamWriteValue32(s, (CUdeviceptr)&plain, 5, 0));
    ASK(cuStreamWriteValue32(s, at, 5, 64));
    ASK(cuStreamWaitValue32(s, at, 5, CU_STREAM_WAIT_VALUE_EQ));
    ASK(cuStreamWaitValue32(s, at, 4, CU_STREAM_WAIT_VALUE_GEQ));
    ASK(cuStreamWaitValue32(s, at, 1, CU_STREAM_WAIT_VALUE_AND));
    ASK(cuStreamWaitValue32(s, at, 8, CU_STREAM_WAIT_VALUE_NOR));
    ASK(cuStreamWaitValue32(s, at, 5, 16));
    ASK(cuStreamWaitValue64(s, at, 5, CU_STREAM_WAIT_VALUE_EQ));
    CUstreamBatchMemOpParams ops[2] = {};
    ASK(cuStreamBatchMemOp(s, 0, ops, 0));
    ops[0].operation = (CUstreamBatchMemOpType)77;
    ASK(cuStreamBatchMemOp(s, 1, ops, 0));
    ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = at, ops[0].writeValue.value = 9;
    ASK(cuStreamBatchMemOp(s, 1, ops, 0));
    ASK(cuStreamBatchMemOp(s, 257, ops, 0));
    MUST(cudaStreamSynchronize(s));
    unsigned value = 0;
    MUST(cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost));
    ASK(value);
}

// What may not be done while a stream captures, and what that does to the capture.
static void spoiled(const char *what, cudaStreamCaptureMode mode, cudaError_t (*call)(cudaStream_t)) {
    cudaStream_t s;
    cudaGraph_t graph = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    MUST(cudaStreamCreate(&s));
    MUST(cudaStreamBeginCapture(s, mode));
    cudaError_t did = call(s);
    cudaGetLastError();
    cudaError_t asked = cudaStreamIsCapturing(s, &status);
    cudaGetLastError();
    cudaError_t ended = cudaStreamEndCapture(s, &graph);
    cudaGetLastError();
    const char *names[] = {"none", "active", "invalidated"};
    printf("  %s while a stream captures (%s): %s, then %s (%s), end %s\n", what,
           mode == cudaStreamCaptureModeGlobal ? "global" : mode == cudaStreamCaptureModeThreadLocal ? "thread-local" : "relaxed",
           cudaGetErrorName(did), names[status], cudaGetErrorName(asked), cudaGetErrorName(ended));
    if (graph) MUST(cudaGraphDestroy(graph));
}
static cudaStream_t beside, unblocked;
static cudaEvent_t kept;
static void captures() {
    static void *device;
    MUST(cudaMalloc(&device, 64));
    MUST(cudaStreamCreate(&beside));
    MUST(cudaStreamCreateWithFlags(&unblocked, cudaStreamNonBlocking));
    MUST(cudaEventCreate(&kept));
    for (auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
        spoiled("nothing", mode, [](cudaStream_t) { return cudaSuccess; });
        spoiled("cudaMalloc", mode, [](cudaStream_t) { void *p; return cudaMalloc(&p, 64); });
        spoiled("cudaFree(null)", mode, [](cudaStream_t) { return cudaFree(nullptr); });
        spoiled("cudaMallocHost", mode, [](cudaStream_t) { void *p; return cudaMallocHost(&p, 64); });
        spoiled("cudaDeviceSynchronize", mode, [](cudaStream_t) { return cudaDeviceSynchronize(); });
        spoiled("synchronising the capturing stream", mode, [](cudaStream_t s) { return cudaStreamSynchronize(s); });
        spoiled("asking the capturing stream", mode, [](cudaStream_t s) { return cudaStreamQuery(s); });
        spoiled("synchronising another stream", mode, [](cudaStream_t) { return cudaStreamSynchronize(beside); });
        spoiled("asking another stream", mode, [](cudaStream_t) { return cudaStreamQuery(beside); });
        spoiled("asking an event", mode, [](cudaStream_t) { return cudaEventQuery(kept); });
        spoiled("a copy in the legacy stream", mode, [](cudaStream_t) {
            int h = 0;
            return cudaMemcpy(device, &h, 4, cudaMemcpyHostToDevice);
        });
        spoiled("a set in the legacy stream", mode, [](cudaStream_t) { return cudaMemsetAsync(device, 0, 4, 0); });
        spoiled("a set in a non-blocking stream", mode, [](cudaStream_t) { return cudaMemsetAsync(device, 0, 4, unblocked); });
        spoiled("recording in the legacy stream", mode, [](cudaStream_t) { return cudaEventRecord(kept, 0); });
        spoiled("a pageable copy", mode, [](cudaStream_t s) {
            static int h;
            return cudaMemcpyAsync(device, &h, 4, cudaMemcpyHostToDevice, s);
        });
        spoiled("cudaEventCreate", mode, [](cudaStream_t) { cudaEvent_t e; return cudaEventCreate(&e); });
        spoiled("cudaStreamCreate", mode, [](cudaStream_t) { cudaStream_t e; return cudaStreamCreate(&e); });
        spoiled("cudaMemGetInfo", mode, [](cudaStream_t) { size_t a, b; return cudaMemGetInfo(&a, &b); });
        spoiled("beginning again", mode, [](cudaStream_t s) { return cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); });
    }
    cudaEvent_t e, outside;
    cudaStream_t s, t;
    cudaGraph_t graph;
    MUST(cudaEventCreate(&e));
    MUST(cudaEventCreate(&outside));
    MUST(cudaStreamCreate(&s));
    MUST(cudaStreamCreate(&t));
    ASK(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
    ASK(cudaStreamBeginCapture(s, (cudaStreamCaptureMode)9));
    ASK(cudaStreamEndCapture(s, &graph));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    ASK(cudaEventRecord(e, s));
    ASK(cudaEventQuery(e));
    ASK(cudaStreamEndCapture(s, &graph));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    MUST(cudaEventRecord(e, s));
    ASK(cudaStreamWaitEvent(t, e, 0));
    ASK(cudaStreamEndCapture(t, &graph));
    ASK(cudaStreamEndCapture(s, &graph));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    MUST(cudaEventRecord(e, s));
    MUST(cudaStreamWaitEvent(t, e, 0));
    MUST(cudaMemsetAsync(device, 0, 4, t));
    ASK(cudaStreamEndCapture(s, &graph));
    MUST(cudaEventRecord(outside, t));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    ASK(cudaStreamWaitEvent(s, outside, 0));
    ASK(cudaStreamEndCapture(s, &graph));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    MUST(cudaStreamBeginCapture(t, cudaStreamCaptureModeRelaxed));
    MUST(cudaEventRecord(e, s));
    ASK(cudaStreamWaitEvent(t, e, 0));
    ASK(cudaStreamEndCapture(s, &graph));
    ASK(cudaStreamEndCapture(t, &graph));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    std::thread([&] {
        ASK(cudaStreamEndCapture(s, &graph));
        void *p;
        ASK(cudaMalloc(&p, 16));
    }).join();
    ASK(cudaStreamEndCapture(s, &graph));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    std::thread([&] {
        void *p;
        ASK(cudaMalloc(&p, 16));
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        ASK(cudaThreadExchangeStreamCaptureMode(&mode));
        ASK((int)mode);
    }).join();
    ASK(cudaStreamEndCapture(s, &graph));
    size_t n = 9;
    ASK(cudaGraphGetNodes(graph, nullptr, &n));
    ASK(n);
    cudaStreamCaptureMode wrong = (cudaStreamCaptureMode)9;
    ASK(cudaThreadExchangeStreamCaptureMode(&wrong));
    cudaStreamCaptureStatus status;
    unsigned long long id = 99;
    const cudaGraphNode_t *deps;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    MUST(cudaMemsetAsync(device, 0, 4, s));
    ASK(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &deps, nullptr, &n));
    ASK((int)status);
    ASK(id > 0);
    ASK(n);
    ASK(cudaStreamUpdateCaptureDependencies(s, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies));
    ASK(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &deps, nullptr, &n));
    ASK(n);
    ASK(cudaStreamEndCapture(s, &graph));
    ASK(cudaStreamUpdateCaptureDependencies(s, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies));
    ASK(cudaStreamIsCapturing(0, &status));
    ASK(cudaStreamIsCapturing(s, nullptr));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    ASK(cudaStreamIsCapturing(0, &status));
    ASK(cudaStreamDestroy(s));
}
