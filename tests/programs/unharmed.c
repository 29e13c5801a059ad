/* What programs do to their own process while the driver is in it: each mode does it, works, and says what became of both.
 *   unharmed lock FLAGS WHEN           mlockall(FLAGS) before the first call (0), before the memory is allocated (1), after that (2)
 *   unharmed close HOW FOLDER          after the first call, closes every descriptor above 2 (0), opens files of its own under the
 *                                      numbers (1), or duplicates one onto them (2)
 *   unharmed share HOW FOLDER          as close, and gives device memory to another process: before (0, 1) or after closing (2)
 *   unharmed main-exit WHO             the main thread ends with pthread_exit; WHO uses CUDA: m(ain), o(ther), b(oth)
 *   unharmed stderr HOW FILE LATE      opens FILE as descriptor 2 and makes the driver speak; HOW: see there */
#define MINI_IMPLEMENTS
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define POINTER(name, arguments) static CUresult(*name) arguments;
MINI_API(POINTER)
/* Not in the fake driver. */
struct place { int type, id; };
struct properties { int type, handles; struct place place; void *meta; unsigned char flags[8]; };
struct access { struct place place; int flags; };
static CUresult (*cuMemAllocManaged)(CUdeviceptr *, size_t, unsigned);
static CUresult (*cuMemAddressReserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, uint64_t);
static CUresult (*cuMemCreate)(uint64_t *, size_t, const struct properties *, uint64_t);
static CUresult (*cuMemMap)(CUdeviceptr, size_t, size_t, uint64_t, uint64_t);
static CUresult (*cuMemSetAccess)(CUdeviceptr, size_t, const struct access *, size_t);
static CUresult (*cuMemUnmap)(CUdeviceptr, size_t);
static CUresult (*cuMemRelease)(uint64_t);

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 at)\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\nld.param.u64 %d0, [at];\n"
    "mov.u32 %r0, %tid.x;\nmul.wide.u32 %d1, %r0, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.u32 %r1, [%d2];\n"
    "add.s32 %r1, %r1, 1;\nst.global.u32 [%d2], %r1;\nret;\n}\n";
static CUfunction add;

static void load(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define LOAD(name, arguments) *(void **)&name = dlsym(driver, #name);
    MINI_API(LOAD)
    LOAD(cuMemAllocManaged,) LOAD(cuMemAddressReserve,) LOAD(cuMemCreate,) LOAD(cuMemMap,) LOAD(cuMemSetAccess,)
    LOAD(cuMemUnmap,) LOAD(cuMemRelease,)
}

static void attach(void) {
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&add, module, "add"));
}

/* Pageable copies of several sizes there and back, and a kernel between them. */
static int works(CUdeviceptr at, size_t bytes) {
    static unsigned from[1 << 16], to[1 << 16];
    const size_t sizes[] = {128, 4096, sizeof from};
    for (int s = 0; s < 3 && sizes[s] <= bytes; s++) {
        size_t words = sizes[s] / 4;
        void *params[] = {&at};
        for (size_t i = 0; i < words; i++) from[i] = 7 * i + s;
        CHECK(cuMemcpyHtoD_v2(at, from, sizes[s]));
        CHECK(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, 0, params, 0));
        CHECK(cuMemcpyDtoH_v2(to, at, sizes[s]));
        for (size_t i = 0; i < words; i++)
            if (to[i] != 7 * i + s + (i < 32)) return 0;
    }
    return 1;
}

#define MIB ((size_t)1 << 20)
static CUdeviceptr device[4], managed, reserved;
static void *pinned[2];

static void allocate(void) {
    const size_t sizes[] = {4096, 3 * MIB, 64 * MIB, 512};
    for (int i = 0; i < 4; i++) CHECK(cuMemAlloc_v2(&device[i], sizes[i]));
    CHECK(cuMemHostAlloc(&pinned[0], 4096, 0));
    CHECK(cuMemHostAlloc(&pinned[1], 64 * MIB, 0));
    if (!cuMemAllocManaged) return;
    CHECK(cuMemAllocManaged(&managed, 300000, 1));
    struct properties properties = {.type = 1, .place = {1, 0}};
    struct access access = {{1, 0}, 3};
    uint64_t handle;
    CHECK(cuMemAddressReserve(&reserved, 64 * MIB, 0, 0, 0));
    CHECK(cuMemCreate(&handle, 4 * MIB, &properties, 0));
    CHECK(cuMemMap(reserved, 4 * MIB, 0, handle, 0));
    CHECK(cuMemSetAccess(reserved, 4 * MIB, &access, 1));
    CHECK(cuMemRelease(handle));
}

static void use(void) {
    for (int i = 0; i < 3; i++) REQUIRE(works(device[i], i ? 3 * MIB : 4096));
    for (int i = 0; i < 2; i++) {
        memset(pinned[i], i + 1, 4096);
        REQUIRE(works((CUdeviceptr)(uintptr_t)pinned[i], 4096));
        REQUIRE(((char *)pinned[i])[0] == 1 + 1);
    }
    if (!managed) return;
    REQUIRE(works(managed, 300000) && works(reserved, 4 * MIB));
    REQUIRE(((unsigned *)(uintptr_t)managed)[1] == 7 + 2 + 1);
}

static void release(void) {
    for (int i = 0; i < 4; i++) CHECK(cuMemFree_v2(device[i]));
    for (int i = 0; i < 2; i++) CHECK(cuMemFreeHost(pinned[i]));
    if (!managed) return;
    CHECK(cuMemFree_v2(managed));
    CHECK(cuMemUnmap(reserved, 4 * MIB));
}

/* Everything twice: the second time with memory that was given back. */
static void work(void (*between)(void)) {
    for (int round = 0; round < 2; round++) {
        allocate();
        if (between) between();
        use();
        release();
    }
}

static int lock_flags;
static void lock_all(void) {
    if (mlockall(lock_flags)) {
        printf("not allowed\n");
        exit(0);
    }
}

static long status(const char *name) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value = atol(line + strlen(name) + 1);
    fclose(file);
    return value;
}

static int lock(int when) {
    if (when == 0) lock_all();
    load();
    attach();
    if (when == 1) lock_all();
    work(when == 2 ? lock_all : 0);
    long mib = status("VmHWM") / 1024;
    printf(mib < 700 ? "worked\n" : "worked in %ld MiB\n", mib);
    return 0;
}

#define FILES 40
static int files[FILES], kept = -1;
static long length = 65536;

static void close_all(int how, const char *folder) {
    for (int i = 3; i < 512; i++)
        if (i != kept) close(i);
    for (int i = 0; how && i < (how == 1 ? FILES : 1); i++) {
        char path[4096], text[65536];
        snprintf(path, sizeof path, "%s/file%d", folder, i);
        files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        memset(text, 'Z', sizeof text);
        REQUIRE(files[i] > 2 && pwrite(files[i], text, sizeof text, 0) == sizeof text && !ftruncate(files[i], length));
    }
    for (int i = files[0] + 1; how == 2 && i < files[0] + FILES; i++)
        if (i != kept) REQUIRE(dup2(files[0], i) == i);
}

/* The program's files are open, and as it wrote them. */
static void unharmed(int how) {
    for (int i = 0; how && i < (how == 1 ? FILES : 1); i++) {
        static char text[1 << 20];
        struct stat stat;
        REQUIRE(!fstat(files[i], &stat) && stat.st_size == length && stat.st_blocks * 512 <= 1 << 17);
        REQUIRE(lseek(files[i], 0, SEEK_CUR) == 0);
        long got = pread(files[i], text, sizeof text, 0);
        for (long b = 0; b < got; b++) REQUIRE(text[b] == (b < 65536 ? 'Z' : 0));
    }
    for (int i = files[0]; how == 2 && i < files[0] + FILES; i++) REQUIRE(fcntl(i, F_GETFD) >= 0);
}

static int closing(int how, const char *folder) {
    load();
    attach();
    allocate();
    use();
    close_all(how, folder);
    use();
    release();
    work(0);
    unharmed(how);
    printf("worked\n");
    return 0;
}

static int share(int how, const char *folder) {
    int ends[2];
    CUipcHandle handle;
    REQUIRE(!pipe(ends));
    pid_t child = fork();
    if (!child) {
        CUdeviceptr theirs;
        close(ends[1]);
        REQUIRE(read(ends[0], &handle, sizeof handle) == sizeof handle);
        load();
        attach();
        printf("opened: %d\n", cuIpcOpenMemHandle_v2(&theirs, handle, 1));
        exit(0);
    }
    close(ends[0]);
    kept = fcntl(ends[1], F_DUPFD, 600);
    close(ends[1]);
    load();
    attach();
    allocate();
    /* As large as what the other process would map. */
    length = 8l << 30;
    if (how == 2) close_all(1, folder);
    CUresult answer = cuIpcGetMemHandle(&handle, device[1]);
    if (how < 2) close_all(how, folder);
    if (how == 2) {
        printf("shared: %d\n", answer);
        kill(child, SIGKILL);
    } else
        REQUIRE(!answer && write(kept, &handle, sizeof handle) == sizeof handle);
    REQUIRE(waitpid(child, 0, 0) == child);
    use();
    unharmed(how ? 1 : 0);
    printf("worked\n");
    return 0;
}

static char who;
static void *other(void *none) {
    if (who != 'm') {
        attach();
        work(0);
    }
    printf("worked\n");
    fflush(stdout);
    return none;
}

static void main_exit(void) {
    pthread_t thread;
    load();
    if (who != 'o') {
        attach();
        work(0);
    }
    REQUIRE(!pthread_create(&thread, 0, other, 0));
    pthread_exit(0);
}

/* HOW: x: nothing; n: no descriptor is left at the first call; c: closes all after it; i: illegal addresses. */
static int speak(char how, const char *path, int late) {
    if (!late) load();
    close(2);
    int data = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(data == 2);
    if (late) load();
    struct rlimit few = {3, 3};
    if (how == 'n') setrlimit(RLIMIT_NOFILE, &few);
    char bytes[64] = {0};
    CUcontext context;
    CUdeviceptr at = 0;
    int answer = cuInit(0);
    for (int i = 3; how == 'c' && i < 512; i++) close(i);
    if (!answer) answer = cuDevicePrimaryCtxRetain(&context, 0);
    if (!answer) answer = cuCtxSetCurrent(context);
    if (!answer) answer = cuMemAlloc_v2(&at, 4096);
    if (!answer) answer = cuMemcpyHtoD_v2(at, bytes, 64);
    if (how == 'i') cuMemcpyDtoH_v2((void *)0x1234, at, 64), cuMemsetD8Async(64, 0, 64, 0), cuCtxSynchronize();
    REQUIRE(write(data, "DATA", 4) == 4);
    printf("%s\n", answer ? "failed" : "worked");
    return 0;
}

int main(int argc, char **argv) {
    REQUIRE(argc > 2);
    if (!strcmp(argv[1], "lock")) return lock_flags = atoi(argv[2]), lock(atoi(argv[3]));
    if (!strcmp(argv[1], "close")) return closing(atoi(argv[2]), argv[3]);
    if (!strcmp(argv[1], "share")) return share(atoi(argv[2]), argv[3]);
    if (!strcmp(argv[1], "main-exit")) who = argv[2][0], main_exit();
    if (!strcmp(argv[1], "stderr")) return speak(argv[2][0], argv[3], atoi(argv[4]));
    return 9;
}
