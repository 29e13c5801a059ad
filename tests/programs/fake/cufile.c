/* A stand-in for libcufile.so.0. A file handle points to the file's length. What a call does to memory it does as cuFile does without
 * GPUDirect: by copies on a stream of its own. A batch completes from its last entry on, at most `least` entries a call. */
#include "cufile.h"
#include <stdlib.h>

static CUstream own;
static CUfileIOParams_t pending[16];
static unsigned left;

static size_t within(void *file, size_t size, off_t at) {
    size_t length = *(size_t *)file;
    return (size_t)at >= length ? 0 : length - at < size ? length - at : size;
}
static void write_memory(void *base, off_t offset, size_t size) {
    if (!own) cuStreamCreate(&own, 1);
    if (size) cuMemsetD8Async((CUdeviceptr)base + offset, 0, size, own);
    cuStreamSynchronize(own);
}
ssize_t cuFileRead(void *file, void *base, size_t size, off_t file_offset, off_t offset) {
    size = within(file, size, file_offset);
    write_memory(base, offset, size);
    return size;
}
ssize_t cuFileWrite(void *file, const void *base, size_t size, off_t file_offset, off_t offset) {
    (void)file, (void)base, (void)file_offset, (void)offset;
    return size;
}
CUfileError_t cuFileReadAsync(void *file, void *base, size_t *size, off_t *file_offset, off_t *offset, ssize_t *moved, CUstream stream) {
    (void)stream;
    *moved = cuFileRead(file, base, *size, *file_offset, *offset);
    return (CUfileError_t){0, 0};
}
CUfileError_t cuFileWriteAsync(void *file, void *base, size_t *size, off_t *file_offset, off_t *offset, ssize_t *moved, CUstream stream) {
    (void)stream;
    *moved = cuFileWrite(file, base, *size, *file_offset, *offset);
    return (CUfileError_t){0, 0};
}
CUfileError_t cuFileBatchIOSubmit(void *batch, unsigned count, CUfileIOParams_t *entries, unsigned flags) {
    (void)flags;
    if (!batch) return (CUfileError_t){5022, 0};
    for (unsigned i = 0; i < count; i++) pending[left++] = entries[i];
    return (CUfileError_t){0, 0};
}
CUfileError_t cuFileBatchIOGetStatus(void *batch, unsigned least, unsigned *count, CUfileIOEvents_t *events, struct timespec *timeout) {
    (void)batch, (void)timeout;
    for (*count = 0; *count < least && left; ++*count) {
        CUfileIOParams_t *entry = &pending[--left];
        if (entry->opcode == CUFILE_READ) write_memory(entry->u.batch.devPtr_base, entry->u.batch.devPtr_offset, entry->u.batch.size);
        events[*count] = (CUfileIOEvents_t){entry->cookie, CUFILE_COMPLETE, entry->u.batch.size};
    }
    return (CUfileError_t){0, 0};
}
CUfileError_t cuFileBatchIOCancel(void *batch) {
    (void)batch;
    left = 0;
    return (CUfileError_t){0, 0};
}
void cuFileBatchIODestroy(void *batch) { (void)batch; }
