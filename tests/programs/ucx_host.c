/* Opens the library that its first word names, for itself alone, and runs it: as NIXL opens its plugins, which bring a UCX of their own. */
#include "common.h"

int main(int argc, char **argv) {
    REQUIRE(argc > 2);
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) fprintf(stderr, "%s\n", dlerror());
    REQUIRE(plugin != 0);
    int (*run)(int, char **) = (int (*)(int, char **))dlsym(plugin, "run");
    REQUIRE(run != 0);
    return run(argc - 1, argv + 1);
}
