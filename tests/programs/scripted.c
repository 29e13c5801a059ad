/* Makes the calls of the driver that a test wrote down: see tests/src/scripted.rs.
 *
 * scripted CALLS IMAGE: IMAGE is mapped where the arguments point to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGE ((void *)0x100000000000)
enum { REALLY = -1, ARGUMENTS = 16 };
struct Call { char symbol[64]; int64_t answer, wanted; uint64_t argument[ARGUMENTS]; };
typedef int (*Any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                   uint64_t, uint64_t, uint64_t, uint64_t);

static void *library;
static void *find(const char *name) {
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "no %s\n", name), exit(2);
    return found;
}

static void *contents(const char *path, void *at, size_t *bytes) {
    struct stat about;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &about)) perror(path), exit(2);
    *bytes = about.st_size;
    void *mapped = mmap(at, about.st_size ? about.st_size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | (at ? MAP_FIXED_NOREPLACE : 0), file, 0);
    if (mapped == MAP_FAILED || (at && mapped != at)) perror("mmap"), exit(2);
    close(file);
    return mapped;
}

int main(int argc, char **argv) {
    size_t bytes, unused;
    struct Call *calls = contents(argv[1], 0, &bytes);
    contents(argv[2], IMAGE, &unused);
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror()), exit(2);
    void (*answer)(const char *, int) = find("fake_answer");
    void *context;
    ((int (*)(unsigned))find("cuInit"))(0);
    ((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context, 0);
    ((int (*)(void *))find("cuCtxSetCurrent"))(context);
    for (struct Call *call = calls; (char *)call < (char *)calls + bytes; call++) {
        uint64_t *a = call->argument;
        Any function = find(call->symbol);
        if (call->answer != REALLY) answer(call->symbol, call->answer);
        int got = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
        answer(0, 0);
        if (got != call->wanted) printf("%zu: %s answered %d\n", call - calls, call->symbol, got);
    }
    puts("done");
    return 0;
}
