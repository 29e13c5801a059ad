// Touches host memory that copies are still using, in every way that a program can, and says what came of it. All of it is racy, but
// every copy brings the bytes that are there already: with and without --host-accesses the output must be the same.
//
//   touches [CASE...]      these of the cases at the end of this file only; without any, all but `dies`
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

static const size_t bytes = 1 << 16;
static char *landing, *dev;
static cudaStream_t s;
static sigjmp_buf back;
static volatile int handled;
static struct sigaction action;

static void start() { CHECK(cudaMemcpyAsync(landing, dev, bytes, cudaMemcpyDeviceToHost, s)); }
static void finish() { CHECK(cudaStreamSynchronize(s)); }

static void on_fault(int, siginfo_t *info, void *) {
    handled += info->si_addr == (void *)16;
    siglongjmp(back, 1);
}

static void on_user(int) { handled += landing[5] == 7; }

static int own_fault() {
    handled = 0;
    if (sigsetjmp(back, 1) == 0) *(volatile int *)16 = 1;
    return handled;
}

static long all_of(const volatile char *at) {
    long sum = 0;
    for (size_t i = 0; i < bytes; ++i) sum += at[i];
    return sum;
}

static void loads() {
    start();
    long sum = all_of(landing);
    finish();
    printf("loads: %ld\n", sum);
}

static void handlers() {
    struct sigaction before;
    printf("own fault: %d\n", own_fault());
    start();
    printf("a touch: %d\n", ((volatile char *)landing)[9]);
    finish();
    printf("own fault after it: %d\n", own_fault());
    sigaction(SIGSEGV, nullptr, &before);
    printf("handler is ours: %d, flags %d\n", before.sa_sigaction == on_fault, before.sa_flags & SA_SIGINFO);
    signal(SIGSEGV, SIG_DFL);
    sigaction(SIGSEGV, &action, &before);
    printf("handler was default: %d\n", before.sa_handler == SIG_DFL);
}

static int a_file() {
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    if (file < 0) file = memfd_create("touches", 0);
    if (file < 0 || write(file, "x", 1) != 1) exit(2);
    char sevens[4096];
    memset(sevens, 7, sizeof sevens);
    lseek(file, 0, SEEK_SET);
    for (size_t i = 0; i < bytes; i += sizeof sevens)
        if (write(file, sevens, sizeof sevens) != sizeof sevens) exit(2);
    lseek(file, 0, SEEK_SET);
    return file;
}

static void writes() {
    int file = a_file();
    start();
    errno = 0;
    printf("write: %zd, errno %d\n", write(file, landing, bytes), errno);
    finish();
    close(file);
}

static void preads() {
    int file = a_file();
    start();
    errno = 0;
    printf("pread: %zd, errno %d\n", pread(file, landing + 100, 5000, 0), errno);
    finish();
    close(file);
}

static void pipes() {
    int ends[2];
    if (pipe(ends) != 0) exit(2);
    start();
    errno = 0;
    struct iovec pieces[2] = {{landing, 10}, {landing + 30000, 20}};
    printf("writev: %zd, errno %d\n", writev(ends[1], pieces, 2), errno);
    finish();
    start();
    printf("read: %zd, errno %d\n", read(ends[0], landing + 60000, 30), errno);
    finish();
    close(ends[0]);
    close(ends[1]);
}

static void freads() {
    FILE *stream = fdopen(a_file(), "r+");
    start();
    printf("fread: %zu\n", fread(landing, 1, bytes, stream));
    finish();
    fclose(stream);
}

// The names behind which compilers with _FORTIFY_SOURCE put some of these, and the system call itself.
extern "C" ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
extern "C" size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
static void fortified() {
    int file = a_file();
    start();
    errno = 0;
    printf("checked pread: %zd, errno %d\n", __pread_chk(file, landing, 5000, 0, bytes), errno);
    finish();
    FILE *stream = fdopen(dup(file), "r+");
    start();
    printf("checked fread: %zu\n", __fread_chk(landing, bytes, 1, bytes, stream));
    finish();
    fclose(stream);
    start();
    errno = 0;
    printf("system call: %ld, errno %d\n", syscall(SYS_pread64, file, landing + 8192, 4096, 0), errno);
    finish();
    close(file);
}

static void sockets() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) exit(2);
    struct iovec pieces[2] = {{landing, 10}, {landing + 30000, 20}};
    struct mmsghdr messages[1] = {};
    messages[0].msg_hdr.msg_iov = pieces;
    messages[0].msg_hdr.msg_iovlen = 2;
    start();
    errno = 0;
    printf("sendmmsg: %d, errno %d\n", sendmmsg(ends[1], messages, 1, 0), errno);
    finish();
    start();
    printf("recvmmsg: %d, errno %d\n", recvmmsg(ends[0], messages, 1, 0, nullptr), errno);
    finish();
    start();
    printf("getrandom: %zd, errno %d\n", getrandom(landing + 4096, 16, 0), errno);
    finish();
    memset(landing + 4096, 7, 16);
    close(ends[0]);
    close(ends[1]);
}

static void *worker(void *at) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    long sum = 0;
    for (size_t i = (size_t)at; i < bytes; i += 4) sum += ((volatile char *)landing)[i];
    return (void *)sum;
}

static void threads() {
    start();
    pthread_t workers[4];
    for (size_t i = 0; i < 4; ++i) pthread_create(&workers[i], nullptr, worker, (void *)i);
    int right = 0;
    for (pthread_t thread : workers) {
        void *sum;
        pthread_join(thread, &sum);
        right += (long)sum == (long)bytes / 4 * 7;
    }
    finish();
    printf("threads: %d\n", right);
}

static void signals() {
    signal(SIGUSR1, on_user);
    handled = 0;
    start();
    raise(SIGUSR1);
    finish();
    printf("signal handler: %d\n", handled);
}

// Whether a child has pinned memory at all is the driver's business: it may die of the touch, but then with and without us.
static void children() {
    fflush(stdout);
    start();
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        volatile char *mine = landing;
        _exit(mine[bytes - 1] == 7 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    finish();
    printf("child: signal %d, code %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

static void moves() {
    start();
    memmove(landing + 1, landing, bytes - 1);
    finish();
    printf("memmove: %ld\n", all_of(landing));
}

static void uploads() {
    CHECK(cudaMemcpyAsync(dev, landing, bytes, cudaMemcpyHostToDevice, s));
    long sum = all_of(landing);
    ((volatile char *)landing)[40000] = 7;
    finish();
    printf("store into an upload: %ld\n", sum + all_of(landing));
}

// The program's own pages: the bytes around the buffer are somebody else's.
static void registered() {
    char *block = (char *)mmap(nullptr, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(block, 7, 3 * bytes);
    char *mine = block + 100;
    CHECK(cudaHostRegister(mine, bytes, cudaHostRegisterDefault));
    CHECK(cudaMemcpyAsync(mine, dev, bytes, cudaMemcpyDeviceToHost, s));
    block[99] = 1, mine[bytes] = 1;
    char beside = block[99] + mine[bytes];
    char within = ((volatile char *)mine)[30000];
    finish();
    CHECK(cudaHostUnregister(mine));
    printf("registered: %d beside, %d within, %ld in all\n", beside, within, all_of(mine));
    munmap(block, 3 * bytes);
}

static void mapped() {
    char *mine, *there;
    CHECK(cudaHostAlloc(&mine, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    memset(mine, 7, bytes);
    CHECK(cudaHostGetDevicePointer((void **)&there, mine, 0));
    CHECK(cudaMemcpyAsync(there, dev, bytes, cudaMemcpyDeviceToDevice, s));
    char touched = ((volatile char *)mine)[12345];
    finish();
    printf("mapped: %d, %ld in all\n", touched, all_of(mine));
    CHECK(cudaFreeHost(mine));
}

static void columns() {
    CHECK(cudaMemcpy2DAsync(landing, 1024, dev, 1024, 512, bytes / 1024, cudaMemcpyDeviceToHost, s));
    char beside = ((volatile char *)landing)[10 * 1024 + 600];
    char within = ((volatile char *)landing)[20 * 1024 + 100];
    finish();
    printf("columns: %d %d\n", beside, within);
}

static void small() {
    CHECK(cudaMemcpyAsync(landing, dev, 64, cudaMemcpyDeviceToHost, s));
    char touched = ((volatile char *)landing)[8];
    finish();
    printf("small: %d\n", touched);
}

// Signal handlers on a small stack of their own, as Rust, Go and the JVM give every thread, with nothing readable below it.
static void altstacks() {
    size_t size = 16384;
    char *block = (char *)mmap(nullptr, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(block, 4096, PROT_NONE);
    stack_t own = {};
    own.ss_sp = block + 4096;
    own.ss_size = size;
    if (sigaltstack(&own, nullptr) != 0) exit(3);
    start();
    char touched = ((volatile char *)landing)[4097];
    finish();
    own.ss_flags = SS_DISABLE;
    sigaltstack(&own, nullptr);
    munmap(block, size + 4096);
    printf("small stack for handlers: %d\n", touched);
}

static void dies() {
    signal(SIGSEGV, SIG_DFL);
    start();
    *(volatile int *)16 = 1;
}

static const struct { const char *name; void (*run)(); } cases[] = {
    {"loads", loads}, {"handlers", handlers}, {"write", writes}, {"pread", preads}, {"pipes", pipes}, {"fread", freads},
    {"fortified", fortified}, {"sockets", sockets},
    {"threads", threads}, {"signals", signals}, {"child", children}, {"uploads", uploads}, {"registered", registered},
    {"mapped", mapped}, {"columns", columns}, {"small", small}, {"memmove", moves},
    {"altstack", altstacks}, {"dies", dies},
};

int main(int count, char **names) {
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&landing, bytes));
    CHECK(cudaMalloc(&dev, bytes));
    CHECK(cudaMemset(dev, 7, bytes));
    CHECK(cudaDeviceSynchronize());
    memset(landing, 7, bytes);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    for (const auto &one : cases) {
        bool wanted = count == 1 && one.run != dies;
        for (int i = 1; i < count; ++i) wanted |= strcmp(names[i], one.name) == 0;
        if (wanted) one.run();
    }
    CHECK(cudaFreeHost(landing));
    CHECK(cudaFree(dev));
    printf("done\n");
    return 0;
}
