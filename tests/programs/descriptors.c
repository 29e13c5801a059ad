/* One process fills memory that another one copies out of; the memory goes from one to the other as a descriptor (fd, twice,
 * released, anew), as a fabric handle (fabric), as a pool and a pointer into it (pool), or does not (self: this process imports it itself; other: the descriptor is
 * that of other memory). How the two are ordered is told by the first word: not at all (nothing), by the first one's host (host)
 * or an event of both (event), or by an event that was recorded before the fill (early). */
#include "common.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { N = 2 << 20, FILE_DESCRIPTOR = 1, FABRIC = 8 };
typedef unsigned long long Handle;
typedef struct { int type, handle_types; struct { int type, id; } location; void *win32; unsigned char flags[8]; } Prop;
typedef struct { struct { int type, id; } location; int flags; } Access;
typedef struct { int type, handle_types; struct { int type, id; } location; void *win32; size_t most; char reserved[56]; } PoolProps;
struct Message { CUipcHandle event, fabric; };

static void *of(const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = driver ? dlsym(driver, name) : NULL;
    REQUIRE(found);
    return found;
}
#define CALL(name, types, ...) CHECK(((CUresult (*) types)of(#name))(__VA_ARGS__))

static Handle create(int types) {
    Prop prop = {1, types, {1, 0}, NULL, {0}};
    Handle handle;
    CALL(cuMemCreate, (Handle *, size_t, const Prop *, uint64_t), &handle, N, &prop, 0);
    return handle;
}

static CUdeviceptr map(Handle handle) {
    Access access = {{1, 0}, 3};
    CUdeviceptr at;
    CALL(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, uint64_t), &at, N, 0, 0, 0);
    CALL(cuMemMap, (CUdeviceptr, size_t, size_t, Handle, uint64_t), at, N, 0, handle, 0);
    CALL(cuMemSetAccess, (CUdeviceptr, size_t, const Access *, size_t), at, N, &access, 1);
    return at;
}

static void release(Handle handle) { CALL(cuMemRelease, (Handle), handle); }

static void unmap(CUdeviceptr at) { CALL(cuMemUnmap, (CUdeviceptr, size_t), at, N); }

static int export(Handle handle) {
    int file;
    CALL(cuMemExportToShareableHandle, (void *, Handle, int, uint64_t), &file, handle, FILE_DESCRIPTOR, 0);
    return file;
}

static Handle import(void *from, int type) {
    Handle handle;
    CALL(cuMemImportFromShareableHandle, (Handle *, void *, int), &handle, from, type);
    return handle;
}

static void give(int to, struct Message message, int file) {
    char room[CMSG_SPACE(sizeof file)] = {0};
    struct iovec part = {&message, sizeof message};
    struct msghdr sent = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&sent);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    REQUIRE(sendmsg(to, &sent, 0) == sizeof message);
}

static int take(int from, struct Message *message) {
    char room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {message, sizeof *message};
    struct msghdr got = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    REQUIRE(recvmsg(from, &got, 0) == sizeof *message);
    int file;
    memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&got)), sizeof file);
    return file;
}

static void fill(const char *order, const char *how, int socket) {
    struct Message message;
    CUstream s;
    CUevent e;
    char end;
    attach();
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuEventCreate(&e, 2 | 4));
    CHECK(cuIpcGetEventHandle(&message.event, e));
    int fabric = !strcmp(how, "fabric");
    Handle handle = create(fabric ? FABRIC : FILE_DESCRIPTOR), other = create(FILE_DESCRIPTOR);
    CUdeviceptr x = map(handle), y = map(other);
    int file = export(other);
    if (!strcmp(how, "pool")) {
        PoolProps props = {1, FILE_DESCRIPTOR, {1, 0}, NULL, 0, {0}};
        void *pool;
        unmap(x);
        close(file);
        CALL(cuMemPoolCreate, (void **, const PoolProps *), &pool, &props);
        CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, void *, CUstream), &x, N, pool, s);
        CALL(cuMemPoolExportToShareableHandle, (void *, void *, int, uint64_t), &file, pool, FILE_DESCRIPTOR, 0);
        CALL(cuMemPoolExportPointer, (void *, CUdeviceptr), &message.fabric, x);
    } else if (fabric)
        CALL(cuMemExportToShareableHandle, (void *, Handle, int, uint64_t), &message.fabric, handle, FABRIC, 0);
    else if (strcmp(how, "other"))
        close(file), file = export(handle);
    if (!strcmp(how, "twice")) file = export(handle);
    if (!strcmp(how, "released")) release(handle);
    if (!strcmp(how, "anew")) {
        char path[32];
        off_t at = lseek(file, 0, SEEK_CUR);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        REQUIRE((file = open(path, O_RDWR)) >= 0 && lseek(file, at, SEEK_SET) == at);
    }
    if (!strcmp(order, "early")) CHECK(cuEventRecord(e, s));
    CHECK(cuMemsetD8Async(x, 1, N, s));
    if (!strcmp(order, "event")) CHECK(cuEventRecord(e, s));
    if (!strcmp(order, "host")) CHECK(cuStreamSynchronize(s));
    give(socket, message, file);
    close(file);
    REQUIRE(read(socket, &end, 1) == 1);
    CHECK(cuCtxSynchronize());
    if (strcmp(how, "pool")) unmap(x);
    else CHECK(cuMemFree_v2(x));
    unmap(y);
}

static void copy(const char *how, int socket) {
    struct Message message;
    unsigned char byte = 0;
    CUstream s;
    CUevent e;
    attach();
    CHECK(cuStreamCreate(&s, 1));
    CUdeviceptr y;
    CHECK(cuMemAlloc_v2(&y, N));
    int file = take(socket, &message);
    int fabric = !strcmp(how, "fabric"), pooled = !strcmp(how, "pool");
    void *pool, *passed = fabric ? (void *)&message.fabric : (void *)(intptr_t)file;
    CUdeviceptr x;
    if (pooled) {
        CALL(cuMemPoolImportFromShareableHandle, (void **, void *, int, uint64_t), &pool, passed, FILE_DESCRIPTOR, 0);
        CALL(cuMemPoolImportPointer, (CUdeviceptr *, void *, void *), &x, pool, &message.fabric);
    } else {
        Handle handle = import(passed, fabric ? FABRIC : FILE_DESCRIPTOR);
        x = map(handle);
        release(handle);
    }
    close(file);
    CHECK(cuIpcOpenEventHandle(&e, message.event));
    CHECK(cuStreamWaitEvent(s, e, 0));
    CHECK(cuMemcpyDtoDAsync_v2(y, x, N, s));
    CHECK(cuStreamSynchronize(s));
    CHECK(cuMemcpyDtoH_v2(&byte, y + N - 1, 1));
    printf("%d\n", byte);
    if (pooled) CHECK(cuMemFree_v2(x));
    else unmap(x);
    REQUIRE(write(socket, "", 1) == 1);
}

/* Two mappings of one memory in one process: by the handle that made it, and by one that was imported. */
static void alone(const char *order) {
    CUstream s, t;
    CUevent e;
    CUdeviceptr z;
    attach();
    CHECK(cuStreamCreate(&s, 1));
    CHECK(cuStreamCreate(&t, 1));
    CHECK(cuEventCreate(&e, 2));
    CHECK(cuMemAlloc_v2(&z, N));
    Handle handle = create(FILE_DESCRIPTOR);
    int file = export(handle);
    CUdeviceptr x = map(handle), y = map(import((void *)(intptr_t)file, FILE_DESCRIPTOR));
    close(file);
    CHECK(cuMemsetD8Async(x, 1, N, s));
    if (!strcmp(order, "event")) {
        CHECK(cuEventRecord(e, s));
        CHECK(cuStreamWaitEvent(t, e, 0));
    }
    CHECK(cuMemcpyDtoDAsync_v2(z, y, N, t));
    CHECK(cuCtxSynchronize());
    unmap(x), unmap(y);
    puts("alone");
}

int main(int argc, char **argv) {
    int sockets[2], status;
    REQUIRE(argc == 3);
    if (!strcmp(argv[2], "self")) return alone(argv[1]), 0;
    REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    pid_t child = fork();
    /* One that ends early must not leave the other one waiting. */
    close(sockets[!child ? 0 : 1]);
    if (!child) {
        copy(argv[2], sockets[1]);
        exit(0);
    }
    fill(argv[1], argv[2], sockets[0]);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
