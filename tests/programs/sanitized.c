/* What a runtime for -fsanitize=thread has to perform: atomic operations of all sizes, and the memory
 * functions. Compiled with that option, the program compares with what it works out itself, and
 * prints `right`. With the argument `cuda` it has work pending on memory that the host touches. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(what)                                                                                                 \
    do {                                                                                                              \
        if (!(what)) {                                                                                                \
            printf("%d: not so: %s\n", __LINE__, #what);                                                              \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

#define OPERATIONS(type, name)                                                                                        \
    static void name(type *p, type a, type b) {                                                                       \
        type expected = a;                                                                                            \
        __atomic_store_n(p, a, __ATOMIC_RELEASE);                                                                     \
        REQUIRE(__atomic_load_n(p, __ATOMIC_ACQUIRE) == a);                                                           \
        REQUIRE(__atomic_exchange_n(p, b, __ATOMIC_ACQ_REL) == a && *p == b);                                         \
        REQUIRE(__atomic_fetch_add(p, a, __ATOMIC_RELAXED) == b && *p == (type)(a + b));                              \
        REQUIRE(__atomic_fetch_sub(p, a, __ATOMIC_SEQ_CST) == (type)(a + b) && *p == b);                              \
        REQUIRE(__atomic_fetch_and(p, a, __ATOMIC_SEQ_CST) == b && *p == (type)(a & b));                              \
        REQUIRE(__atomic_fetch_or(p, b, __ATOMIC_SEQ_CST) == (type)(a & b) && *p == b);                               \
        REQUIRE(__atomic_fetch_xor(p, a, __ATOMIC_SEQ_CST) == b && *p == (type)(a ^ b));                              \
        REQUIRE(__atomic_fetch_nand(p, b, __ATOMIC_SEQ_CST) == (type)(a ^ b) && *p == (type)~((a ^ b) & b));          \
        __atomic_store_n(p, b, __ATOMIC_SEQ_CST);                                                                     \
        REQUIRE(!__atomic_compare_exchange_n(p, &expected, a, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));                \
        REQUIRE(expected == b && *p == b);                                                                            \
        REQUIRE(__atomic_compare_exchange_n(p, &expected, a, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED) && *p == a);      \
    }

typedef unsigned __int128 wide;
OPERATIONS(uint8_t, atomic1)
OPERATIONS(uint16_t, atomic2)
OPERATIONS(uint32_t, atomic4)
OPERATIONS(uint64_t, atomic8)
OPERATIONS(wide, atomic16)

static uint64_t counter;

static void *count(void *unused) {
    (void)unused;
    for (int i = 0; i < 20000; i++) __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    return NULL;
}

struct large {
    char bytes[200];
};

static void exercise(char *memory, size_t size) {
    wide value = ((wide)0x1122334455667788u << 64) | 0x99aabbccddeeff00u, other = ~value / 3;
    memset(memory, 7, size);
    for (size_t i = 0; i < size; i++) REQUIRE(memory[i] == 7);
    for (size_t i = 0; i < size; i++) memory[i] = (char)(i * 31);
    char *copy = malloc(size);
    memcpy(copy, memory, size);
    REQUIRE(memcmp(copy, memory, size) == 0);
    memmove(memory + 3, memory, size - 3);
    for (size_t i = 0; i < size - 3; i++) REQUIRE(memory[i + 3] == copy[i]);
    memmove(memory, memory + 3, size - 3);
    REQUIRE(memcmp(copy, memory, size - 3) == 0);
    REQUIRE(memcmp("abc", "abd", 3) < 0);
    *(struct large *)(memory + 256) = *(struct large *)(copy + 17);
    REQUIRE(memcmp(memory + 256, copy + 17, sizeof(struct large)) == 0);
    atomic1((uint8_t *)memory, (uint8_t)value, (uint8_t)other);
    atomic2((uint16_t *)memory, (uint16_t)value, (uint16_t)other);
    atomic4((uint32_t *)memory, (uint32_t)value, (uint32_t)other);
    atomic8((uint64_t *)memory, (uint64_t)value, (uint64_t)other);
    atomic16((wide *)memory, value, other);
    free(copy);
}

int main(int argc, char **argv) {
    static char ordinary[8192] __attribute__((aligned(64)));
    exercise(ordinary, sizeof ordinary);
    if (argc > 1 && !strcmp(argv[1], "cuda")) {
        int (*init)(unsigned), (*retain)(void **, int), (*enter)(void *), (*pinned)(void **, size_t),
            (*device)(uint64_t *, size_t), (*upload)(uint64_t, const void *, size_t, void *), (*sync)(void);
        void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *memory;
        uint64_t there;
        REQUIRE(driver);
        *(void **)&init = dlsym(driver, "cuInit");
        *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
        *(void **)&enter = dlsym(driver, "cuCtxSetCurrent");
        *(void **)&pinned = dlsym(driver, "cuMemAllocHost_v2");
        *(void **)&device = dlsym(driver, "cuMemAlloc_v2");
        *(void **)&upload = dlsym(driver, "cuMemcpyHtoDAsync_v2");
        *(void **)&sync = dlsym(driver, "cuCtxSynchronize");
        REQUIRE(init && retain && enter && pinned && device && upload && sync);
        REQUIRE(!init(0) && !retain(&context, 0) && !enter(context) && !pinned(&memory, 1 << 16));
        REQUIRE(!device(&there, 4096) && !upload(there, (char *)memory + 16384, 4096, NULL));
        exercise(memory, 8192);
        exercise(ordinary, sizeof ordinary);
        REQUIRE(!sync());
    }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) REQUIRE(!pthread_create(&threads[i], NULL, count, NULL));
    for (int i = 0; i < 4; i++) REQUIRE(!pthread_join(threads[i], NULL));
    REQUIRE(counter == 80000);
    puts("right");
    return 0;
}
