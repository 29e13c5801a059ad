/* Two host threads, one buffer. The first fills it on a stream of its own and waits for that; the second copies from it on another
 * stream. How the first tells the second is the argument: by a mutex, a condition variable, a semaphore, a barrier, a read-write lock,
 * by making it, by ending, by what runs once, or by a flag in memory that no library knows of ("flag"). Some of them in several forms.
 *
 *   host_order HOW [unseen]          unseen: the second waits for the flag instead */
#include "common.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <threads.h>
#include <time.h>

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

static pthread_spinlock_t spin;
static mtx_t c11_mutex;
static cnd_t c11_condition;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag c11_once = ONCE_FLAG_INIT;
static pthread_key_t key;
static struct timespec late, later; /* By the clock of the day, and by the other one. */
static int unseen;

static int is(const char *name) { return strcmp(how, name) == 0; }
static int begins(const char *name) { return strncmp(how, name, strlen(name)) == 0; }

static void fill(void) {
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemsetD8Async(buffer, 1, 4096, first));
    CHECK(cuStreamSynchronize(first));
}

static void use(void) {
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemcpyDtoDAsync_v2(copy, buffer, 4096, second));
}

static void fill_and_tell(void) {
    fill();
    atomic_store_explicit(&happened, 1, memory_order_relaxed);
}
static void nothing(void) {}
static void fill_late(void *unused) {
    (void)unused;
    fill_and_tell();
}

static void *fills(void *unused) {
    (void)unused;
    if (is("once")) pthread_once(&once, fill_and_tell);
    if (is("C11 once")) call_once(&c11_once, fill_and_tell);
    if (is("ending, destructor")) {
        pthread_setspecific(key, &key);
        return 0;
    }
    if (is("once") || is("C11 once")) return 0;
    fill();
    if (is("spin lock")) {
        pthread_spin_lock(&spin);
        is_ready = 1;
        pthread_spin_unlock(&spin);
    }
    if (begins("C11 mutex") || begins("C11 condition")) {
        mtx_lock(&c11_mutex);
        is_ready = 1;
        if (begins("C11 condition")) cnd_signal(&c11_condition);
        mtx_unlock(&c11_mutex);
    }
    if (begins("mutex") || begins("condition")) {
        pthread_mutex_lock(&mutex);
        is_ready = 1;
        if (begins("condition")) pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    if (begins("lock")) {
        pthread_rwlock_wrlock(&lock);
        is_ready = 1;
        pthread_rwlock_unlock(&lock);
    }
    if (begins("semaphore")) sem_post(&semaphore);
    atomic_store_explicit(&happened, 1, memory_order_relaxed);
    if (is("barrier")) pthread_barrier_wait(&barrier);
    if (is("ending, exit")) pthread_exit(0);
    if (is("C11 ending, exit")) thrd_exit(0);
    while (is("ending, cancelled")) pause();
    return 0;
}
static int c11_fills(void *unused) {
    fills(unused);
    return 0;
}

static void *uses(void *unused) {
    (void)unused;
    if (begins("condition") && !unseen) {
        pthread_mutex_lock(&mutex);
        while (!is_ready)
            if (is("condition, timed")) pthread_cond_timedwait(&condition, &mutex, &late);
            else if (is("condition, by a clock")) pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &later);
            else pthread_cond_wait(&condition, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    if (begins("C11 condition") && !unseen) {
        mtx_lock(&c11_mutex);
        while (!is_ready)
            if (is("C11 condition, timed")) cnd_timedwait(&c11_condition, &c11_mutex, &late);
            else cnd_wait(&c11_condition, &c11_mutex);
        mtx_unlock(&c11_mutex);
    }
    if (is("semaphore") && !unseen) sem_wait(&semaphore);
    if (is("semaphore, timed") && !unseen) sem_timedwait(&semaphore, &late);
    if (is("semaphore, by a clock") && !unseen) sem_clockwait(&semaphore, CLOCK_MONOTONIC, &later);
    if (is("barrier")) pthread_barrier_wait(&barrier);
    while (!is("making") && !atomic_load_explicit(&happened, memory_order_relaxed)) usleep(100);
    if (begins("mutex") && !unseen) {
        if (is("mutex, timed")) pthread_mutex_timedlock(&mutex, &late);
        else if (is("mutex, by a clock")) pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later);
        else if (is("mutex, tried")) while (pthread_mutex_trylock(&mutex)) usleep(100);
        else pthread_mutex_lock(&mutex);
        REQUIRE(is_ready);
        pthread_mutex_unlock(&mutex);
    }
    if (begins("lock") && !unseen) {
        if (is("lock, timed")) pthread_rwlock_timedrdlock(&lock, &late);
        else if (is("lock, by a clock")) pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &later);
        else if (is("lock, timed write")) pthread_rwlock_timedwrlock(&lock, &late);
        else if (is("lock, write by a clock")) pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &later);
        else pthread_rwlock_rdlock(&lock);
        REQUIRE(is_ready);
        pthread_rwlock_unlock(&lock);
    }
    if (is("spin lock") && !unseen) {
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
    }
    if (begins("C11 mutex") && !unseen) {
        if (is("C11 mutex, timed")) mtx_timedlock(&c11_mutex, &late);
        else if (is("C11 mutex, tried")) while (mtx_trylock(&c11_mutex)) usleep(100);
        else mtx_lock(&c11_mutex);
        mtx_unlock(&c11_mutex);
    }
    if (is("once") && !unseen) pthread_once(&once, nothing);
    if (is("C11 once") && !unseen) call_once(&c11_once, nothing);
    use();
    return 0;
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "flag";
    unseen = argc > 2;
    clock_gettime(CLOCK_REALTIME, &late);
    clock_gettime(CLOCK_MONOTONIC, &later);
    late.tv_sec += 60, later.tv_sec += 60;
    pthread_spin_init(&spin, 0);
    mtx_init(&c11_mutex, mtx_timed);
    cnd_init(&c11_condition);
    pthread_key_create(&key, fill_late);
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
    } else if (begins("ending") || begins("C11 ending")) {
        if (begins("C11")) REQUIRE(thrd_create(&one, c11_fills, 0) == thrd_success);
        else REQUIRE(pthread_create(&one, 0, fills, 0) == 0);
        while ((unseen || is("ending, cancelled")) && !atomic_load_explicit(&happened, memory_order_relaxed)) usleep(100);
        if (is("ending, cancelled")) pthread_cancel(one);
        if (unseen) pthread_detach(one);
        else if (begins("C11")) thrd_join(one, 0);
        else if (is("ending, tried")) while (pthread_tryjoin_np(one, 0)) usleep(100);
        else if (is("ending, timed")) REQUIRE(pthread_timedjoin_np(one, 0, &late) == 0);
        else if (is("ending, by a clock")) REQUIRE(pthread_clockjoin_np(one, 0, CLOCK_MONOTONIC, &later) == 0);
        else pthread_join(one, 0);
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
