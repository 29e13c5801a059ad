/* Situations that break preloaded libraries, one for each argument. Each checks itself what it can and ends with "done".
 *
 *   hard WHAT [NUMBER] */
#include "common.h"
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static CUfunction function;
static CUcontext context;
static CUstream stream;
static long number;

static void work(unsigned tag, unsigned count) {
    for (unsigned i = 0; i < count; i++) launch2(function, stream, tag, i);
}
static void first_use(void) {
    function = begin("count_4_4");
    CHECK(cuCtxGetCurrent(&context));
    CHECK(cuStreamCreate(&stream, 1));
}

/* A driver of its own in a namespace of its own. */
static void namespaces(void) {
    first_use();
    work(1, 5);
    void *other = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    REQUIRE(other);
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(other, "cuInit");
    CUresult (*create)(CUstream *, unsigned) = (CUresult(*)(CUstream *, unsigned))dlsym(other, "cuStreamCreate");
    CUresult (*sync)(CUstream) = (CUresult(*)(CUstream))dlsym(other, "cuStreamSynchronize");
    REQUIRE(init && create && sync);
    /* Another driver is another driver: what is looked up in it must not lead to the first one. */
    REQUIRE((void *)init != dlsym(RTLD_DEFAULT, "cuInit"));
    Dl_info where;
    REQUIRE(dladdr((void *)init, &where) && strstr(where.dli_fname, "libcuda.so"));
    CUstream theirs;
    CHECK(init(0));
    CHECK(create(&theirs, 1));
    CHECK(sync(theirs));
    work(1, 5);
    CHECK(cuStreamSynchronize(stream));
    dlclose(other);
    work(1, 5);
}

/* No descriptor is left when CUDA is first used. */
static void descriptors(void) {
    struct rlimit limit = {3, 3};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    first_use();
    work(1, 10);
    REQUIRE(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
}

/* Without /proc, /dev, /tmp: an empty folder is all there is. */
static void empty_root(void) {
    char folder[] = "/tmp/streamsan-root-XXXXXX";
    REQUIRE(mkdtemp(folder));
    if (number) first_use();
    REQUIRE(chroot(folder) == 0 && chdir("/") == 0);
    if (!number) first_use();
    work(1, 10);
    CHECK(cuStreamSynchronize(stream));
}

/* System calls that a sandbox forbids, from now on. */
static void forbid(const int *calls, int count, int answer) {
    struct sock_filter code[64];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)answer);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}
static void no_memfd(void) {
    const int calls[] = {SYS_memfd_create};
    forbid(calls, 1, EPERM);
    first_use();
    work(1, 10);
}
/* Calls that younger processors have in another form only. */
#ifdef SYS_open
#define OLD_CALLS SYS_open, SYS_fork, SYS_vfork, SYS_readlink,
#else
#define OLD_CALLS
#endif
/* As strict as sandboxes come: nothing may be opened, mapped from a file, connected, started or asked about processes. */
static void sandbox(void) {
    const int calls[] = {SYS_memfd_create, OLD_CALLS SYS_openat, SYS_socket, SYS_connect, SYS_clone, SYS_clone3,
                         SYS_execve, SYS_process_vm_readv, SYS_prctl, SYS_readlinkat, SYS_madvise, SYS_mincore, SYS_fallocate};
    first_use();
    if (number) work(1, 3);
    forbid(calls, sizeof calls / sizeof *calls, EPERM);
    work(1, 10);
    CHECK(cuStreamSynchronize(stream));
}
static void sandbox_first(void) {
    const int calls[] = {SYS_memfd_create, OLD_CALLS SYS_openat, SYS_socket, SYS_connect, SYS_clone, SYS_clone3,
                         SYS_execve, SYS_process_vm_readv, SYS_readlinkat, SYS_madvise, SYS_mincore, SYS_fallocate};
    forbid(calls, sizeof calls / sizeof *calls, EPERM);
    first_use();
    work(1, 10);
}

/* A sandbox that ends who makes a call that it does not know: those of programs that compute and print are all that it knows. */
static void strict_sandbox(void) {
    const int known[] = {SYS_read, SYS_write, SYS_futex, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_mmap, SYS_munmap, SYS_mprotect,
                         SYS_brk, SYS_sched_yield, SYS_nanosleep, SYS_clock_nanosleep, SYS_rt_sigprocmask, SYS_fstat, SYS_newfstatat};
    struct sock_filter code[64];
    int n = 0;
    if (number < 2) {
        first_use();
        work(1, 3);
    }
    puts("in");
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)known[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {(unsigned short)n, code};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    if (number == 2) return; /* A program without CUDA. */
    work(1, number ? 100000 : 10);
    CHECK(cuStreamSynchronize(stream));
}

static int deeper(volatile char *above) {
    volatile char mine[512];
    mine[0] = above ? above[0] + 1 : 0;
    return deeper(mine) + mine[0];
}
static void on_overflow(int signal) {
    static const char said[] = "overflow\n";
    _exit(write(1, said, sizeof said - 1) > 0 ? 7 : 8);
}
/* The stack overflows: the program's handler on its own stack is called, or it dies of it. */
static void overflow(void) {
    first_use();
    work(1, 10);
    if (number) {
        static char own[1 << 16];
        stack_t alternative = {.ss_sp = own, .ss_size = sizeof own};
        REQUIRE(sigaltstack(&alternative, 0) == 0);
        struct sigaction action = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};
        REQUIRE(sigaction(SIGSEGV, &action, 0) == 0);
    }
    exit(deeper(0));
}

static volatile unsigned rung;
static void on_alarm(int signal) {
    int before = errno;
    launch2(function, stream, 7, rung++);
    REQUIRE(errno == before);
}
/* A timer interrupts hooks at any instruction, and its handler calls CUDA. */
static void alarms(void) {
    first_use();
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    REQUIRE(sigaction(SIGALRM, &action, 0) == 0);
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    REQUIRE(setitimer(ITIMER_REAL, &often, 0) == 0);
    unsigned done = 0;
    while (rung < 500) work(1, 100), done += 100;
    REQUIRE(setitimer(ITIMER_REAL, &never, 0) == 0);
    fprintf(stderr, "launches %u\n", done + rung);
}

static pthread_key_t key;
static void last_words(void *unused) { work(5, 4); }
static void *a_thread(void *unused) {
    CHECK(cuCtxSetCurrent(context));
    REQUIRE(pthread_setspecific(key, stream) == 0);
    work(1, 2);
    return 0;
}
/* Destructors of threads, exit handlers and destructors of the program call CUDA. */
static void at_the_end(void) { work(6, 4); }
static int destruct;
__attribute__((destructor)) static void after_main(void) {
    if (destruct) work(8, 4);
}
static void destructors(void) {
    first_use();
    REQUIRE(pthread_key_create(&key, last_words) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, 0, a_thread, 0) == 0);
        REQUIRE(pthread_join(thread, 0) == 0);
    }
    REQUIRE(atexit(at_the_end) == 0);
    destruct = 1;
}

static pthread_barrier_t barrier;
static void *one_of_many(void *argument) {
    unsigned me = (unsigned)(uintptr_t)argument;
    pthread_barrier_wait(&barrier);
    CHECK(cuCtxSetCurrent(context));
    CUstream own;
    CHECK(cuStreamCreate(&own, 1));
    for (unsigned i = 0; i < 100; i++) launch2(function, own, 100 + me, i);
    CHECK(cuStreamSynchronize(own));
    return 0;
}
static void threads(void) {
    first_use();
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    REQUIRE(pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
    pthread_t *all = calloc(number, sizeof *all);
    pthread_barrier_init(&barrier, 0, number);
    for (long i = 0; i < number; i++) REQUIRE(pthread_create(&all[i], &attributes, one_of_many, (void *)i) == 0);
    for (long i = 0; i < number; i++) pthread_join(all[i], 0);
    free(all);
}

static void streams(void) {
    first_use();
    CUstream *all = calloc(number, sizeof *all);
    for (long i = 0; i < number; i++) CHECK(cuStreamCreate(&all[i], 1));
    CUevent event;
    CHECK(cuEventCreate(&event, 2));
    for (int round = 0; round < 3; round++)
        for (long i = 0; i < number; i++) {
            launch2(function, all[i], 1, round);
            CHECK(cuEventRecord(event, all[i]));
            CHECK(cuStreamWaitEvent(all[(i + 1) % number], event, 0));
        }
    for (long i = 0; i < number; i++) CHECK(cuStreamDestroy_v2(all[i]));
    free(all);
}

static void allocations(void) {
    first_use();
    CUdeviceptr *all = calloc(number, sizeof *all);
    for (long i = 0; i < number; i++) CHECK(cuMemAlloc_v2(&all[i], 8));
    work(1, 10);
    for (long i = 0; i < number; i += 7) CHECK(cuMemsetD8Async(all[i], 0, 8, stream));
    for (long i = 0; i < number; i++) CHECK(cuMemFree_v2(all[i]));
    free(all);
}

/* Children of a process that uses CUDA, a few of which use it too. */
static void forks(void) {
    first_use();
    for (long i = 0; i < number; i++) {
        work(1, 1);
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (!child) {
            if (i % 50 == 0) work(2, 2);
            _exit(3);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
}

static void storm(void) {
    for (long i = 0; i < number; i++) {
        void *driver = dlopen("libcuda.so.1", i % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_LOCAL);
        void *other = dlopen("libm.so.6", RTLD_NOW);
        REQUIRE(driver && other && dlsym(driver, "cuLaunchKernel") && dlsym(other, "cos"));
        if (i == 10) first_use();
        if (i > 10) work(1, 1);
        REQUIRE(dlclose(other) == 0 && dlclose(driver) == 0);
    }
}

static void plain(void) {
    first_use();
    work(1, 10);
}

static const struct { const char *name; void (*run)(void); } all[] = {
    {"plain", plain}, {"dlmopen", namespaces}, {"descriptors", descriptors}, {"chroot", empty_root}, {"memfd", no_memfd},
    {"sandbox", sandbox}, {"sandbox-first", sandbox_first}, {"strict", strict_sandbox}, {"overflow", overflow}, {"alarms", alarms},
    {"destructors", destructors},
    {"threads", threads}, {"streams", streams}, {"allocations", allocations}, {"forks", forks}, {"dlstorm", storm},
};

int main(int argc, char **argv) {
    number = argc > 2 ? atol(argv[2]) : 0;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(argv[1], all[i].name)) {
            all[i].run();
            puts("done");
            return 0;
        }
    return 2;
}
