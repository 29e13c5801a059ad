// What happens on a real driver when the CPU's access to pages is taken away (mprotect) while the device uses them: the question
// behind --host-accesses for memory that kernels use in place. Prints one row for each combination of memory, where its pages are,
// protection and operation; a row that kills or hangs its process is reported as such, and the next one starts in a new process.
//
//   nvcc -O2 -o protected_pages protected_pages.cu && ./protected_pages
//   ./protected_pages FIRST LAST     rows of these numbers only, in this process
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static const size_t bytes = 4 << 20, n = bytes / sizeof(int), page = 4096;
static const char *memories[] = {"managed", "managed-host", "managed-variable", "hostalloc", "mallochost", "registered"};
static const char *places[] = {"untouched", "on-host", "on-device"};
static const char *rights[] = {"none", "read"};
static const char *operations[] = {
    "kernel-writes", "kernel-writes-protected-later", "kernel-reads", "memset", "copy-from", "copy-to", "prefetch-to-device",
    "prefetch-to-host", "host-loads-meanwhile", "host-stores-beside", "attach", "advise", "attributes", "cost"};
enum { WRITES, LATER, READS, MEMSET, COPY_FROM, COPY_TO, TO_DEVICE, TO_HOST, LOADS, BESIDE, ATTACH, ADVISE, ATTRIBUTES, COST };
static const int memory_count = 6, place_count = 3, right_count = 2, operation_count = 14;

__managed__ int variable[n];

__global__ void bump(int *p, size_t count, long long delay) {
    long long start = clock64();
    while (clock64() - start < delay) {}
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) p[i] += 1;
    start = clock64();
    while (clock64() - start < delay) {}
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) p[i] += 1;
}

__global__ void sum(const int *p, size_t count, unsigned long long *out) {
    unsigned long long s = 0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) s += p[i];
    atomicAdd(out, s);
}

static char *watched;
static int protection;
static volatile long faults, driver_faults, steps;
static char *volatile open_page;

static bool in_driver(void *at) {
    Dl_info info;
    return dladdr(at, &info) && info.dli_fname && strstr(info.dli_fname, "libcuda");
}

static void on_fault(int, siginfo_t *info, void *context) {
    auto *c = (ucontext_t *)context;
    char *at = (char *)info->si_addr;
    if (at < watched || at >= watched + bytes) {
        static const char text[] = " DIED: fault elsewhere\n";
        (void)!write(1, text, sizeof text - 1);
        _exit(3);
    }
    faults = faults + 1;
    if (in_driver((void *)c->uc_mcontext.gregs[REG_RIP])) driver_faults = driver_faults + 1;
    open_page = (char *)((size_t)at & ~(page - 1));
    mprotect(open_page, page, PROT_READ | PROT_WRITE);
    c->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

static void on_step(int, siginfo_t *, void *context) {
    steps = steps + 1;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
    if (open_page) mprotect(open_page, page, protection);
    open_page = nullptr;
}

static double now() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static int device_attribute(cudaDeviceAttr attribute) {
    int value = -1;
    cudaDeviceGetAttribute(&value, attribute, 0);
    return value;
}

static cudaError_t prefetch(void *at, bool to_device, cudaStream_t s) {
#if CUDART_VERSION >= 13000
    cudaMemLocation where = {to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost, 0};
    return cudaMemPrefetchAsync(at, bytes, where, 0, s);
#else
    return cudaMemPrefetchAsync(at, bytes, to_device ? 0 : cudaCpuDeviceId, s);
#endif
}

static cudaError_t advise(void *at) {
#if CUDART_VERSION >= 13000
    cudaMemLocation where = {cudaMemLocationTypeDevice, 0};
    return cudaMemAdvise(at, bytes, cudaMemAdviseSetPreferredLocation, where);
#else
    return cudaMemAdvise(at, bytes, cudaMemAdviseSetPreferredLocation, 0);
#endif
}

static bool makes_sense(int memory, int place, int operation) {
    bool managed = memory < 3;
    if (!managed && place == 2) return false;
    if (!managed && (operation == TO_DEVICE || operation == TO_HOST || operation == ATTACH || operation == ADVISE)) return false;
    return true;
}

static void row(int memory, int place, int right, int operation) {
    printf("%-16s %-9s %-4s %-29s", memories[memory], places[place], rights[right], operations[operation]);
    fflush(stdout);
    cudaError_t made = cudaSuccess;
    int *p = nullptr, *device = nullptr;
    unsigned long long *total = nullptr;
    void *mapped = nullptr;
    if (memory == 0) made = cudaMallocManaged(&p, bytes);
    if (memory == 1) made = cudaMallocManaged(&p, bytes, cudaMemAttachHost);
    if (memory == 2) p = variable;
    if (memory == 3) made = cudaHostAlloc(&p, bytes, cudaHostAllocMapped);
    if (memory == 4) made = cudaMallocHost(&p, bytes);
    if (memory == 5) {
        mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p = (int *)mapped;
        made = cudaHostRegister(p, bytes, cudaHostRegisterMapped);
    }
    cudaStream_t s;
    if (made == cudaSuccess) made = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    if (made == cudaSuccess) made = cudaMalloc(&device, bytes);
    if (made == cudaSuccess) made = cudaMalloc(&total, sizeof *total);
    if (made == cudaSuccess) made = cudaMemset(device, 0, bytes);
    if (made == cudaSuccess) made = cudaMemset(total, 0, sizeof *total);
    if (memory == 1 && made == cudaSuccess) made = cudaStreamAttachMemAsync(s, p, 0, cudaMemAttachSingle);
    if (made == cudaSuccess) made = cudaDeviceSynchronize();
    if (made != cudaSuccess) { printf(" setup: %s\n", cudaGetErrorName(made)); exit(4); }
    int first = 0;
    if (place == 1) for (size_t i = 0; i < n; ++i) p[i] = 5;
    if (place == 1) first = 5;
    if (memory == 2 && place == 0) memset(p, 0, bytes);
    if (place == 2) {
        cudaMemset(p, 0, bytes);
        if (prefetch(p, true, s) != cudaSuccess) cudaGetLastError();
        cudaDeviceSynchronize();
    }
    watched = (char *)p;
    protection = right == 0 ? PROT_NONE : PROT_READ;
    faults = driver_faults = steps = 0;
    bool later = operation == LATER || operation == LOADS || operation == BESIDE;
    size_t used = operation == BESIDE ? n / 2 - 8 : n;
    long long delay = later ? 100000000 : 1000000;
    double began = now();
    int refused = later ? 0 : mprotect(p, bytes, protection);
    cudaError_t error = cudaSuccess;
    int expected = first, seen = -1;
    int expected_beside = first;
    bool check_all = true;
    switch (operation) {
    case WRITES: case LATER: case LOADS: case BESIDE:
        bump<<<64, 256, 0, s>>>(p, used, delay);
        error = cudaGetLastError();
        expected = first + 2;
        if (operation != BESIDE) expected_beside = expected;
        break;
    case READS:
        sum<<<64, 256, 0, s>>>(p, n, total);
        error = cudaGetLastError();
        break;
    case MEMSET: error = cudaMemsetAsync(p, 1, bytes, s); expected = expected_beside = 0x01010101; break;
    case COPY_FROM: error = cudaMemcpyAsync(device, p, bytes, cudaMemcpyDefault, s); break;
    case COPY_TO: error = cudaMemcpyAsync(p, device, bytes, cudaMemcpyDefault, s); expected = expected_beside = 0; break;
    case TO_DEVICE: error = prefetch(p, true, s); break;
    case TO_HOST: error = prefetch(p, false, s); break;
    case ATTACH: error = cudaStreamAttachMemAsync(s, p, 0, cudaMemAttachGlobal); break;
    case ADVISE: error = advise(p); break;
    case ATTRIBUTES: { cudaPointerAttributes a; error = cudaPointerGetAttributes(&a, p); break; }
    case COST: break;
    }
    if (later) {
        usleep(2000);
        refused = mprotect(p, bytes, protection);
        if (operation == LOADS) for (size_t i = 0; i < n; i += n / 8) seen = ((volatile int *)p)[i];
        if (operation == BESIDE) ((volatile int *)p)[n / 2] = first + 7, ((volatile int *)p)[n - 1] = first + 7;
    }
    double each = 0;
    if (operation == COST) {
        double start = now();
        for (int i = 0; i < 1000; ++i) { mprotect(p, page, PROT_READ | PROT_WRITE); mprotect(p, page, protection); }
        each = now() - start;
        start = now();
        for (int i = 0; i < 1000; ++i) if (right == 0) seen = ((volatile int *)p)[i]; else ((volatile int *)p)[i] = first;
        printf(" mprotect pair %.2f us, fault and step %.2f us,", each, now() - start);
        start = now();
        for (int i = 0; i < 100; ++i) { mprotect(p, bytes, PROT_READ | PROT_WRITE); mprotect(p, bytes, protection); }
        printf(" pair of 4 MiB %.2f us,", (now() - start) * 10);
    }
    cudaError_t synced = cudaStreamSynchronize(s);
    double took = now() - began;
    long in_flight = faults;
    int restored = mprotect(p, bytes, PROT_READ | PROT_WRITE);
    size_t wrong = 0;
    if (check_all && synced == cudaSuccess)
        for (size_t i = 0; i < n; ++i) {
            int want = i < used ? expected : expected_beside;
            if (operation == BESIDE && (i == n / 2 || i == n - 1)) want = first + 7;
            wrong += p[i] != want;
        }
    unsigned long long read = 0;
    if (operation == READS && synced == cudaSuccess) {
        cudaMemcpy(&read, total, sizeof read, cudaMemcpyDefault);
        wrong += read != (unsigned long long)first * n;
    }
    if (operation == COPY_FROM && synced == cudaSuccess) {
        static int back[n];
        cudaMemcpy(back, device, bytes, cudaMemcpyDefault);
        for (size_t i = 0; i < n; ++i) wrong += back[i] != first;
    }
    printf(" mprotect %s%s, call %s, work %s, %zu wrong, faults %ld (driver %ld, stepped %ld), %.1f ms%s\n", refused ? "refused" : "ok",
           restored ? " NOT RESTORED" : "", cudaGetErrorName(error), cudaGetErrorName(synced), wrong, in_flight, (long)driver_faults,
           (long)steps, took, wrong || error != cudaSuccess || synced != cudaSuccess ? "   <-- not transparent" : "");
    fflush(stdout);
    (void)seen;
    cudaFree(device);
    cudaFree(total);
    cudaStreamDestroy(s);
    if (memory < 2) cudaFree(p);
    if (memory == 3 || memory == 4) cudaFreeHost(p);
    if (memory == 5) cudaHostUnregister(p), munmap(mapped, bytes);
    if (synced != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) exit(5);
}

static int row_count = memory_count * place_count * right_count * operation_count;

static void rows(int from, int to) {
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGTRAP);
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, nullptr);
    action.sa_sigaction = on_step;
    sigaction(SIGTRAP, &action, nullptr);
    if (from == 0) {
        int driver = 0;
        cudaDriverGetVersion(&driver);
        printf("driver %d, concurrentManagedAccess %d, pageableMemoryAccess %d, usesHostPageTables %d\n", driver,
               device_attribute(cudaDevAttrConcurrentManagedAccess), device_attribute(cudaDevAttrPageableMemoryAccess),
               device_attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables));
    }
    for (int at = from; at < to; ++at) {
        int operation = at % operation_count, right = at / operation_count % right_count;
        int place = at / (operation_count * right_count) % place_count;
        int memory = at / (operation_count * right_count * place_count);
        // Says to the parent, past the table, how far it came.
        FILE *progress = fdopen(dup(9), "w");
        if (progress) fprintf(progress, "%d\n", at), fclose(progress);
        if (makes_sense(memory, place, operation)) row(memory, place, right, operation);
    }
}

int main(int argc, char **argv) {
    if (argc == 3) {
        rows(atoi(argv[1]), atoi(argv[2]));
        return 0;
    }
    for (int next = 0; next < row_count;) {
        int pipes[2];
        if (pipe(pipes)) return 1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            dup2(pipes[1], 9);
            close(pipes[0]);
            std::string from = std::to_string(next), to = std::to_string(row_count);
            execl("/proc/self/exe", argv[0], from.c_str(), to.c_str(), (char *)nullptr);
            _exit(127);
        }
        close(pipes[1]);
        FILE *progress = fdopen(pipes[0], "r");
        int at = next - 1, fd = fileno(progress);
        char line[32];
        bool hung = false;
        for (;;) {
            fd_set set;
            FD_ZERO(&set);
            FD_SET(fd, &set);
            timeval patience = {20, 0};
            if (select(fd + 1, &set, nullptr, nullptr, &patience) == 0) { hung = true; kill(child, SIGKILL); break; }
            // One line is one write, shorter than a pipe's atomic size.
            ssize_t got = read(fd, line, sizeof line - 1);
            if (got <= 0) break;
            line[got] = 0;
            for (char *p = line; p; p = strchr(p, '\n') && strchr(p, '\n')[1] ? strchr(p, '\n') + 1 : nullptr) at = atoi(p);
        }
        fclose(progress);
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        if (hung) printf(" HUNG   <-- not transparent\n");
        else if (WIFSIGNALED(status)) printf(" DIED: signal %d   <-- not transparent\n", WTERMSIG(status));
        next = at + 1;
    }
    printf("end of table\n");
    return 0;
}
