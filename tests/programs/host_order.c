/* Two host threads, one buffer. The first fills it on a stream of its own and waits for that; the second copies from it on another
 * stream. How the first tells the second is the argument: by a mutex, a condition variable, a semaphore, a barrier, a read-write lock,
 * by making it, by ending, or by a flag in memory that no library knows of ("flag").
 *
 *   host_order HOW */
#include "common.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

static const char *how;
static CUcontext context;
static CUdeviceptr buffer, copy;
static CUstream first, second;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int is_ready;
/* Tells in every case, so that the two always run one after the other; relaxed, for it is not what orders them. */
static atomic_int happened;

static int is(const char *name) { return strcmp(how, name) == 0; }

static void fill(void) {
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemsetD8Async(buffer, 1, 4096, first));
    CHECK(cuStreamSynchronize(first));
}

static void use(void) {
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemcpyDtoDAsync_v2(copy, buffer, 4096, second));
}

static void *fills(void *unused) {
    (void)unused;
    fill();
    if (is("mutex") || is("condition")) {
        pthread_mutex_lock(&mutex);
        is_ready = 1;
        if (is("condition")) pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    if (is("lock")) {
        pthread_rwlock_wrlock(&lock);
        is_ready = 1;
        pthread_rwlock_unlock(&lock);
    }
    if (is("semaphore")) sem_post(&semaphore);
    atomic_store_explicit(&happened, 1, memory_order_relaxed);
    if (is("barrier")) pthread_barrier_wait(&barrier);
    return 0;
}

static void *uses(void *unused) {
    (void)unused;
    if (is("condition")) {
        pthread_mutex_lock(&mutex);
        while (!is_ready) pthread_cond_wait(&condition, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    if (is("semaphore")) sem_wait(&semaphore);
    if (is("barrier")) pthread_barrier_wait(&barrier);
    while (!is("making") && !atomic_load_explicit(&happened, memory_order_relaxed)) usleep(100);
    if (is("mutex")) {
        pthread_mutex_lock(&mutex);
        REQUIRE(is_ready);
        pthread_mutex_unlock(&mutex);
    }
    if (is("lock")) {
        pthread_rwlock_rdlock(&lock);
        REQUIRE(is_ready);
        pthread_rwlock_unlock(&lock);
    }
    use();
    return 0;
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "flag";
    begin("f_4_4");
    CHECK(cuCtxGetCurrent(&context));
    CHECK(cuMemAlloc_v2(&buffer, 4096));
    CHECK(cuMemAlloc_v2(&copy, 4096));
    CHECK(cuStreamCreate(&first, 1));
    CHECK(cuStreamCreate(&second, 1));
    pthread_barrier_init(&barrier, 0, 2);
    sem_init(&semaphore, 0, 0);
    pthread_t one, two;
    if (is("making")) {
        fill();
        REQUIRE(pthread_create(&two, 0, uses, 0) == 0);
    } else if (is("ending")) {
        REQUIRE(pthread_create(&one, 0, fills, 0) == 0);
        pthread_join(one, 0);
        use();
        puts("done");
        return 0;
    } else {
        REQUIRE(pthread_create(&two, 0, uses, 0) == 0);
        REQUIRE(pthread_create(&one, 0, fills, 0) == 0);
        pthread_join(one, 0);
    }
    pthread_join(two, 0);
    CHECK(cuStreamSynchronize(second));
    puts("done");
    return 0;
}
