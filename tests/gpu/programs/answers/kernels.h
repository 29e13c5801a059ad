// Kernels: launches, attributes, occupancy, modules and libraries, and what stays broken after a kernel has failed.
#pragma once
#include "ask.h"
#include <cassert>

__global__ void __launch_bounds__(64) bounded(int *p) { p[threadIdx.x] = 1; }
__global__ void with_shared(int *p) {
    __shared__ int part[256];
    extern __shared__ int more[];
    part[threadIdx.x] = p[threadIdx.x], more[threadIdx.x] = 1;
    __syncthreads();
    p[threadIdx.x] = part[255 - threadIdx.x] + more[threadIdx.x ^ 1];
}
__global__ void nothing() {}
struct Three { char c; double d; int i; };
__global__ void many_parameters(char a, double b, Three c, short d) {
    if (a == 1 && b == 2 && c.i == 3 && d == 4) printf("?");
}
__global__ void fails_assert(int n) { assert(n == 0); }
__global__ void traps() { asm("trap;"); }
__global__ void reads(const int *p, int *to) { *to = *p; }

static void launches() {
    int *p;
    MUST(cudaMalloc(&p, 4096));
    void *args[] = {&p, &p}, *none[] = {nullptr};
    auto launch = [&](void *f, dim3 grid, dim3 block, size_t shared) { return cudaLaunchKernel(f, grid, block, args, shared, 0); };
    ASK(launch((void *)nothing, 1, 1, 0));
    ASK(launch((void *)nothing, 0, 1, 0));
    ASK(launch((void *)nothing, 1, 0, 0));
    ASK(launch((void *)nothing, 1, 1025, 0));
    ASK(launch((void *)nothing, 1, dim3(1, 1, 65), 0));
    ASK(launch((void *)nothing, 1, dim3(32, 32, 2), 0));
    ASK(launch((void *)nothing, dim3(1, 65536, 1), 1, 0));
    ASK(launch((void *)nothing, dim3(65536, 1, 1), 1, 0));
    ASK(launch((void *)nothing, 1, 1, 48 << 10));
    ASK(launch((void *)nothing, 1, 1, 49 << 10));
    ASK(launch((void *)with_shared, 1, 256, 47 << 10));
    ASK(launch((void *)with_shared, 1, 256, 48 << 10));
    ASK(launch((void *)bounded, 1, 64, 0));
    ASK(launch((void *)bounded, 1, 65, 0));
    ASK(launch((void *)bounded, 1, 2048, 0));
    ASK(launch((void *)&p, 1, 1, 0));
    ASK(launch(nullptr, 1, 1, 0));
    ASK(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    ASK(launch((void *)with_shared, 1, 256, 64 << 10));
    ASK(launch((void *)with_shared, 1, 256, 65 << 10));
    ASK(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    ASK(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 << 10));
    ASK(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
    ASK(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    ASK(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributePreferredSharedMemoryCarveout, -1));
    ASK(cudaFuncSetAttribute((void *)with_shared, (cudaFuncAttribute)99, 1));
    ASK(cudaFuncSetAttribute((void *)&p, cudaFuncAttributePreferredSharedMemoryCarveout, 1));
    ASK(cudaLaunchCooperativeKernel((void *)nothing, 1, 32, args, 0, 0));
    ASK(cudaLaunchCooperativeKernel((void *)nothing, 1 << 20, 32, args, 0, 0));
    ASK(cudaDeviceSynchronize());
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute[2] = {};
    config.gridDim = 4, config.blockDim = 32, config.attrs = attribute, config.numAttrs = 1;
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim = {2, 1, 1};
    ASK(cudaLaunchKernelExC(&config, (void *)nothing, none));
    attribute[0].val.clusterDim = {3, 1, 1};
    ASK(cudaLaunchKernelExC(&config, (void *)nothing, none));
    attribute[0].val.clusterDim = {16, 1, 1};
    config.gridDim = 16;
    ASK(cudaLaunchKernelExC(&config, (void *)nothing, none));
    ASK(cudaFuncSetAttribute((void *)nothing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    ASK(cudaLaunchKernelExC(&config, (void *)nothing, none));
    attribute[0].id = (cudaLaunchAttributeID)200;
    ASK(cudaLaunchKernelExC(&config, (void *)nothing, none));
    ASK(cudaDeviceSynchronize());
}

static void attributes() {
    cudaFuncAttributes a = {};
    ASK(cudaFuncGetAttributes(&a, with_shared));
    ASK(a.sharedSizeBytes);
    ASK(a.maxThreadsPerBlock);
    ASK(a.maxDynamicSharedSizeBytes);
    ASK(a.preferredShmemCarveout);
    ASK(a.localSizeBytes);
    ASK(a.binaryVersion);
    ASK(a.ptxVersion);
    ASK(a.clusterDimMustBeSet);
    ASK(a.numRegs > 0 && a.numRegs < 64);
    ASK(cudaFuncGetAttributes(&a, bounded));
    ASK(a.maxThreadsPerBlock);
    ASK(cudaFuncGetAttributes(&a, (void *)&a));
    ASK(cudaFuncGetAttributes(nullptr, bounded));
    const char *name = nullptr;
    ASK(cudaFuncGetName(&name, (void *)bounded));
    ASK(name);
    size_t offset = 99, size = 99;
    for (int i = 0; i < 5; i++) {
        ASK(cudaFuncGetParamInfo((void *)many_parameters, i, &offset, &size));
        ASK(offset);
        ASK(size);
    }
    cudaFunction_t f;
    ASK(cudaGetFuncBySymbol(&f, (void *)nothing));
    int value = 0;
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    ASK(value);
    ASK(cuFuncGetAttribute(&value, (CUfunction_attribute)99, f));
    ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 32));
    int blocks = 0, threads = 0;
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
    ASK(blocks);
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 1024, 0));
    ASK(blocks);
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 256, 40 << 10));
    ASK(blocks);
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 256, 100 << 10));
    ASK(blocks);
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0));
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 2048, 0));
    ASK(blocks);
    ASK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, nothing, 0, 0));
    ASK(threads);
    ASK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, bounded, 0, 0));
    ASK(threads);
    ASK(cudaOccupancyAvailableDynamicSMemPerBlock(&size, nothing, 4, 256));
    ASK(size);
}

static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .u32 counter[3];\n"
                          ".visible .entry touch(.param .u64 to, .param .u32 value) { .reg .u64 a; .reg .u32 n;\n"
                          " ld.param.u64 a, [to]; ld.param.u32 n, [value]; st.global.u32 [a], n; ret; }\n";
static void modules() {
    MUST(cudaFree(nullptr));
    CUmodule m;
    CUfunction f, g;
    CUdeviceptr at;
    size_t size = 0, offset = 0;
    unsigned count = 0;
    ASK(cuModuleLoadData(&m, nullptr));
    ASK(cuModuleLoadData(&m, "no code at all"));
    ASK(cuModuleLoadData(&m, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry wrong() { what; }\n"));
    ASK(cuModuleLoad(&m, "/no/such/file"));
    ASK(cuModuleLoadData(&m, PTX));
    ASK(cuModuleGetFunction(&f, m, "nothing_of_this_name"));
    ASK(cuModuleGetFunction(&f, m, "touch"));
    ASK(cuModuleGetFunction(&f, m, nullptr));
    MUST(cuModuleGetFunction(&g, m, "touch"));
    ASK(f == g);
    ASK(cuModuleGetFunctionCount(&count, m));
    ASK(count);
    ASK(cuModuleGetGlobal(&at, &size, m, "counter"));
    ASK(size);
    ASK(cuModuleGetGlobal(&at, &size, m, "touch"));
    ASK(cuModuleGetGlobal(nullptr, &size, m, "counter"));
    const char *name = nullptr;
    ASK(cuFuncGetName(&name, f));
    ASK(name);
    ASK(cuFuncGetParamInfo(f, 1, &offset, &size));
    ASK(offset * 100 + size);
    ASK(cuFuncGetParamInfo(f, 2, &offset, &size));
    CUmodule of;
    ASK(cuFuncGetModule(&of, f));
    ASK(of == m);
    CUdeviceptr p;
    unsigned n = 7;
    MUST(cuMemAlloc(&p, 64));
    void *args[] = {&p, &n};
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    ASK(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    ASK(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, nullptr, args, nullptr));
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1 << 20, nullptr, args, nullptr));
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    char buffer[12];
    memcpy(buffer, &p, 8), memcpy(buffer + 8, &n, 4);
    size_t bytes = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, args, extra));
    bytes = 8;
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    ASK(cuCtxSynchronize());
    CUlibrary library;
    CUkernel kernel;
    CUfunction of_kernel;
    ASK(cuLibraryLoadData(&library, PTX, nullptr, nullptr, 0, nullptr, nullptr, 0));
    ASK(cuLibraryGetKernel(&kernel, library, "nothing_of_this_name"));
    ASK(cuLibraryGetKernel(&kernel, library, "touch"));
    ASK(cuLibraryGetKernelCount(&count, library));
    ASK(count);
    ASK(cuLibraryGetGlobal(&at, &size, library, "counter"));
    ASK(size);
    ASK(cuLibraryGetManaged(&at, &size, library, "counter"));
    ASK(cuKernelGetFunction(&of_kernel, kernel));
    ASK(cuKernelGetName(&name, kernel));
    ASK(name);
    int value = 0;
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    ASK(value);
    ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, kernel, 0));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, of_kernel));
    ASK(value);
    ASK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    ASK(cuLibraryUnload(library));
    ASK(cuModuleUnload(m));
    CUlinkState link;
    void *cubin = nullptr;
    ASK(cuLinkCreate(0, nullptr, nullptr, &link));
    ASK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)"rubbish", 8, "rubbish.ptx", 0, nullptr, nullptr));
    ASK(cuLinkDestroy(link));
    MUST(cuLinkCreate(0, nullptr, nullptr, &link));
    ASK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)PTX, sizeof PTX, "touch.ptx", 0, nullptr, nullptr));
    ASK(cuLinkComplete(link, &cubin, &size));
    ASK(cuModuleLoadData(&m, cubin));
    ASK(cuLinkDestroy(link));
}

// A kernel fails: which calls say so, and until when.
static void after_failure() {
    int *p, *host;
    ASK(cudaDeviceSynchronize());
    ASK(cudaGetLastError());
    ASK(cudaMalloc(&p, 64));
    ASK(cudaMallocHost(&host, 64));
    ASK(cudaFree(nullptr));
    ASK(cudaMemset(nullptr, 0, 0));
    ASK(cudaStreamQuery(0));
    ASK(cudaStreamSynchronize(0));
    ASK(cudaEventCreate((cudaEvent_t *)&p));
    nothing<<<1, 1>>>();
    ASK(cudaPeekAtLastError());
    ASK(cudaGetLastError());
    ASK(cudaGetLastError());
    int count;
    ASK(cudaGetDeviceCount(&count));
    size_t a, b;
    ASK(cudaMemGetInfo(&a, &b));
    CUdeviceptr d;
    ASK(cuMemAlloc(&d, 64));
    ASK(cuCtxSynchronize());
    ASK(cudaDeviceReset());
    ASK(cudaMalloc(&p, 64));
    nothing<<<1, 1>>>();
    ASK(cudaGetLastError());
    ASK(cudaDeviceSynchronize());
}
static void failed_assert() {
    MUST(cudaFree(nullptr));
    fails_assert<<<1, 1>>>(1);
    after_failure();
}
static void trapped() {
    MUST(cudaFree(nullptr));
    traps<<<1, 1>>>();
    after_failure();
}
static void illegal_address() {
    int *p;
    MUST(cudaMalloc(&p, 64));
    reads<<<1, 1>>>((int *)0x10, p);
    after_failure();
}
static void misaligned() {
    int *p;
    MUST(cudaMalloc(&p, 64));
    reads<<<1, 1>>>((int *)((char *)p + 2), p);
    after_failure();
}

static void last_error() {
    void *p;
    ASK(cudaPeekAtLastError());
    cudaMalloc(&p, (size_t)1 << 50);
    ASK(cudaPeekAtLastError());
    cudaMalloc(&p, (size_t)1 << 50);
    cudaFree(nullptr);
    ASK(cudaGetLastError());
    ASK(cudaGetLastError());
    cudaSetDevice(999);
    ASK(cudaGetLastError());
    nothing<<<1, 4096>>>();
    ASK(cudaPeekAtLastError());
    nothing<<<1, 1>>>();
    ASK(cudaGetLastError());
    cudaMalloc(&p, (size_t)1 << 50);
    std::thread([] { ASK(cudaPeekAtLastError()); }).join();
    ASK(cudaGetLastError());
    cudaPointerAttributes attributes;
    cudaPointerGetAttributes(&attributes, &p);
    ASK(cudaGetLastError());
    cudaMemcpyAsync(p, nullptr, 4, (cudaMemcpyKind)9);
    cuMemAlloc(nullptr, 0);
    ASK(cudaGetLastError());
    Gate gate;
    gate.close(0);
    cudaStreamQuery(0);
    ASK(cudaPeekAtLastError());
    gate.open = 1;
    cudaDeviceSynchronize();
    ASK(cudaGetLastError());
    ASK(cudaGetErrorName((cudaError_t)12345));
    ASK(cudaGetErrorString((cudaError_t)12345));
    ASK(cudaGetErrorString(cudaErrorInvalidValue));
    ASK(cudaGetErrorString(cudaErrorNotReady));
    ASK(cudaGetErrorString(cudaSuccess));
    ASK(cudaGetErrorString(cudaErrorIllegalAddress));
    ASK(cudaGetErrorName(cudaErrorLaunchFailure));
    const char *text = "untouched";
    ASK(cuGetErrorString((CUresult)12345, &text));
    ASK(text);
    ASK(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
    ASK(text);
    ASK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    ASK(text);
}
