// Replaces the file that its kernels' code is in, as a build does while the program runs. Two kernels on two streams use
// the same bytes, ordered by an event or not.
//
//   replaced FILE WAY WHEN racy|ordered
// FILE: "self", a shared library made of this source, "module" (PTX in a file of the working folder), "large" (the same with
// 1 MiB of comments), or "memory" (that in memory).
// WAY: keep, delete, rename, other (a copy of "decoy" takes the name), write (a new file of this name), link (to "decoy").
// "decoy" is a file of the working folder.
// WHEN: early (before the first call of CUDA), late (between the launches of two kernels).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

__global__ void first(int *p) { *p = 1; }
__global__ void fill(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}
__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

static const char *text = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry put(.param .u64 to) {
    .reg .b64 %rd<4>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [to];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
)";

static void must(bool ok, const char *what) {
    if (ok) return;
    printf("failed: %s\n", what);
    fflush(stdout);
    _exit(9);
}

static void replace(const std::string &file, const std::string &way) {
    if (way == "delete") must(!unlink(file.c_str()), "unlink");
    if (way == "rename") must(!rename(file.c_str(), (file + ".old").c_str()), "rename");
    if (way == "other") must(!system(("cp decoy '" + file + ".new' && mv '" + file + ".new' '" + file + "'").c_str()), "mv");
    if (way == "write") must(!system(("rm '" + file + "' && cp decoy '" + file + "'").c_str()), "cp");
    if (way == "link") must(!unlink(file.c_str()) && !symlink("decoy", file.c_str()), "symlink");
}

template <class F> static F driver(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    must(!cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result) && found, name);
    return (F)found;
}

extern "C" int work(const char *name, const char *way, const char *when, const char *rest) {
    const int n = 1 << 12;
    bool early = !strcmp(when, "early"), memory = !strcmp(name, "memory"), large = memory || !strcmp(name, "large");
    bool module = large || !strcmp(name, "module");
    std::string file = module ? "put.ptx" : name;
    if (early && !module) replace(file, way);
    int *one;
    float *x, *y;
    cudaStream_t a, b;
    cudaEvent_t event;
    must(!cudaMalloc(&one, 4) && !cudaMalloc(&x, n * 4) && !cudaMalloc(&y, n * 4), "memory");
    must(!cudaStreamCreateWithFlags(&a, 1) && !cudaStreamCreateWithFlags(&b, 1) && !cudaEventCreate(&event), "streams");
    CUfunction put = nullptr;
    if (module) {
        // Never through a link that an earlier run has left.
        unlink(file.c_str());
        FILE *to = fopen(file.c_str(), "wx");
        std::string all = text;
        while (large && all.size() < 1 << 20) all += "// Nothing that any compiler would look at.\n";
        must(to && fputs(all.c_str(), to) >= 0 && !fclose(to), "a file");
        CUmodule loaded;
        const char *load = memory ? "cuModuleLoadData" : "cuModuleLoad", *from = memory ? all.c_str() : file.c_str();
        must(!driver<CUresult (*)(CUmodule *, const char *)>(load)(&loaded, from), "a module");
        must(!driver<CUresult (*)(CUfunction *, CUmodule, const char *)>("cuModuleGetFunction")(&put, loaded, "put"), "put");
        replace(file, way);
    }
    first<<<1, 1, 0, a>>>(one);
    must(!cudaDeviceSynchronize(), "first");
    if (!early && !module) {
        usleep(100000); // The analyzer has heard of the file, mostly.
        replace(file, way);
    }
    void *params[] = {&x};
    auto launch = module ? driver<CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                               CUstream, void **, void **)>("cuLaunchKernel")
                         : nullptr;
    if (module) must(!launch(put, 1, 1, 1, 32, 1, 1, 0, a, params, nullptr), "put");
    else fill<<<n / 256, 256, 0, a>>>(x, n);
    if (!strcmp(rest, "ordered")) must(!cudaEventRecord(event, a) && !cudaStreamWaitEvent(b, event, 0), "the event");
    if (module) must(!launch(put, 1, 1, 1, 32, 1, 1, 0, b, params, nullptr), "put");
    else scale<<<n / 256, 256, 0, b>>>(x, y, n);
    must(!cudaDeviceSynchronize(), "the rest");
    puts("done");
    return 0;
}

int main(int, char **argv) {
    char self[4096] = {};
    must(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "its own path");
    if (argv[1][0] != '/') return work(!strcmp(argv[1], "self") ? self : argv[1], argv[2], argv[3], argv[4]);
    void *library = dlopen(argv[1], RTLD_NOW);
    must(library, "the library");
    auto theirs = (int (*)(const char *, const char *, const char *, const char *))dlsym(library, "work");
    return theirs(argv[1], argv[2], argv[3], argv[4]);
}
