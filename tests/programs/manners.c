/* What StreamSan must leave alone inside the process. */
#include "common.h"
#include <fcntl.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static CUfunction function;
static CUstream stream;

static int descriptors(void) {
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static volatile unsigned handled;
static void handler(int signal) {
    int before = errno;
    launch2(function, stream, 7, handled++);
    REQUIRE(errno == before);
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    /* What is done about each signal before CUDA is used: defaults, or ignored where the program was started so (nohup). */
    void (*before[65])(int);
    for (int signal = 1; signal < 65; signal++) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigaction(signal, 0, &action);
        before[signal] = action.sa_handler;
        REQUIRE(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
    }
    int fds = descriptors();
    function = begin("count_4_4");
    CHECK(cuStreamCreate(&stream, 1));
    launch2(function, stream, 0, 0);
    if (!strcmp(what, "children")) { /* nobody's child is seen by wait */
        int status;
        errno = 0;
        REQUIRE(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
        pid_t child = fork();
        if (!child) _exit(5);
        REQUIRE(wait(&status) == child && WEXITSTATUS(status) == 5);
        errno = 0;
        REQUIRE(wait(&status) == -1 && errno == ECHILD);
        errno = 0;
        REQUIRE(waitpid(-1, &status, __WALL) == -1 && errno == ECHILD);
        struct rusage usage;
        REQUIRE(getrusage(RUSAGE_CHILDREN, &usage) == 0);
    } else if (!strcmp(what, "descriptors")) { /* none appears, and none that the program closes is missed */
        REQUIRE(descriptors() == fds);
        int lowest = open("/dev/null", O_RDONLY);
        close(lowest);
        REQUIRE(lowest == open("/dev/null", O_RDONLY));
        syscall(SYS_close_range, 3, ~0U, 0);
        for (unsigned i = 1; i < 1000; i++) launch2(function, stream, 0, i);
        REQUIRE(open("/dev/null", O_RDONLY) == 3);
    } else if (!strcmp(what, "all-closed")) { /* even the standard ones */
        for (int fd = 0; fd < 64; fd++) close(fd);
        for (unsigned i = 1; i < 1000; i++) launch2(function, stream, 0, i);
        return 11;
    } else if (!strcmp(what, "errno")) {
        CUdeviceptr x;
        CUevent event;
        errno = 4321;
        CHECK(cuMemAlloc_v2(&x, 100000));
        REQUIRE(errno == 4321);
        CHECK(cuEventCreate(&event, 0));
        CHECK(cuEventRecord(event, stream));
        CHECK(cuStreamWaitEvent(0, event, 0));
        CHECK(cuMemsetD8Async(x, 0, 100000, stream));
        launch2(function, 0, 0, 1);
        CHECK(cuCtxSynchronize());
        CHECK(cuMemFree_v2(x));
        REQUIRE(errno == 4321);
        REQUIRE(cuStreamSynchronize((CUstream)&x) == 400 && errno == 4321);
        REQUIRE(dlsym(RTLD_DEFAULT, "cuLaunchKernel") != 0 && errno == 4321);
    } else if (!strcmp(what, "signals")) { /* a handler that calls CUDA interrupts hooks everywhere */
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, 0);
        struct itimerval every = {{0, 100}, {0, 100}};
        setitimer(ITIMER_REAL, &every, 0);
        unsigned i;
        for (i = 1; handled < 500 || i < 20000; i++) launch2(function, stream, 0, i);
        struct itimerval never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &never, 0);
        printf("%u %u\n", i, handled);
    } else if (!strcmp(what, "mask")) { /* signal mask, handlers and alternate stack stay */
        sigset_t mask;
        sigprocmask(SIG_SETMASK, 0, &mask);
        for (int signal = 1; signal < 65; signal++) {
            REQUIRE(!sigismember(&mask, signal));
            struct sigaction action;
            if (sigaction(signal, 0, &action) == 0) REQUIRE(action.sa_handler == before[signal]);
        }
        stack_t stack;
        REQUIRE(sigaltstack(0, &stack) == 0 && (stack.ss_flags & SS_DISABLE));
    } else
        return 97;
    puts("done");
    return 0;
}
