/* Nanoseconds per synchronisation of host threads, in a program that uses CUDA: what --host-order threads adds to each.
 * Finds the driver by dlopen, so it runs on a GPU and against the fake driver alike.   locks COUNT */
#define MINI_IMPLEMENTS
#include "../common.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
MINI_API(POINTER)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static CUstream stream;
static CUdeviceptr memory;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void mutex(void) { pthread_mutex_lock(&lock), pthread_mutex_unlock(&lock); }
static void readers(void) { pthread_rwlock_rdlock(&table), pthread_rwlock_unlock(&table); }
static void posted(void) { sem_post(&semaphore), sem_wait(&semaphore); }
static void signalled(void) { pthread_cond_signal(&cond); }
static void *nothing(void *unused) { return unused; }
static void thread(void) {
    pthread_t t;
    REQUIRE(!pthread_create(&t, 0, nothing, 0) && !pthread_join(t, 0));
}
static void locked_set(void) {
    pthread_mutex_lock(&lock);
    CHECK(p_cuMemsetD8Async(memory, 1, 64, stream));
    pthread_mutex_unlock(&lock);
}

static double measure(void (*work)(void), unsigned count) {
    enum { BATCHES = 40 };
    double times[BATCHES];
    unsigned batch = count / BATCHES + 1;
    for (unsigned n = 0; n < BATCHES; n++) {
        double start = now();
        for (unsigned i = 0; i < batch; i++) work();
        times[n] = (now() - start) / batch;
        CHECK(p_cuStreamSynchronize(stream));
    }
    qsort(times, BATCHES, sizeof *times, ascending);
    return times[BATCHES / 2];
}

int main(int argc, char **argv) {
    unsigned count = argc > 1 ? atoi(argv[1]) : 40000;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define FIND(name, arguments) p_##name = (CUresult(*) arguments)dlsym(driver, #name);
    MINI_API(FIND)
    CUcontext context;
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuStreamCreate(&stream, 1));
    CHECK(p_cuMemAlloc_v2(&memory, 1024));
    REQUIRE(!sem_init(&semaphore, 0, 0));
    printf("{\"mutex lock + unlock\": %.2f, ", measure(mutex, count));
    printf("\"read lock + unlock\": %.2f, ", measure(readers, count));
    printf("\"semaphore post + wait\": %.2f, ", measure(posted, count));
    printf("\"condition signal\": %.2f, ", measure(signalled, count));
    printf("\"fill under a mutex\": %.2f, ", measure(locked_set, count / 4));
    printf("\"thread create + join\": %.2f}\n", measure(thread, count / 100));
    return 0;
}
