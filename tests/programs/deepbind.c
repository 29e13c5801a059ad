/* Opens a library with RTLD_DEEPBIND and lets it work. */
#define MINI_IMPLEMENTS
#include "common.h"

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    REQUIRE(library);
    int (*work)(void) = dlsym(library, "work");
    REQUIRE(work);
    CHECK(work());
    puts("launched");
    return 0;
}
