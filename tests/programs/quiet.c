/* A program without CUDA. Prints what would differ if anything were started for it: descriptors, threads, shared memory. */
#define MINI_IMPLEMENTS
#include "common.h"
#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int entries(const char *path) {
    int n = 0;
    DIR *folder = opendir(path);
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

int main(int argc, char **argv) {
    /* Looks names up as others do, also one of the driver where there is no driver. */
    REQUIRE(dlsym(RTLD_DEFAULT, "getpid") != 0);
    if (argc > 1) REQUIRE(dlsym(RTLD_DEFAULT, "no_such_function") == 0);
    int rings = 0, drivers = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    while (fgets(line, sizeof line, maps)) {
        rings += strstr(line, "streamsan-ring") != 0;
        drivers += strstr(line, "libcuda") != 0;
    }
    fclose(maps);
    int status;
    errno = 0;
    int children = wait(&status) != -1 || errno != ECHILD;
    printf("descriptors %d threads %d rings %d drivers %d children %d\n", entries("/proc/self/fd"),
           entries("/proc/self/task"), rings, drivers, children);
    return 0;
}
