/* The few declarations of the CUDA driver API that the programs and the fake driver here use: no toolkit is needed. */
#ifndef CUDA_MINI_H
#define CUDA_MINI_H
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUlibrary, *CUfunction, *CUkernel;
typedef void *CUarray;
typedef void *CUgraph, *CUgraphExec, *CUgraphNode;
typedef void (*CUhostFn)(void *);
/* CUDA_KERNEL_NODE_PARAMS_v2. */
typedef struct {
    CUfunction f;
    unsigned gx, gy, gz, bx, by, bz, shared;
    void **params, **extra;
    CUkernel kernel;
    CUcontext context;
} CUkernelNode;
typedef struct { char reserved[64]; } CUipcHandle;

#define LAUNCH_ARGS                                                                                                   \
    CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,      \
        CUstream s, void **params, void **extra

/* result name (arguments) */
#define MINI_API(X)                                                                                                   \
    X(cuInit, (unsigned flags))                                                                                       \
    X(cuDriverGetVersion, (int *version))                                                                             \
    X(cuDeviceGet, (CUdevice *device, int ordinal))                                                                   \
    X(cuDeviceGetCount, (int *count))                                                                                 \
    X(cuDeviceGetName, (char *name, int length, CUdevice device))                                                     \
    X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                                             \
    X(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))                                                          \
    X(cuDeviceGetUuid_v2, (void *uuid, CUdevice device))                                                              \
    X(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                                                \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                                \
    X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active))                                    \
    X(cuCtxCreate_v2, (CUcontext *context, unsigned flags, CUdevice device))                                          \
    X(cuCtxDestroy_v2, (CUcontext context))                                                                           \
    X(cuCtxSetCurrent, (CUcontext context))                                                                           \
    X(cuCtxGetCurrent, (CUcontext *context))                                                                          \
    X(cuCtxGetDevice, (CUdevice *device))                                                                             \
    X(cuCtxSynchronize, (void))                                                                                       \
    X(cuStreamCreate, (CUstream *stream, unsigned flags))                                                             \
    X(cuStreamCreateWithPriority, (CUstream *stream, unsigned flags, int priority))                                   \
    X(cuStreamDestroy_v2, (CUstream stream))                                                                          \
    X(cuStreamSynchronize, (CUstream stream))                                                                         \
    X(cuStreamQuery, (CUstream stream))                                                                               \
    X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                            \
    X(cuStreamGetFlags, (CUstream stream, unsigned *flags))                                                           \
    X(cuStreamGetPriority, (CUstream stream, int *priority))                                                          \
    X(cuStreamGetCtx, (CUstream stream, CUcontext *context))                                                          \
    X(cuStreamIsCapturing, (CUstream stream, int *status))                                                            \
    X(cuEventCreate, (CUevent *event, unsigned flags))                                                                \
    X(cuEventRecord, (CUevent event, CUstream stream))                                                                \
    X(cuEventQuery, (CUevent event))                                                                                  \
    X(cuEventSynchronize, (CUevent event))                                                                            \
    X(cuEventDestroy_v2, (CUevent event))                                                                             \
    X(cuArray3DGetDescriptor_v2, (void *out, CUarray array))                                                          \
    X(cuMemAlloc_v2, (CUdeviceptr *address, size_t bytes))                                                            \
    X(cuMemFree_v2, (CUdeviceptr address))                                                                            \
    X(cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                                 \
    X(cuMemFreeHost, (void *address))                                                                                 \
    X(cuMemAllocAsync, (CUdeviceptr *address, size_t bytes, CUstream stream))                                         \
    X(cuMemFreeAsync, (CUdeviceptr address, CUstream stream))                                                         \
    X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                                              \
    X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                                                    \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                        \
    X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                              \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                        \
    X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))                          \
    X(cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t words, CUstream stream))                              \
    X(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *bytes, CUdeviceptr address))                               \
    X(cuIpcGetMemHandle, (CUipcHandle *handle, CUdeviceptr address))                                                  \
    X(cuIpcOpenMemHandle_v2, (CUdeviceptr *address, CUipcHandle handle, unsigned flags))                              \
    X(cuIpcCloseMemHandle, (CUdeviceptr address))                                                                     \
    X(cuIpcGetEventHandle, (CUipcHandle *handle, CUevent event))                                                      \
    X(cuIpcOpenEventHandle, (CUevent *event, CUipcHandle handle))                                                     \
    X(cuModuleLoadData, (CUmodule *module, const void *image))                                                        \
    X(cuModuleUnload, (CUmodule module))                                                                              \
    X(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))                                 \
    X(cuLibraryLoadData, (CUlibrary *library, const void *image, void *o, void **ov, unsigned n, void *l, void **lv,  \
                          unsigned m))                                                                                \
    X(cuLibraryGetKernel, (CUkernel *kernel, CUlibrary library, const char *name))                                    \
    X(cuFuncGetName, (const char **name, CUfunction function))                                                        \
    X(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *size))                          \
    X(cuFuncGetModule, (CUmodule *module, CUfunction function))                                                       \
    X(cuKernelGetName, (const char **name, CUkernel kernel))                                                          \
    X(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *size))                            \
    X(cuKernelGetLibrary, (CUlibrary *library, CUkernel kernel))                                                      \
    X(cuLaunchKernel, (LAUNCH_ARGS))                                                                                  \
    X(cuGraphCreate, (CUgraph * graph, unsigned flags))                                                               \
    X(cuGraphAddKernelNode_v2, (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,           \
                                const CUkernelNode *params))                                                          \
    X(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, uint64_t flags))                               \
    X(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                                             \
    X(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count))                                            \
    X(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count))                            \
    X(cuGraphNodeGetType, (CUgraphNode node, int *type))                                                              \
    X(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUkernelNode *params))                                        \
    X(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data))                                             \
    X(cuGetProcAddress, (const char *name, void **address, int version, uint64_t flags))                              \
    X(cuGetProcAddress_v2, (const char *name, void **address, int version, uint64_t flags, int *status))

#define MINI_DECLARE(name, arguments) CUresult name arguments;
#ifndef MINI_IMPLEMENTS
MINI_API(MINI_DECLARE)
#endif
#endif
