// Asks CUDA's runtime for entry points of the driver: cudaGetDriverEntryPoint in its forms. Prints for each the library that
// the answer lies in, and launches nothing: it runs against the fake driver, which has none of the runtime's private tables.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>

static const char *base(void *address) {
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname) return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

int main() {
    for (const char *name : {"cuLaunchKernel", "cuMemcpyAsync", "cuStreamSynchronize", "cuNoSuchFunction"}) {
        for (unsigned long long flags : {(unsigned long long)cudaEnableLegacyStream, (unsigned long long)cudaEnablePerThreadDefaultStream}) {
            void *found = nullptr;
            cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
            cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12050, flags, &status);
            printf("%s %llu: error %d, status %d, in %s\n", name, flags, error, status, base(found));
        }
    }
    return 0;
}
