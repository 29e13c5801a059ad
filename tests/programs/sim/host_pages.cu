// What programs do with memory that kernels use, beside the bytes that they use: its protection and mapping, stacks, locks of the C
// library, and calls that hand Linux structures, paths and lists in it. Nothing races, and everything must work as without StreamSan.
//
//   host_pages GROUP KIND [racy]   all forms of a group (mappings, stacks, locks, calls) on memory of a kind (pinned, managed, registered),
//                                  each on a block of its own; racy: the host also reads what the kernel writes, once after each form
#include <cuda_runtime.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;
static const size_t size = 1 << 18, page = 1 << 16;
static char *block, *mine; // The kernel writes the beginning of the block; the program uses its second half.
static cudaStream_t s;
static int wrong;

__global__ void first(float *to) { to[threadIdx.x] = threadIdx.x; }
static void launch() { first<<<1, 64, 0, s>>>((float *)block); }

// Says how something ended: negative is an error.
static void ended(const char *what, long result) {
    int error = errno;
    printf("%s %s\n", what, result < 0 ? strerror(error) : "works");
    wrong += result < 0;
}
static void holds(const char *what, bool yes) {
    printf("%s %s\n", what, yes ? "holds" : "DOES NOT HOLD");
    wrong += !yes;
}

static void put(size_t at, char value) { ((volatile char *)mine)[at] = value; }

// Mappings.
static volatile int faults;
static void on_fault(int, siginfo_t *info, void *) {
    faults = faults + 1;
    mprotect((void *)((unsigned long)info->si_addr & ~(page - 1)), page, PROT_READ | PROT_WRITE);
}
static void count_faults() {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, 0);
    faults = 0;
}
static void protected_after() {
    count_faults();
    launch();
    ended("mprotect", mprotect(mine, 2 * page, PROT_READ));
    volatile char seen = mine[4];
    put(3, seen);
    cudaDeviceSynchronize();
    put(3, 2), put(page, 2);
    holds("two faults", faults == 2);
}
static void protected_before() {
    count_faults();
    ended("mprotect", mprotect(mine, 2 * page, PROT_READ));
    launch();
    put(3, 1);
    cudaDeviceSynchronize();
    put(page, 2);
    holds("two faults", faults == 2);
}
static void inaccessible() {
    count_faults();
    launch();
    mprotect(mine, 2 * page, PROT_NONE);
    cudaDeviceSynchronize();
    volatile char seen = ((volatile char *)mine)[4];
    launch();
    seen = ((volatile char *)mine)[page + 1];
    (void)seen;
    holds("two faults", faults == 2);
}
static void locked() {
    launch();
    ended("mlock", mlock(mine, page));
    unsigned char *pages = (unsigned char *)mine + page;
    ended("mincore", mincore(mine, page, pages));
    ended("msync", msync(mine, page, MS_ASYNC));
    ended("madvise", madvise(mine, page, MADV_WILLNEED));
    munlock(mine, page);
}
static void replaced() {
    put(3, 5);
    launch();
    void *at = mmap(mine, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    holds("same place", at == mine && mine[3] == 0);
    mprotect(mine, page, PROT_READ);
    cudaDeviceSynchronize();
    launch();
    cudaDeviceSynchronize();
    count_faults();
    put(3, 7);
    holds("one fault", faults == 1 && mine[3] == 7);
}
static void moved() {
    put(3, 5);
    launch();
    void *room = mmap(0, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *there = (char *)mremap(mine, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    ended("mremap", there == MAP_FAILED ? -1 : 0);
    holds("same bytes", there[3] == 5);
    ((volatile char *)there)[3] = 6;
    cudaDeviceSynchronize();
    holds("kept", there[3] == 6);
}

// Stacks.
static void *deep(void *) {
    volatile char bytes[30000];
    memset((void *)bytes, 1, sizeof bytes);
    launch();
    bytes[20000] = 3;
    long sum = 0;
    for (char byte : bytes) sum += byte;
    launch();
    cudaStreamSynchronize(s);
    return (void *)sum;
}
static void of_a_thread() {
    pthread_attr_t with;
    pthread_attr_init(&with);
    pthread_attr_setstack(&with, mine, 131072);
    pthread_t thread;
    void *sum = 0;
    launch();
    holds("thread", pthread_create(&thread, &with, deep, 0) == 0 && pthread_join(thread, &sum) == 0);
    holds("sum", (long)sum == 30002);
}
static void of_a_context() {
    static ucontext_t there, back;
    launch();
    getcontext(&there);
    there.uc_stack.ss_sp = mine;
    there.uc_stack.ss_size = 131072;
    there.uc_link = &back;
    makecontext(&there, (void (*)())deep, 0);
    ended("swapcontext", swapcontext(&back, &there));
}
static volatile int heard;
static void on_user(int) { heard = heard + 1; }
static void signals(bool before) {
    stack_t stack = {}, none = {};
    heard = 0;
    stack.ss_sp = mine;
    stack.ss_size = 65536;
    none.ss_flags = SS_DISABLE;
    if (!before) launch();
    ended("sigaltstack", sigaltstack(&stack, 0));
    struct sigaction action = {};
    action.sa_handler = on_user;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, 0);
    if (before) launch();
    raise(SIGUSR1);
    put(100000, 1); // A fault, for the handler of which the kernel takes this stack.
    launch();
    put(100001, 1);
    raise(SIGUSR1);
    sigaltstack(&none, 0);
    holds("signals", heard == 2 && mine[100000] + mine[100001] == 2);
}
static void of_signals() { signals(true); }
static void of_signals_late() { signals(false); }

// Locks.
struct Locks {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_rwlock_t both;
    pthread_barrier_t barrier;
    sem_t semaphore;
    volatile int turn;
};
static Locks *locks;
static void *other(void *) {
    pthread_mutex_lock(&locks->mutex);
    locks->turn = 1;
    pthread_cond_signal(&locks->condition);
    while (locks->turn == 1) pthread_cond_wait(&locks->condition, &locks->mutex);
    pthread_mutex_unlock(&locks->mutex);
    pthread_rwlock_rdlock(&locks->both);
    pthread_rwlock_unlock(&locks->both);
    sem_wait(&locks->semaphore);
    pthread_barrier_wait(&locks->barrier);
    return 0;
}
static void both_threads(bool initialised) {
    locks = (Locks *)mine;
    memset(mine, 0, sizeof *locks); // As PTHREAD_MUTEX_INITIALIZER and its like.
    if (initialised) {
        pthread_mutex_init(&locks->mutex, 0);
        pthread_cond_init(&locks->condition, 0);
        pthread_rwlock_init(&locks->both, 0);
        sem_init(&locks->semaphore, 0, 0);
        pthread_barrier_init(&locks->barrier, 0, 2);
        launch();
    } else {
        // Their state is copied here, and no function of the C library has seen this place.
        Locks elsewhere;
        memset(&elsewhere, 0, sizeof elsewhere);
        sem_init(&elsewhere.semaphore, 0, 0);
        pthread_barrier_init(&elsewhere.barrier, 0, 2);
        memcpy(mine, &elsewhere, sizeof elsewhere);
        launch();
    }
    pthread_t thread;
    pthread_mutex_lock(&locks->mutex);
    pthread_rwlock_wrlock(&locks->both);
    pthread_create(&thread, 0, other, 0);
    usleep(10000);
    launch();
    while (!locks->turn) pthread_cond_wait(&locks->condition, &locks->mutex);
    pthread_mutex_unlock(&locks->mutex);
    usleep(5000);
    pthread_mutex_lock(&locks->mutex);
    locks->turn = 2;
    pthread_cond_broadcast(&locks->condition);
    pthread_mutex_unlock(&locks->mutex);
    usleep(5000);
    pthread_rwlock_unlock(&locks->both);
    usleep(5000);
    sem_post(&locks->semaphore);
    pthread_barrier_wait(&locks->barrier);
    pthread_join(thread, 0);
    holds("both", locks->turn == 2);
}
static void initialised() { both_threads(true); }
static void copied() { both_threads(false); }
static void *dies(void *) {
    pthread_mutex_lock(&locks->mutex);
    cudaStreamQuery(s);
    launch();
    return 0;
}
static void robust() {
    locks = (Locks *)mine;
    pthread_mutexattr_t with;
    pthread_mutexattr_init(&with);
    pthread_mutexattr_setrobust(&with, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&locks->mutex, &with);
    launch();
    pthread_t thread;
    pthread_create(&thread, 0, dies, 0);
    pthread_join(thread, 0);
    holds("owner dead", pthread_mutex_trylock(&locks->mutex) == EOWNERDEAD);
}
static void streams() {
    char line[100];
    FILE *in = fopen("/etc/passwd", "r"), *out = fopen("/dev/null", "w"), *plain = fopen("/dev/null", "w");
    launch();
    holds("setvbuf", setvbuf(in, mine, _IOFBF, 8192) == 0);
    setbuffer(out, mine + page, 4096);
    setbuf(plain, mine + page + 8192);
    launch();
    holds("fgets", fgets(line, sizeof line, in) != 0);
    for (FILE *file : {out, plain}) {
        fprintf(file, "hello");
        launch();
        ended("fflush", fflush(file));
        fclose(file);
    }
    fclose(in);
}

// Calls.
static void children() {
    launch();
    pid_t child = fork();
    if (!child) _exit(3);
    ended("waitpid", waitpid(child, (int *)mine, 0));
    holds("status", WEXITSTATUS(*(int *)mine) == 3);
    child = fork();
    if (!child) _exit(4);
    ended("waitid", waitid(P_PID, child, (siginfo_t *)(mine + 64), WEXITED));
    char **words = (char **)(mine + 4096);
    strcpy(mine + 1024, "/bin/sh"), strcpy(mine + 1100, "-c"), strcpy(mine + 1200, "exit 5");
    words[0] = mine + 1024, words[1] = mine + 1100, words[2] = mine + 1200, words[3] = 0;
    launch();
    int status = 0;
    holds("posix_spawn", posix_spawn(&child, words[0], 0, 0, words, environ) == 0);
    holds("spawned", waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    launch();
    child = fork();
    if (!child) _exit((execv(words[0], words), 77));
    holds("execv", waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    child = vfork();
    if (!child) _exit((execve(words[0], words, words + 3), 77));
    holds("execve", waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    holds("system", WEXITSTATUS(system(words[2])) == 5);
}
static void files() {
    strcpy(mine, "/etc/passwd"), strcpy(mine + 100, "/dev");
    launch();
    int file = open(mine, O_RDONLY), null = open("/dev/null", O_WRONLY);
    ended("open", file);
    ended("stat", stat(mine, (struct stat *)(mine + 1024)));
    ended("fstat", fstat(file, (struct stat *)(mine + 2048)));
    ended("statfs", statfs(mine, (struct statfs *)(mine + 3072)));
    ended("access", access(mine, R_OK));
    ended("readlink", readlink("/proc/self/exe", mine + 4096, 100));
    holds("getcwd", getcwd(mine + 8192, 4096) != 0);
    off_t *from = (off_t *)(mine + page);
    *from = 0;
    launch();
    ended("sendfile", sendfile(null, file, from, 10));
    int folder = openat(AT_FDCWD, mine + 100, O_RDONLY);
    ended("openat", folder);
    ended("getdents", syscall(SYS_getdents64, folder, mine + page + 4096, 4096));
    FILE *stream = fopen(mine, "r");
    holds("fopen", stream != 0);
    fclose(stream);
    close(file), close(null), close(folder);
}
static void waits() {
    int *ends = (int *)mine;
    launch();
    ended("pipe", pipe(ends));
    int in = ends[0], out = ends[1];
    pollfd *polled = (pollfd *)(mine + 4096);
    polled->fd = out, polled->events = POLLOUT;
    launch();
    ended("poll", poll(polled, 1, 0));
    fd_set *set = (fd_set *)(mine + 8192);
    FD_ZERO(set);
    FD_SET(out, set);
    launch();
    ended("select", select(out + 1, 0, set, 0, 0));
    int epoll = epoll_create1(0);
    epoll_event *event = (epoll_event *)(mine + 12288);
    event->events = EPOLLOUT, event->data.fd = out;
    launch();
    ended("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_ADD, out, event));
    ended("epoll_wait", epoll_wait(epoll, event, 1, 0));
    ended("ioctl", ioctl(in, FIONREAD, mine + 16384));
    close(in), close(out), close(epoll);
}
static void sockets() {
    int *pair = (int *)mine;
    launch();
    ended("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    int a = pair[0], b = pair[1];
    socklen_t *len = (socklen_t *)(mine + 64);
    *len = 4;
    launch();
    ended("getsockopt", getsockopt(a, SOL_SOCKET, SO_TYPE, mine + 128, len));
    ended("setsockopt", setsockopt(a, SOL_SOCKET, SO_RCVBUF, mine + 128, 4));
    *len = 100;
    launch();
    ended("getsockname", getsockname(a, (sockaddr *)(mine + 4096), len));
    msghdr *message = (msghdr *)(mine + 8192);
    iovec *part = (iovec *)(mine + 12288);
    char bytes[4] = "abc";
    memset(message, 0, sizeof *message);
    message->msg_iov = part, message->msg_iovlen = 1;
    part->iov_base = bytes, part->iov_len = 4;
    launch();
    ended("sendmsg", sendmsg(a, message, 0));
    ended("recvmsg", recvmsg(b, message, 0));
    launch();
    ended("writev", writev(a, part, 1));
    ended("readv", readv(b, part, 1));
    close(a), close(b);
}
static void times_and_limits() {
    timespec *time = (timespec *)mine;
    time->tv_sec = 0, time->tv_nsec = 1000;
    launch();
    ended("nanosleep", nanosleep(time, time + 1));
    ended("times", times((tms *)(mine + 1024)));
    ended("getitimer", getitimer(ITIMER_REAL, (itimerval *)(mine + 1200)));
    launch();
    ended("uname", uname((utsname *)(mine + 4096)));
    ended("getrusage", getrusage(RUSAGE_SELF, (rusage *)(mine + 5000)));
    ended("sysinfo", sysinfo((struct sysinfo *)(mine + 6000)));
    ended("getrlimit", getrlimit(RLIMIT_NOFILE, (rlimit *)(mine + 7000)));
    ended("affinity", sched_getaffinity(0, 128, (cpu_set_t *)(mine + 8192)));
    ended("prctl", prctl(PR_GET_NAME, mine + 12288));
    launch();
    ended("sigpending", sigpending((sigset_t *)(mine + page)));
    ended("sigprocmask", sigprocmask(0, 0, (sigset_t *)(mine + page + 4096)));
    timespec *until = (timespec *)(mine + page + 8192);
    until->tv_sec = 0, until->tv_nsec = 1000;
    launch();
    holds("futex", syscall(SYS_futex, mine + page + 12288, 0, 0, until, 0, 0) < 0 && errno == ETIMEDOUT);
}

static const struct { const char *group, *name; void (*run)(); bool keeps; } forms[] = {
    {"mappings", "protected after the launch", protected_after, true}, {"mappings", "protected before it", protected_before, true},
    {"mappings", "inaccessible", inaccessible, true}, {"mappings", "locked", locked, false},
    {"mappings", "replaced", replaced, true}, {"mappings", "moved", moved, true},
    {"stacks", "thread", of_a_thread, false}, {"stacks", "context", of_a_context, false},
    {"stacks", "signals", of_signals, false}, {"stacks", "signals, late", of_signals_late, false},
    {"locks", "initialised", initialised, false}, {"locks", "copied", copied, false},
    {"locks", "robust", robust, false}, {"locks", "streams", streams, false},
    {"calls", "children", children, false}, {"calls", "files", files, false}, {"calls", "waits", waits, false},
    {"calls", "sockets", sockets, false}, {"calls", "times", times_and_limits, false},
};

int main(int, char **words) {
    setvbuf(stdout, 0, _IOLBF, 0);
    bool racy = words[3] != 0;
    volatile float seen = 0;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (auto &form : forms) {
        if (strcmp(form.group, words[1])) continue;
        printf("-- %s\n", form.name);
        if (!strcmp(words[2], "managed")) {
            cudaMallocManaged(&block, size);
        } else if (!strcmp(words[2], "registered")) {
            block = (char *)mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            cudaHostRegister(block, size, 0);
        } else {
            cudaMallocHost(&block, size);
        }
        memset(block, 0, size);
        mine = block + size / 2;
        form.run();
        launch();
        if (racy) seen = ((float *)block)[2048]; // Beside what the kernel writes.
        if (racy) seen = ((float *)block)[3];
        cudaDeviceSynchronize();
        signal(SIGSEGV, SIG_DFL);
        if (form.keeps) continue;
        if (!strcmp(words[2], "registered")) cudaHostUnregister(block);
        else if (!strcmp(words[2], "managed")) cudaFree(block);
        else cudaFreeHost(block);
    }
    (void)seen;
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
