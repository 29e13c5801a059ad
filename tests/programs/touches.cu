// Touches host memory that downloads are still writing, in every way that a program can, and says what came of it. All of it is
// racy, so every number is fixed by waiting before it is printed: with and without --host-accesses the output must be the same.
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

static void start() { CHECK(cudaMemcpyAsync(landing, dev, bytes, cudaMemcpyDeviceToHost, s)); }
static void finish() { CHECK(cudaStreamSynchronize(s)); }

static void on_fault(int, siginfo_t *info, void *) {
    handled += info->si_addr == (void *)16;
    siglongjmp(back, 1);
}

static void on_user(int) { handled += landing[5] == 7; }

static void own_fault(const char *when) {
    handled = 0;
    if (sigsetjmp(back, 1) == 0) *(volatile int *)16 = 1;
    printf("own fault %s: %d\n", when, handled);
}

static void *worker(void *at) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    long sum = 0;
    for (size_t i = (size_t)at; i < bytes; i += 4) sum += ((volatile char *)landing)[i];
    return (void *)(sum >= 0);
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&landing, bytes));
    CHECK(cudaMalloc(&dev, bytes));
    CHECK(cudaMemset(dev, 7, bytes));
    CHECK(cudaDeviceSynchronize());
    memset(landing, 7, bytes);

    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    own_fault("before");

    start();
    long sum = 0;
    for (size_t i = 0; i < bytes; ++i) sum += ((volatile char *)landing)[i];
    finish();
    printf("loads: %ld\n", sum);
    own_fault("after a touch");
    sigaction(SIGSEGV, nullptr, &before);
    printf("handler is ours: %d, flags %d\n", before.sa_sigaction == on_fault, before.sa_flags & SA_SIGINFO);
    signal(SIGSEGV, SIG_DFL);
    sigaction(SIGSEGV, &action, &before);
    printf("handler was default: %d\n", before.sa_handler == SIG_DFL);

    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600), pipes[2];
    if (file < 0 || pipe(pipes) != 0) return 2;
    start();
    errno = 0;
    printf("write: %zd, errno %d\n", write(file, landing, bytes), errno);
    finish();
    start();
    printf("pread: %zd, errno %d\n", pread(file, landing + 100, 5000, 0), errno);
    finish();
    start();
    struct iovec pieces[2] = {{landing, 10}, {landing + 30000, 20}};
    printf("writev: %zd, errno %d\n", writev(pipes[1], pieces, 2), errno);
    finish();
    start();
    printf("read: %zd, errno %d\n", read(pipes[0], landing + 60000, 30), errno);
    finish();
    FILE *stream = fdopen(dup(file), "r+");
    rewind(stream);
    start();
    printf("fread: %zu\n", fread(landing, 1, bytes, stream));
    finish();
    fclose(stream);

    start();
    pthread_t threads[4];
    for (size_t i = 0; i < 4; ++i) pthread_create(&threads[i], nullptr, worker, (void *)i);
    int right = 0;
    for (pthread_t thread : threads) {
        void *answer;
        pthread_join(thread, &answer);
        right += answer != nullptr;
    }
    finish();
    printf("threads: %d\n", right);

    signal(SIGUSR1, on_user);
    handled = 0;
    start();
    raise(SIGUSR1);
    finish();
    printf("signal handler: %d\n", handled);

    start();
    pid_t child = fork();
    if (child == 0) {
        volatile char *mine = landing;
        _exit(mine[bytes - 1] == 7 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    finish();
    printf("child: signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);

#ifdef DIES
    signal(SIGSEGV, SIG_DFL);
    start();
    *(volatile int *)16 = 1;
#endif
    start();
    memmove(landing + 1, landing, bytes - 1);
    finish();
    CHECK(cudaFreeHost(landing));
    CHECK(cudaFree(dev));
    printf("done\n");
    return 0;
}
