/* Drops what it may do, and then uses CUDA for the first time: ten launches, "done". One racy pair of fills where told.
 *
 *   dropped WAY[,WAY...] [racy|ordered]
 *   dropped WAY[,WAY...] fails     ends with 3
 *   WAY-WAY...                     the same, as the name of the program (for a folder of programs)
 * Exit code 77: this way is not to be had here. */
#include "common.h"
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NOBODY = 65534 };
static char program[4096], rest[64];

static void must(int ok) {
    if (!ok) _exit(77);
}

/* A file system of its own over what is there. */
static void cover(const char *folder) {
    must(mount("none", folder, "tmpfs", 0, "size=64k") == 0);
}

/* From now on this system call is an error. */
static void forbid(unsigned call) {
    struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void drop(const char *way) {
    char folder[] = "/tmp/streamsan-dropped-XXXXXX";
    if (!strcmp(way, "none")) return;
    if (!strcmp(way, "setuid")) must(setuid(NOBODY) == 0);
    else if (!strcmp(way, "setgid")) must(setgid(NOBODY) == 0);
    else if (!strcmp(way, "groups")) must(setgroups(0, 0) == 0);
    else if (!strcmp(way, "initgroups")) must(initgroups("nobody", NOBODY) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    else if (!strcmp(way, "seteuid")) must(seteuid(NOBODY) == 0);
    else if (!strcmp(way, "setreuid")) must(setreuid(NOBODY, NOBODY) == 0);
    else if (!strcmp(way, "setresuid")) must(setresuid(NOBODY, NOBODY, NOBODY) == 0);
    else if (!strcmp(way, "setfsuid")) setfsuid(NOBODY);
    else if (!strcmp(way, "nonewprivs")) must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    else if (!strcmp(way, "undumpable")) must(prctl(PR_SET_DUMPABLE, 0) == 0);
    else if (!strcmp(way, "chroot")) must(mkdtemp(folder) && chroot(folder) == 0 && chdir("/") == 0);
    else if (!strcmp(way, "mounts")) {
        must(unshare(CLONE_NEWNS) == 0 && mount("none", "/", 0, MS_REC | MS_PRIVATE, 0) == 0);
        cover("/tmp");
        /* Where the run's folder is, whatever it was told. */
        char *socket = getenv("STREAMSAN_SOCKET"), *end = socket ? strrchr(socket, '/') : 0;
        if (end && strncmp(socket, "/tmp/", 5)) {
            *end = 0;
            cover(socket);
            *end = '/';
        }
    } else if (!strcmp(way, "users")) must(unshare(CLONE_NEWUSER) == 0);
    else if (!strcmp(way, "network")) must(unshare(CLONE_NEWNET) == 0);
    else if (!strcmp(way, "processes")) {
        must(unshare(CLONE_NEWPID) == 0);
        pid_t child = fork();
        if (child) {
            int status = 0;
            REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        }
    } else if (!strcmp(way, "fork")) {
        pid_t child = fork();
        if (child) {
            int status = 0;
            REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        }
    } else if (!strcmp(way, "files")) { /* None may grow: there is no memory to share either. */
        struct rlimit none = {0, 0};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &none) == 0);
    } else if (!strcmp(way, "sockets")) forbid(SYS_socket);
    else if (!strcmp(way, "links")) {
        forbid(SYS_symlinkat);
#ifdef SYS_symlink
        forbid(SYS_symlink);
#endif
    } else if (!strcmp(way, "exec")) {
        must(access(program, X_OK) == 0);
        execl(program, program, "none", rest, (char *)0);
        _exit(77);
    } else REQUIRE(!"a way");
}

int main(int argc, char **argv) {
    REQUIRE(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    char ways[256], *own = strrchr(argv[0], '/');
    const char *separators = argc > 1 ? "," : "-";
    snprintf(ways, sizeof ways, "%s", argc > 1 ? argv[1] : own ? own + 1 : argv[0]);
    snprintf(rest, sizeof rest, "%s", argc > 2 ? argv[2] : "");
    for (char *way = strtok(ways, separators); way; way = strtok(0, separators)) drop(way);
    CUfunction function = begin("count_4_4");
    CUstream a, b;
    CUevent event;
    CUdeviceptr memory;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    for (unsigned i = 0; i < 10; i++) launch2(function, a, 1, i);
    if (!strcmp(rest, "racy") || !strcmp(rest, "ordered")) {
        CHECK(cuMemAlloc_v2(&memory, 4096));
        CHECK(cuMemsetD8Async(memory, 1, 4096, a));
        if (!strcmp(rest, "ordered")) {
            CHECK(cuEventRecord(event, a));
            CHECK(cuStreamWaitEvent(b, event, 0));
        }
        CHECK(cuMemsetD8Async(memory, 2, 4096, b));
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return strcmp(rest, "fails") ? 0 : 3;
}
