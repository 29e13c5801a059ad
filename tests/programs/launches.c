/* Launches a kernel N times (0: for ever), its parameters being the number of the stream and of the launch. After each launch it
 * acknowledges on standard output: 4 bytes, the count so far. The first 4 bytes are its process id.
 *   launches N [CODE]   ends with CODE */
#include "common.h"

int main(int argc, char **argv) {
    unsigned n = argc > 1 ? strtoul(argv[1], 0, 10) : 0;
    CUfunction f = begin("count_4_4");
    CUstream s;
    CHECK(cuStreamCreate(&s, 1));
    unsigned pid = getpid();
    if (write(1, &pid, 4) != 4) return 96;
    for (unsigned i = 0; n == 0 || i < n; i++) {
        launch2(f, s, 0, i);
        unsigned done = i + 1;
        if (write(1, &done, 4) != 4) return 96;
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
