/* Look-ups that StreamSan must not disturb. Prints what must be the same with and without it. */
#define MINI_IMPLEMENTS
#include "common.h"

/* The version of the C library since which the processor has this memcpy. */
#ifdef __aarch64__
#define MEMCPY_VERSION "GLIBC_2.17"
#else
#define MEMCPY_VERSION "GLIBC_2.14"
#endif

int other_calls(void);
void *other_next(const char *name);
int cudnnCreate(void **handle);

static const char *base(void *address) {
    Dl_info info;
    return address && dladdr(address, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') + 1 : "nowhere";
}

/* Keeps a compiler from turning the look-up into a tail call of its own. */
static void *here_next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    __asm__ volatile("" ::: "memory");
    return found;
}

static void next(void) {
    /* The program's search goes on behind the program: it finds the library's function. The library's goes on behind the
     * library: it finds the C library's. */
    /* Through a pointer: a compiler knows atoi and would not call it. */
    int (*const volatile number)(const char *) = atoi;
    REQUIRE(number("41") == 41);
    REQUIRE(other_calls() == 1);
    printf("from the program: %s\n", base(here_next("atoi")));
    printf("from the library: %s\n", base(other_next("atoi")));
    printf("malloc: %s\n", base(other_next("malloc")));
    REQUIRE(other_next("other_calls") == 0);
    REQUIRE(here_next("other_calls") != 0);
    void *(*const volatile look)(void *, const char *) = dlsym;
    REQUIRE(look(RTLD_DEFAULT, "atoi") == here_next("atoi"));
    REQUIRE(dlvsym(RTLD_DEFAULT, "memcpy", MEMCPY_VERSION) != 0);
    REQUIRE(dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_77") == 0);
    puts(dlerror());
}

static void unknown(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
    dlerror();
    static const char *const names[] = {"cuNoSuchFunction", "cu", "cuda", "", "cuLaunchKernel_v9", "cuMemAlloc_v2_ptsz",
                                        "xcuLaunchKernel"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        REQUIRE(dlsym(driver, names[i]) == 0);
        const char *said = dlerror();
        REQUIRE(said);
        printf("%s: %s\n", names[i], strstr(said, "undefined symbol"));
        REQUIRE(!dlerror());
    }
    /* A library that does not have a function of the driver does not get it from us. */
    void *other = dlopen("liblookups_other.so", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(other);
    REQUIRE(dlsym(other, "cuLaunchKernel") == 0);
    printf("%s\n", strstr(dlerror(), "undefined symbol"));
    int (*getproc)(const char *, void **, int, uint64_t, int *) = dlsym(driver, "cuGetProcAddress_v2");
    void *found = &getproc;
    int status = 7;
    REQUIRE(getproc("cuNoSuchFunction", &found, 13000, 0, &status) == 500);
    REQUIRE(found == 0 && status == 1);
}

static void foreign(void) {
    void *handle = 0;
    REQUIRE(cudnnCreate(&handle) == 77 && handle);
    int (*found)(void **) = dlsym(RTLD_DEFAULT, "cudnnCreate");
    REQUIRE(found == cudnnCreate);
    void *other = dlopen("liblookups_other.so", RTLD_NOW | RTLD_NOLOAD);
    int (*own)(void) = dlsym(other, "cuMyOwnFunction");
    REQUIRE(own && own() == 79);
    found = dlsym(other, "cublasCreate_v2");
    REQUIRE(found && found(&handle) == 78);
    printf("%s %s\n", base(own), base(found));
}

static void tables(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*get)(const void **, const void *) = dlsym(driver, "cuGetExportTable");
    REQUIRE(get);
    const void *table = 0;
    char id[16] = {1, 2, 3};
    printf("%d\n", get(&table, id));
}

int main(int argc, char **argv) {
    const char *mode = argv[1];
    if (!strcmp(mode, "next")) next();
    else if (!strcmp(mode, "unknown")) unknown();
    else if (!strcmp(mode, "foreign")) foreign();
    else if (!strcmp(mode, "tables")) tables();
    else return 97;
    puts("done");
    return 0;
}
