/* The state that a program inherits, and the signals that it gets.
 *   inherited                      ends at once
 *   inherited start CLOSED IGNORED BLOCKED PROGRAM [ARGS...]   execs PROGRAM with these descriptors closed (bits), these
 *                                  signals ignored and blocked (bits, hexadecimal), and an environment that is out of order
 *   inherited show FILE            uses CUDA and writes to FILE: signals, descriptors, environment
 *   inherited count [NUMBER]       writes "ready", waits for so many signals, writes how many of each have come */
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "common.h"

extern char **environ;
static volatile sig_atomic_t came[65];
static void note(int signal) { came[signal]++; }

static int start(char **args) {
    unsigned closed = strtoul(args[0], 0, 16);
    unsigned long ignored = strtoul(args[1], 0, 16), blocked = strtoul(args[2], 0, 16);
    sigset_t mask;
    sigemptyset(&mask);
    for (int s = 1; s <= 64; s++) {
        if (s != SIGKILL && s != SIGSTOP && s != 32 && s != 33) signal(s, ignored >> (s - 1) & 1 ? SIG_IGN : SIG_DFL);
        if (blocked >> (s - 1) & 1) sigaddset(&mask, s);
    }
    sigprocmask(SIG_SETMASK, &mask, 0);
    for (int i = 0; i < 3; i++)
        if (closed >> i & 1) close(i);
    static char *list[4096] = {"ZZ=1", "AA=2", "ZZ=3", "nameless", "=nothing", "EMPTY=", "LC_ALL=C", "BAD=\xff\xfe"};
    int count = 8;
    for (char **e = environ; *e && count < 4095; e++) list[count++] = *e;
    execve(args[3], args + 3, list);
    return 9;
}

static void signals(FILE *to) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6))
            /* Signals 32 and 33 are the C library's own, and out of reach of sigaction(). */
            fprintf(to, "%.6s %lx\n", line, strtoul(line + 7, 0, 16) & ~(3ul << 31));
    fclose(status);
}

static void state(FILE *to) {
    signals(to);
    for (int i = 0; i < 3; i++) fprintf(to, "descriptor %d: %d\n", i, fcntl(i, F_GETFD));
}

int main(int argc, char **argv) {
    if (argc < 2) return 0;
    if (argc > 5 && !strcmp(argv[1], "start")) return start(argv + 2);
    if (argc > 2 && !strcmp(argv[1], "show")) {
        int lowest = open("/dev/null", O_RDONLY);
        close(lowest);
        /* The stream's own number must not look like a standard descriptor. */
        int high = fcntl(open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600), F_DUPFD_CLOEXEC, 100);
        close(lowest);
        FILE *to = fdopen(high, "w");
        CUdeviceptr memory;
        fprintf(to, "lowest %d\n", lowest);
        state(to);
        CHECK(cuInit(0));
        CUcontext context;
        CHECK(cuDevicePrimaryCtxRetain(&context, 0));
        CHECK(cuCtxSetCurrent(context));
        CHECK(cuMemAlloc_v2(&memory, 4096));
        CHECK(cuMemsetD8Async(memory, 0, 4096, 0));
        CHECK(cuCtxSynchronize());
        /* Without descriptors: any driver opens files at the lowest free numbers. */
        signals(to);
        for (char **e = environ; *e; e++) fprintf(to, "env %s\n", *e);
        return fclose(to);
    }
    int all[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}, sum = 0;
    for (int i = 0; i < 6; i++) signal(all[i], note);
    puts("ready");
    fflush(stdout);
    for (int i = 0, wanted = argc > 2 ? atoi(argv[2]) : 1; i < 2000 && sum < wanted; i++) {
        usleep(5000);
        sum = 0;
        for (int s = 1; s <= 64; s++) sum += came[s];
    }
    usleep(100000); /* One that comes twice. */
    for (int s = 1; s <= 64; s++)
        if (came[s]) printf("signal %d: %d\n", s, came[s]);
    return 0;
}
