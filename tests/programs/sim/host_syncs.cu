// What orders the host after a kernel, and what only looks as if it did, with a load or a store of the host behind it,
// while three more threads do something of their own. Each case has managed memory of its own size, and prints the
// size, "race" or "clean", and its names.
//
//   host_syncs OTHERS         idle, records, launches, allocates
//   host_syncs loops          the other threads are idle; the host loops over a page, and only its last access is to what
//                             the kernel writes, or would be
//   host_syncs long           the other threads are idle; the host loads more bytes, one by one, than are followed
//   host_syncs arguments      the other threads are idle; before the touch a call of the C library finds the address of
//                             the memory in the registers of arguments that it does not take
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <thread>
#include <unistd.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int error = (int)(call);                                                                                       \
        if (error) printf("line %d: error %d\n", __LINE__, error), exit(1);                                            \
    } while (0)

constexpr int OTHERS = 3, ROUNDS = 3;
__global__ void fill(char *to) { to[threadIdx.x] = 1; }

static std::atomic<int> over, told;
static cudaStream_t stream, aside;
static cudaEvent_t event;
static volatile char *seen_by_host;
static char *memory;
static size_t size = 4096;

static void other(const std::string &what) {
    cudaStream_t own;
    cudaEvent_t mark;
    char *bytes;
    CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming));
    CHECK(cudaMallocAsync((void **)&bytes, 64, own));
    while (!over) {
        // As fast as it goes: the log's lock is never free for long.
        if (what == "records") {
            CHECK(cudaEventRecord(mark, own));
            continue;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        if (what == "launches") fill<<<1, 32, 0, own>>>(bytes);
        else if (what == "allocates") {
            char *more;
            CHECK(cudaMallocAsync((void **)&more, 64, own));
            CHECK(cudaFreeAsync(more, own));
        }
    }
}

__global__ void set(char *to) { to[threadIdx.x] = 1; }
// Loops over every so many-th element of the page, up or down. The kernel writes the last of them.
template <typename T> __attribute__((always_inline)) static void over_page(int step, bool down, bool right, bool stores) {
    int steps = (4096 / sizeof(T) - 1) / step, last = down ? 0 : steps * step;
    set<<<1, sizeof(T), 0, stream>>>(memory + last * sizeof(T));
    for (int i = 0; i <= steps - right; i++) {
        volatile T *at = (volatile T *)memory + (down ? steps - i : i) * step;
        if (stores) *at = 2;
        else (void)*at;
    }
}
struct Loop {
    const char *name;
    void (*run)(bool right, bool stores);
};
static const Loop LOOPS[] = {
    {"bytes", [](bool right, bool stores) { over_page<char>(1, false, right, stores); }},
    {"every_third_short", [](bool right, bool stores) { over_page<short>(3, false, right, stores); }},
    {"ints", [](bool right, bool stores) { over_page<int>(1, false, right, stores); }},
    {"ints_down", [](bool right, bool stores) { over_page<int>(1, true, right, stores); }},
    {"every_other_int", [](bool right, bool stores) { over_page<int>(2, false, right, stores); }},
    {"longs", [](bool right, bool stores) { over_page<long>(1, false, right, stores); }},
};

static void tell(void *) { told = 1; }
static void kernel() { fill<<<1, 32, 0, stream>>>(memory); }
// The host knows that the functions in the stream so far have returned.
static void functions_return() {
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaEventSynchronize(event));
}

static auto entry(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
    return (CUresult(*)(CUstream, CUdeviceptr, cuuint32_t, unsigned))found;
}

// Each enqueues the kernel, and what orders the host after it if it is `right`.
struct Way {
    const char *name;
    void (*run)(bool right);
};
static const Way WAYS[] = {
    {"stream_synchronize", [](bool right) {
         kernel();
         CHECK(cudaStreamSynchronize(right ? stream : aside));
     }},
    {"event_synchronize",
     [](bool right) {
         if (right) kernel();
         CHECK(cudaEventRecord(event, stream));
         if (!right) kernel();
         CHECK(cudaEventSynchronize(event));
     }},
    {"event_query",
     [](bool right) {
         if (right) kernel();
         CHECK(cudaEventRecord(event, stream));
         if (!right) kernel();
         while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::yield();
     }},
    {"stream_query",
     [](bool right) {
         kernel();
         while (cudaStreamQuery(right ? stream : aside) == cudaErrorNotReady) std::this_thread::yield();
     }},
    {"host_function",
     [](bool right) {
         told = 0;
         if (right) kernel();
         CHECK(cudaLaunchHostFunc(stream, tell, nullptr));
         if (!right) functions_return(), kernel();
         while (!told) std::this_thread::yield();
     }},
    {"host_function_in_front",
     [](bool right) {
         told = 0;
         CHECK(cudaLaunchHostFunc(stream, tell, nullptr));
         CHECK(cudaEventRecord(event, stream));
         kernel();
         CHECK(cudaEventSynchronize(event));
         while (!told) std::this_thread::yield();
         if (right) CHECK(cudaStreamSynchronize(stream));
     }},
    {"value",
     [](bool right) {
         static unsigned *flag = nullptr, value = 0;
         if (!flag) {
             CHECK(cudaMalloc((void **)&flag, 4));
             CHECK(cudaMemset(flag, 0, 4));
         }
         value++;
         if (right) kernel();
         CHECK(entry("cuStreamWriteValue32")(stream, (CUdeviceptr)flag, value, 0));
         if (!right) kernel();
         CHECK(entry("cuStreamWaitValue32")(aside, (CUdeviceptr)flag, value, CU_STREAM_WAIT_VALUE_EQ));
         CHECK(cudaStreamSynchronize(aside));
     }},
    {"attach",
     [](bool right) {
         kernel();
         CHECK(cudaStreamAttachMemAsync(stream, memory, 0, cudaMemAttachGlobal));
         if (right) CHECK(cudaStreamSynchronize(stream));
     }},
};

static void touch(bool stores) {
    if (stores) seen_by_host[16] = 2;
    else (void)seen_by_host[16];
}
static void begin() {
    size += 4096;
    CHECK(cudaMallocManaged((void **)&memory, size));
    seen_by_host = memory;
}
// A call with the address of the memory where it would look for arguments that it does not take. Each case launches the
// kernel from a line of its own: findings of one place are one.
#define CALL(name, call)                                                                                               \
    {                                                                                                                  \
        name, [](bool right) {                                                                                         \
            kernel();                                                                                                  \
            if (right) CHECK(cudaStreamSynchronize(stream));                                                           \
            long there = (long)memory + 64;                                                                            \
            call;                                                                                                      \
        }                                                                                                              \
    }
static int word;
static unsigned cpu, node;
static struct sysinfo info;
static const Way CALLS[] = {
    CALL("futex_wake", syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, there, there, there)),
    CALL("futex_wake_bitset", syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 1, there, there, 1)),
    CALL("gettid", syscall(SYS_gettid, there, there, there, there, there, there)),
    CALL("sysinfo", syscall(SYS_sysinfo, &info, there, there, there, there, there)),
    CALL("getcpu", syscall(SYS_getcpu, &cpu, &node, 0, there, there, there)),
    CALL("fcntl_by_number", syscall(SYS_fcntl, 1, F_GETFL, there, there, there, there)),
    CALL("fcntl", fcntl(1, F_GETFL, there)),
    CALL("fcntl_getfd", fcntl(1, F_GETFD, there)),
    CALL("ioctl", ioctl(-1, FIOCLEX, there)),
    CALL("prctl", prctl(PR_GET_DUMPABLE, there, there, there, there)),
    CALL("semctl", semctl(-1, 0, GETVAL, there)),
    CALL("mq_open", mq_open("/streamsan-none", O_RDONLY, there, there)),
    CALL("open", close(open("/dev/null", O_RDONLY, there))),
};

int main(int count, char **words) {
    std::string what = count > 1 ? words[1] : "idle";
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    std::thread others[OTHERS];
    for (std::thread &thread : others) thread = std::thread(other, what);
    if (what == "long") {
        size = 15 * 4096;
        begin();
        set<<<1, 4, 0, stream>>>(memory + size - 4);
        for (size_t i = 0; i < 12 * 4096; i++) (void)((volatile char *)memory)[i];
        CHECK(cudaStreamSynchronize(stream));
    }
    for (int bits = 0; bits < 4 && what != "long"; bits++) {
        bool stores = bits & 1, right = bits & 2;
        auto each = [&](const Way &way) {
            begin();
            for (int round = 0; round < ROUNDS; round++) {
                way.run(right);
                touch(stores);
                CHECK(cudaStreamSynchronize(stream));
            }
            printf("%zu %s %s %s\n", size, right ? "clean" : "race", way.name, stores ? "store" : "load");
        };
        if (what == "loops")
            for (const Loop &loop : LOOPS) {
                begin();
                loop.run(right, stores);
                CHECK(cudaStreamSynchronize(stream));
                printf("%zu %s %s %s\n", size, right ? "clean" : "race", loop.name, stores ? "store" : "load");
            }
        else if (what == "arguments")
            for (const Way &call : CALLS) each(call);
        else
            for (const Way &way : WAYS) each(way);
    }
    over = 1;
    for (std::thread &thread : others) thread.join();
    puts("done");
    return 0;
}
