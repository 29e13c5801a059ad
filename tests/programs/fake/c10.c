/* What the tests need of PyTorch's two libraries, in one source: libc10.so (which is told of every block) and, with C10_CUDA, libc10_cuda.so
 * (an allocator that carves blocks out of one segment and tells of them through its PLT). With OLD the function has the signature of
 * other versions, so another name. */
#include "cuda_mini.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct device { signed char kind, index; };
#ifdef OLD
void report(void *ptr, int64_t size, struct device device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE");
#define REPORT(ptr, size) report(ptr, size, (struct device){1, 0})
#else
void report(void *ptr, int64_t size, size_t total, size_t reserved, struct device device)
    __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
#define REPORT(ptr, size) report(ptr, size, 77, 88, (struct device){1, 0})
#endif
int64_t c10_told(void);

#ifndef C10_CUDA
static int64_t told;
#ifdef OLD
void report(void *ptr, int64_t size, struct device device) { told += size; }
#else
void report(void *ptr, int64_t size, size_t total, size_t reserved, struct device device) {
    if (total != 77 || reserved != 88 || device.kind != 1 || device.index) abort();
    told += size;
}
#endif
/* The sum of what was told: whoever stands before the function must hand everything on. */
int64_t c10_told(void) { return told; }
#else
struct stream { uint64_t device, id; };
static CUdeviceptr segment;
static CUstream current;
/* c10::cuda::getCurrentCUDAStream and CUDAStream::stream. */
struct stream current_stream(signed char device) __asm__("_ZN3c104cuda20getCurrentCUDAStreamEa");
struct stream current_stream(signed char device) { return (struct stream){0, (uint64_t)current}; }
CUstream stream_of(const struct stream *self) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
CUstream stream_of(const struct stream *self) { return (CUstream)self->id; }
void c10_use(CUstream stream) { current = stream; }
CUdeviceptr c10_take(int slot, int64_t size) {
    if (!segment && cuMemAlloc_v2(&segment, 1 << 20)) abort();
    REPORT((void *)(segment + slot * 65536), size);
    return segment + slot * 65536;
}
void c10_give(CUdeviceptr block, int64_t size) { REPORT((void *)block, -size); }
#endif
