/* Opens a library with RTLD_DEEPBIND and lets it work with the driver of a name. */
#define MINI_IMPLEMENTS
#include "common.h"

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    REQUIRE(library);
    int (*work)(const char *) = dlsym(library, "work");
    REQUIRE(work);
    CHECK(work(argv[2]));
    puts("launched");
    return 0;
}
