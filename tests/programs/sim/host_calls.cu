// Calls of the C library, beside those of host_pages.cu, that hand Linux what lies in memory which kernels use: attributes, queues,
// semaphores, clocks, programs to start, calls by their numbers. Nothing races, and each must end as without StreamSan.
//
//   host_calls KIND [racy]         on memory of a kind (pinned, managed, registered); racy: the host also reads what the kernel writes
#include <cuda_runtime.h>
#include <aio.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <sys/klog.h>
#include <threads.h>
#include <unistd.h>
extern char **environ;
static const size_t size = 1 << 18;
static char *block, *mine; // The kernel writes the beginning of the block; the program uses its second half.
static cudaStream_t s;

__global__ void first(float *to) { to[threadIdx.x] = threadIdx.x; }
static void launch() { first<<<1, 64, 0, s>>>((float *)block); }

// Says how something ended: negative is an error.
static void ended(const char *what, long result) {
    int error = errno;
    printf("%s: %s\n", what, result < 0 ? strerror(error) : "works");
}
// Puts a text there.
static void text(size_t at, const char *words) { strcpy(mine + at, words); }
// Prepares what a call needs, launches, so that the pages are held, and calls.
#define CASE(name, prepare, call) { cudaDeviceSynchronize(); memset(mine, 0, 4096); prepare; launch(); errno = 0; ended(name, (long)(call)); }
static int none(const char *, const struct stat *, int) { return 0; }
static int in_child(void (*call)()) {
    pid_t child = fork();
    if (!child) {
        call();
        _exit(9);
    }
    int status;
    waitpid(child, &status, 0);
    errno = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int code(int error) {
    errno = error;
    return error ? -1 : 0;
}
static void in_background(const char *name, int (*begin)(aiocb *), int file) {
    cudaDeviceSynchronize();
    aiocb request = {};
    request.aio_fildes = file, request.aio_buf = mine, request.aio_nbytes = 4;
    launch();
    begin(&request);
    while (aio_error(&request) == EINPROGRESS) usleep(100);
    errno = aio_error(&request);
    ended(name, aio_return(&request));
}
static int by_vfork() {
    char *words[] = {mine, 0};
    pid_t child = vfork();
    if (!child) {
        execvp(mine, words);
        _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return code(WEXITSTATUS(status) ? EFAULT : 0);
}
static int spawned(pid_t *child, posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes) {
    char *words[] = {(char *)"true", 0};
    int status = -1, error = posix_spawn(child, "/bin/true", actions, attributes, words, environ);
    if (!error) waitpid(*child, &status, 0);
    return code(error ? error : status ? ECHILD : 0);
}
static int received(timespec *until) {
    int pair[2];
    char byte = 'x';
    iovec piece = {&byte, 1};
    mmsghdr message = {};
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    (void)!write(pair[0], &byte, 1);
    message.msg_hdr.msg_iov = &piece, message.msg_hdr.msg_iovlen = 1;
    return recvmmsg(pair[1], &message, 1, 0, until);
}
static int terminal() {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) return -1;
    return code(ttyname_r(open(ptsname(master), O_RDWR | O_NOCTTY), mine, 100));
}
static int printed() {
    FILE *file = fopen("/dev/null", "w");
    setvbuf(file, 0, _IONBF, 0);
    int count = fprintf(file, "%s", mine);
    fclose(file);
    return count == 3 * 4096 ? 0 : -1;
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IOLBF, 0);
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    if (!strcmp(argv[1], "managed")) cudaMallocManaged(&block, size);
    else if (!strcmp(argv[1], "registered")) {
        block = (char *)mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cudaHostRegister(block, size, 0);
    }
    else cudaMallocHost(&block, size);
    memset(block, 0, size);
    mine = block + size / 2;
    char path[] = "/tmp/streamsan-host-calls-XXXXXX"; int fd = mkstemp(path); (void)!write(fd, "hello", 5);
    char other[4096];
    CASE("setxattr path", text(0, path), setxattr(mine, "user.a", "v", 1, 0));
    CASE("setxattr name", text(0, "user.b"), setxattr(path, mine, "v", 1, 0));
    CASE("setxattr value", text(0, "vv"), setxattr(path, "user.c", mine, 2, 0));
    CASE("getxattr", , getxattr(path, "user.a", mine, 100));
    CASE("lgetxattr", , lgetxattr(path, "user.a", mine, 100));
    CASE("fgetxattr", , fgetxattr(fd, "user.a", mine, 100));
    CASE("fsetxattr", text(0, "v"), fsetxattr(fd, "user.d", mine, 1, 0));
    CASE("listxattr", , listxattr(path, mine, 1000));
    CASE("flistxattr", , flistxattr(fd, mine, 1000));
    CASE("removexattr", text(0, "user.a"), removexattr(path, mine));
    int in = inotify_init();
    CASE("inotify_add_watch", text(0, path), inotify_add_watch(in, mine, IN_MODIFY));
    CASE("memfd_create", text(0, "name"), memfd_create(mine, 0));
    int q = msgget(IPC_PRIVATE, 0600);
    CASE("msgsnd", (*(long *)mine = 1), msgsnd(q, mine, 8, 0));
    CASE("msgrcv", , msgrcv(q, mine, 8, 0, IPC_NOWAIT));
    CASE("msgctl", , msgctl(q, IPC_STAT, (msqid_ds *)mine)); msgctl(q, IPC_RMID, 0);
    int sem = semget(IPC_PRIVATE, 1, 0600);
    CASE("semop", (((sembuf *)mine)->sem_op = 1), semop(sem, (sembuf *)mine, 1));
    timespec *until = (timespec *)(mine + 512);
    CASE("semtimedop", (((sembuf *)mine)->sem_op = 1, until->tv_sec = 1), semtimedop(sem, (sembuf *)mine, 1, until));
    union semun { int v; semid_ds *b; unsigned short *a; } u; u.b = (semid_ds *)mine;
    CASE("semctl", , semctl(sem, 0, IPC_STAT, u)); semctl(sem, 0, IPC_RMID);
    int shm = shmget(IPC_PRIVATE, 4096, 0600);
    CASE("shmctl", , shmctl(shm, IPC_STAT, (shmid_ds *)mine)); shmctl(shm, IPC_RMID, 0);
    char mqn[64]; snprintf(mqn, 64, "/streamsan-%d", getpid());
    mq_attr at = {}; at.mq_maxmsg = 4; at.mq_msgsize = 64;
    mqd_t mq = mq_open(mqn, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &at);
    CASE("mq_open", text(0, mqn), mq_open(mine, O_RDWR));
    CASE("mq_open attr", (*(mq_attr *)(mine + 64) = at, snprintf(other, 64, "%sb", mqn)), mq_open(other, O_RDWR | O_CREAT, 0600, (mq_attr *)(mine + 64)));
    CASE("mq_send", text(0, "hi"), mq_send(mq, mine, 3, 0));
    CASE("mq_receive", , mq_receive(mq, mine, 64, 0));
    CASE("mq_timedsend", text(0, "hi"), (((timespec *)(mine + 512))->tv_sec, launch(), mq_timedsend(mq, mine, 3, 0, (timespec *)(mine + 512))));
    CASE("mq_timedreceive", , mq_timedreceive(mq, mine, 64, (unsigned *)(mine + 256), (timespec *)(mine + 512)));
    CASE("mq_getattr", , mq_getattr(mq, (mq_attr *)mine));
    CASE("mq_setattr", , mq_setattr(mq, (mq_attr *)mine, 0));
    CASE("mq_unlink", text(0, other), mq_unlink(mine)); mq_unlink(mqn);
    in_background("aio_read", aio_read, fd);
    in_background("aio_write", aio_write, fd);
    CASE("clock_gettime", , clock_gettime(CLOCK_MONOTONIC, (timespec *)mine));
    CASE("clock_gettime alarm", , clock_gettime(CLOCK_BOOTTIME_ALARM, (timespec *)mine));
    CASE("gettimeofday", , gettimeofday((timeval *)mine, 0));
    CASE("time", , time((time_t *)mine));
    CASE("timespec_get", , timespec_get((timespec *)mine, TIME_UTC));
    CASE("sched_getparam", , sched_getparam(0, (sched_param *)mine));
    CASE("sched_setscheduler", , sched_setscheduler(0, SCHED_OTHER, (sched_param *)mine));
    CASE("sched_rr_get_interval", , sched_rr_get_interval(0, (timespec *)mine));
    CASE("execvp", text(0, "/bin/true"), in_child([] { char *a[] = {mine, 0}; launch(); execvp(mine, a); }));
    CASE("execvpe", text(0, "/bin/true"), in_child([] { char *a[] = {mine, 0}; execvpe(mine, a, environ); }));
    CASE("execlp", text(0, "/bin/true"), in_child([] { execlp(mine, mine, (char *)0); }));
    CASE("execl", text(0, "/bin/true"), in_child([] { execl(mine, mine, (char *)0); }));
    CASE("execle", text(0, "/bin/true"), in_child([] { execle(mine, mine, (char *)0, environ); }));
    { static int t; t = open("/bin/true", O_RDONLY); CASE("fexecve", text(0, "true"), in_child([] { char *a[] = {mine, 0}; fexecve(t, a, environ); })); }
    CASE("vfork execvp", text(0, "/bin/true"), by_vfork());
    auto actions = (posix_spawn_file_actions_t *)(mine + 1024);
    auto attributes = (posix_spawnattr_t *)(mine + 2048);
    CASE("posix_spawn actions",
         (posix_spawn_file_actions_init(actions), posix_spawn_file_actions_addopen(actions, 7, path, 0, 0),
          posix_spawnattr_init(attributes), posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK)),
         spawned((pid_t *)other, actions, attributes));
    CASE("posix_spawn pid", , spawned((pid_t *)mine, 0, 0));
    CASE("realpath", text(0, path), realpath(mine, other) ? 0 : -1);
    CASE("realpath to", , realpath(path, mine) ? 0 : -1);
    CASE("canonicalize", text(0, path), ({ char *r = canonicalize_file_name(mine); r ? 0 : -1; }));
    CASE("dlopen", text(0, "libm.so.6"), dlopen(mine, RTLD_NOW) ? 0 : -1);
    CASE("ftok", text(0, path), ftok(mine, 1) == -1 ? -1 : 0);
    CASE("ftw", text(0, "/etc/alternatives"), ftw(mine, none, 4));
    CASE("scandir", text(0, "/etc"), ({ dirent **l; scandir(mine, &l, 0, 0); }));
    CASE("glob", text(0, "/etc/host*"), ({ glob_t g; int r = glob(mine, 0, 0, &g); r ? -1 : 0; }));
    CASE("lutimes", text(0, path), lutimes(mine, 0));
    CASE("futimes", (gettimeofday((timeval *)mine, 0), gettimeofday((timeval *)mine + 1, 0)), futimes(fd, (timeval *)mine));
    CASE("futimesat", text(0, path), futimesat(AT_FDCWD, mine, 0));
    CASE("pthread_setname_np", text(0, "name"), code(pthread_setname_np(pthread_self(), mine)));
    CASE("pthread_getname_np", , code(pthread_getname_np(pthread_self(), mine, 16)));
    CASE("pthread_getaffinity_np", , code(pthread_getaffinity_np(pthread_self(), 128, (cpu_set_t *)mine)));
    CASE("pthread_setaffinity_np", (sched_getaffinity(0, 128, (cpu_set_t *)mine)), code(pthread_setaffinity_np(pthread_self(), 128, (cpu_set_t *)mine)));
    CASE("pthread_getschedparam", , code(pthread_getschedparam(pthread_self(), (int *)mine, (sched_param *)(mine + 64))));
    CASE("pthread_sigmask", , code(pthread_sigmask(SIG_BLOCK, (sigset_t *)mine, (sigset_t *)(mine + 256))));
    CASE("sigprocmask set", , sigprocmask(SIG_BLOCK, (sigset_t *)mine, 0));
    CASE("sigaction", (((struct sigaction *)mine)->sa_handler = SIG_DFL), sigaction(SIGUSR2, (struct sigaction *)mine, (struct sigaction *)(mine + 512)));
    CASE("thrd_sleep", (((timespec *)mine)->tv_nsec = 1000), thrd_sleep((timespec *)mine, 0));
    CASE("getentropy", , getentropy(mine, 16));
    CASE("eventfd_read", , ({ int e = eventfd(1, 0); eventfd_read(e, (eventfd_t *)mine); }));
    CASE("adjtimex", , adjtimex((timex *)mine));
    CASE("clock_adjtime", , clock_adjtime(CLOCK_REALTIME, (timex *)mine));
    CASE("ntp_gettime", , ntp_gettime((ntptimeval *)mine));
    CASE("klogctl", , klogctl(3, mine, 100));
    iovec l = {other, 8}, r = {mine, 8}, *list = (iovec *)mine;
    CASE("process_vm_readv list", (list->iov_base = path, list->iov_len = 8), process_vm_readv(getpid(), &l, 1, list, 1, 0));
    CASE("process_vm_readv remote", , process_vm_readv(getpid(), &l, 1, &r, 1, 0));
    CASE("process_vm_writev remote", , process_vm_writev(getpid(), &l, 1, &r, 1, 0));
    int id;
    CASE("name_to_handle_at", (((file_handle *)mine)->handle_bytes = 128, strcpy(mine + 1024, path)),
         name_to_handle_at(AT_FDCWD, mine + 1024, (file_handle *)mine, &id, 0));
    CASE("recvmmsg timeout", , received((timespec *)mine));
#ifdef SYS_poll
    CASE("syscall poll", , syscall(SYS_poll, mine, 1, 0));
#endif
#ifdef SYS_stat
    CASE("syscall stat", text(0, path), syscall(SYS_stat, mine, mine + 1024));
#endif
#ifdef SYS_open
    CASE("syscall open", text(0, path), syscall(SYS_open, mine, 0));
#endif
    CASE("syscall getrusage", , syscall(SYS_getrusage, 0, mine));
    CASE("syscall capget", (*(unsigned *)mine = 0x20080522), syscall(SYS_capget, mine, mine + 1024));
    CASE("syscall get_mempolicy", , syscall(SYS_get_mempolicy, mine, 0, 0, 0, 0));
    CASE("syscall getcpu", , syscall(SYS_getcpu, mine, mine + 8, 0));

    CASE("syscall gettimeofday", , syscall(SYS_gettimeofday, mine, 0));
#ifdef SYS_arch_prctl
    CASE("syscall arch_prctl", , syscall(SYS_arch_prctl, 0x1003, mine));
#endif
    CASE("getlogin_r", , (getlogin_r(mine, 100), 0));
    CASE("ttyname_r", , terminal());
    CASE("gethostname", , gethostname(mine, 100));
    CASE("getdomainname", , getdomainname(mine, 100));
    CASE("confstr", , confstr(_CS_PATH, mine, 100));
    CASE("mktemp", text(0, "/tmp/streamsan-XXXXXX"), (mktemp(mine)[0] ? 0 : -1));
    CASE("tmpnam", , (tmpnam(mine) ? 0 : -1));
    CASE("fprintf", (memset(mine, 'x', 3 * 4096), mine[3 * 4096] = 0), printed());
    CASE("getdelim", , ({ FILE *f = fopen(path, "r"); char *l = 0; size_t n = 0; getline(&l, &n, f); }));
    CASE("fgets", , ({ FILE *f = fopen(path, "r"); fgets(mine, 100, f) ? 0 : -1; }));
    CASE("statx raw", text(0, path), syscall(SYS_statx, AT_FDCWD, mine, 0, 0x7ff, mine + 1024));
    CASE("pathconf", text(0, path), pathconf(mine, _PC_NAME_MAX));
    CASE("eaccess", text(0, path), eaccess(mine, R_OK));
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    CASE("getsockopt", (*(socklen_t *)(mine + 512) = 4), getsockopt(tcp, SOL_SOCKET, SO_TYPE, mine, (socklen_t *)(mine + 512)));
    CASE("nftw", text(0, "/etc/alternatives"), nftw(mine, [](const char *, const struct stat *, int, FTW *) { return 0; }, 4, 0));
    launch();
    volatile float seen = argc > 2 ? ((float *)block)[3] : 0;
    (void)seen;
    cudaDeviceSynchronize();
    unlink(path);
    puts("done");
    return 0;
}
