/* Processes that make processes. The first word says how; `work COUNT CODE` only works. */
#include "common.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static char *self;

static void work(unsigned count, unsigned tag) {
    CUfunction f = begin("count_4_4");
    CUstream s;
    CHECK(cuStreamCreate(&s, 1));
    for (unsigned i = 0; i < count; i++) launch2(f, s, tag, i);
    CHECK(cuStreamSynchronize(s));
}

static void ends(pid_t child, int code) {
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

int main(int argc, char **argv) {
    self = argv[0];
    const char *how = argv[1];
    if (!strcmp(how, "work")) {
        work(atoi(argv[2]), 9);
        return atoi(argv[3]);
    }
    if (!strcmp(how, "helper")) return 3;
    if (!strcmp(how, "fork")) { /* both work, before and after */
        work(10, 1);
        pid_t child = fork();
        if (!child) {
            work(20, 2);
            exit(4);
        }
        work(30, 3);
        ends(child, 4);
        work(5, 1);
    } else if (!strcmp(how, "fork-idle")) { /* the child does nothing of CUDA, ends by exit() and by _exit() */
        work(10, 1);
        for (int i = 0; i < 2; i++) {
            pid_t child = fork();
            if (!child) {
                if (i) _exit(4);
                exit(4);
            }
            ends(child, 4);
        }
        work(5, 1);
    } else if (!strcmp(how, "fork-first")) { /* only the child uses CUDA */
        pid_t child = fork();
        if (!child) {
            work(20, 2);
            exit(4);
        }
        ends(child, 4);
    } else if (!strcmp(how, "fork-twice")) { /* generations */
        work(3, 1);
        pid_t child = fork();
        if (!child) {
            work(4, 2);
            pid_t grandchild = fork();
            if (!grandchild) {
                work(5, 3);
                exit(6);
            }
            ends(grandchild, 6);
            exit(4);
        }
        ends(child, 4);
    } else if (!strcmp(how, "exec")) {
        work(10, 1);
        execl(self, self, "work", "7", "5", (char *)0);
    } else if (!strcmp(how, "spawn")) { /* helpers that use no CUDA */
        work(10, 1);
        for (int i = 0; i < 20; i++) {
            char *arguments[] = {self, "helper", 0};
            pid_t child;
            REQUIRE(posix_spawn(&child, self, 0, 0, arguments, environ) == 0);
            ends(child, 3);
            child = vfork();
            if (!child) {
                execv(self, arguments);
                _exit(96);
            }
            ends(child, 3);
        }
        REQUIRE(system("exit 9") == 9 << 8);
        work(5, 1);
    } else if (!strcmp(how, "env-i")) { /* a child in an empty environment is not ours */
        work(10, 1);
        char path[4096];
        snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH"));
        char *environment[] = {path, 0};
        char *arguments[] = {self, "work", "8", "5", 0};
        pid_t child;
        REQUIRE(posix_spawn(&child, self, 0, 0, arguments, environment) == 0);
        ends(child, 5);
    } else
        return 97;
    puts("done");
    return 0;
}
