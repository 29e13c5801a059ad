// `host [PLUGIN ARGUMENTS]`: says whether the library that observes MPI is mapped, then loads a plug-in with a local
// scope, as Python loads its extensions, and runs its main function. With -DCUDA it uses CUDA itself.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#ifdef CUDA
#include <cuda_runtime.h>
#endif

static bool is_mapped(const char *library) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    bool found = false;
    while (maps && fgets(line, sizeof line, maps)) found = found || strstr(line, library);
    if (maps) fclose(maps);
    return found;
}

int main(int argc, char **argv) {
    printf("%s\n", is_mapped("libstreamsan_mpi.so") ? "observes MPI" : "does not observe MPI");
    fflush(stdout);
#ifdef CUDA
    void *p = nullptr;
    if (cudaMalloc(&p, 4096) != cudaSuccess || cudaMemset(p, 0, 4096) != cudaSuccess) return 1;
    cudaDeviceSynchronize();
#endif
    if (argc < 2) return 0;
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 2;
    auto run = reinterpret_cast<int (*)(int, char **)>(dlsym(plugin, "_Z11plugin_mainiPPc"));
    return run ? run(argc - 1, argv + 1) : 3;
}
