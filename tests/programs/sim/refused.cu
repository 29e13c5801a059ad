// Asks the simulated GPU for what it has not got, in the way that the first argument says, and
// ignores every error. Before and after that it does work which is simulated.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// From now on there are no sockets.
static bool forbid_sockets() {
    sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                          {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_socket},
                          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 1},
                          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    sock_fprog filter = {4, code};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

__global__ void fill(int *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = i;
}

// No compiler makes this instruction.
static const char *strange = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry strange(.param .u64 p) {
    .reg .b32 %r<2>;
    mov.u32 %r1, 1;
    frobnicate.u32 %r1, %r1;
    ret;
}
.visible .entry calls(.param .u64 p, .param .u32 really) {
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u32 %r1, [really];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    call nowhere;
    ret;
}
.extern .func nowhere();
)";

static void work(int *p, int n) {
    fill<<<n / 256, 256>>>(p, n);
    (void)cudaDeviceSynchronize();
    (void)cudaGetLastError();
}

static void launch(const char *name, int times, unsigned really) {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    void *p = nullptr, *args[] = {&p, &really};
    (void)cudaLibraryLoadData(&library, strange, nullptr, nullptr, 0, nullptr, nullptr, 0);
    (void)cudaLibraryGetKernel(&kernel, library, name);
    for (int n = 0; n < times; n++) {
        (void)cudaLaunchKernel((void *)kernel, dim3(2), dim3(32), args, 0, nullptr);
        (void)cudaDeviceSynchronize();
        (void)cudaGetLastError();
    }
}

// The refused kernel fails on its stream, while the calls behind it are made.
static void race_behind_a_kernel(int *p, int n) {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    cudaStream_t streams[2];
    unsigned really = 1;
    void *args[] = {&p, &really};
    for (cudaStream_t &stream : streams) (void)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    (void)cudaLibraryLoadData(&library, strange, nullptr, nullptr, 0, nullptr, nullptr, 0);
    (void)cudaLibraryGetKernel(&kernel, library, "strange");
    (void)cudaLaunchKernel((void *)kernel, dim3(2), dim3(32), args, 0, streams[0]);
    for (cudaStream_t stream : streams) fill<<<n / 256, 256, 0, stream>>>(p, n);
    (void)cudaDeviceSynchronize();
}

static void import() {
    cudaExternalMemory_t memory;
    (void)cudaImportExternalMemory(&memory, nullptr);
}

// What a careful program asks before it uses something: no call of it is refused.
static void probe() {
    int value;
    for (int n = 1; n < 200; n++) (void)cudaDeviceGetAttribute(&value, (cudaDeviceAttr)n, 0);
    for (const char *name : {"cuMulticastCreate", "cuGreenCtxCreate", "cuMemExportToShareableHandle", "cuNothing"}) {
        void *found;
        cudaDriverEntryPointQueryResult status;
        (void)cudaGetDriverEntryPointByVersion(name, &found, 13000, cudaEnableDefault, &status);
    }
    void *found;
    (void)cudaGetDriverEntryPointByVersion("cuMulticastGetGranularity", &found, 12010, cudaEnableDefault, nullptr);
    size_t granularity;
    CUmulticastObjectProp prop = {};
    (void)((CUresult(*)(size_t *, const CUmulticastObjectProp *, int))found)(&granularity, &prop, 0);
    cudaLibrary_t library;
    (void)cudaLibraryLoadData(&library, "garbage", nullptr, nullptr, 0, nullptr, nullptr, 0);
    launch("no_such_kernel", 1, 0);
}

int main(int, char **argv) {
    const char *how = argv[1];
    const int n = 1 << 16;
    int *p;
    if (!strcmp(how, "environment")) clearenv();
    if (!strcmp(how, "child")) {
        if (fork() == 0) {
            (void)cudaMalloc(&p, n * sizeof *p);
            import();
            _exit(0);
        }
        int status;
        wait(&status);
    }
    (void)cudaMalloc(&p, n * sizeof *p);
    work(p, n);
    if (!strcmp(how, "probe")) probe();
    /* Where the file for refusals is out of reach. */
    if (!strcmp(how, "user") && setuid(65534)) return 77;
    if (!strcmp(how, "user alone") && (setuid(65534) || !forbid_sockets())) return 77;
    if (!strcmp(how, "root") || !strcmp(how, "root alone")) {
        char folder[] = "/tmp/streamsan-refused-XXXXXX";
        if (!mkdtemp(folder) || chroot(folder) || chdir("/")) return 77;
        if (!strcmp(how, "root alone") && !forbid_sockets()) return 77;
    }
    if (!strncmp(how, "user", 4) || !strncmp(how, "root", 4)) import();
    if (!strcmp(how, "call") || !strcmp(how, "environment") || !strcmp(how, "abort") || !strcmp(how, "race")) import();
    if (!strcmp(how, "kernel")) launch("strange", 50, 1);
    if (!strcmp(how, "function")) launch("calls", 3, 1);
    if (!strcmp(how, "texture")) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = p;
        resource.res.linear.desc = cudaCreateChannelDesc<int>();
        resource.res.linear.sizeInBytes = n * sizeof *p;
        cudaTextureDesc texture = {};
        cudaResourceViewDesc view = {};
        cudaTextureObject_t object;
        for (int i = 0; i < 50; i++) (void)cudaCreateTextureObject(&object, &resource, &texture, &view);
    }
    if (!strcmp(how, "form")) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        (void)cudaGraphCreate(&graph, 0);
        (void)cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch);
    }
    work(p, n);
    if (!strcmp(how, "race")) {
        cudaStream_t other;
        (void)cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
        fill<<<n / 256, 256>>>(p, n);
        fill<<<n / 256, 256, 0, other>>>(p, n);
        (void)cudaDeviceSynchronize();
    }
    if (!strcmp(how, "racing kernel")) race_behind_a_kernel(p, n);
    if (!strcmp(how, "abort")) abort();
    puts("done");
    return 0;
}
