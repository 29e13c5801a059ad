/* What the tests need of cuFile: the parts of cufile.h that are observed, with NVIDIA's layouts and numbers. */
#ifndef CUFILE_MINI_H
#define CUFILE_MINI_H
#include "cuda_mini.h"
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

typedef struct {
    int err, cu_err;
} CUfileError_t;
typedef struct {
    int mode;
    union {
        struct {
            void *devPtr_base;
            off_t file_offset, devPtr_offset;
            size_t size;
        } batch;
    } u;
    void *fh;
    int opcode;
    void *cookie;
} CUfileIOParams_t;
typedef struct {
    void *cookie;
    int status;
    size_t ret;
} CUfileIOEvents_t;
enum { CUFILE_READ, CUFILE_WRITE };
enum { CUFILE_WAITING = 1, CUFILE_PENDING = 2, CUFILE_COMPLETE = 16 };

#define CUFILE_FUNCTIONS(X)                                                                                           \
    X(ssize_t, cuFileRead, (void *file, void *base, size_t size, off_t file_offset, off_t offset))                    \
    X(ssize_t, cuFileWrite, (void *file, const void *base, size_t size, off_t file_offset, off_t offset))             \
    X(CUfileError_t, cuFileReadAsync,                                                                                 \
      (void *file, void *base, size_t *size, off_t *file_offset, off_t *offset, ssize_t *moved, CUstream stream))     \
    X(CUfileError_t, cuFileWriteAsync,                                                                                \
      (void *file, void *base, size_t *size, off_t *file_offset, off_t *offset, ssize_t *moved, CUstream stream))     \
    X(CUfileError_t, cuFileBatchIOSubmit, (void *batch, unsigned count, CUfileIOParams_t *entries, unsigned flags))   \
    X(CUfileError_t, cuFileBatchIOGetStatus,                                                                          \
      (void *batch, unsigned least, unsigned *count, CUfileIOEvents_t *events, struct timespec *timeout))             \
    X(CUfileError_t, cuFileBatchIOCancel, (void *batch))                                                              \
    X(void, cuFileBatchIODestroy, (void *batch))
#endif
