// Asks the driver and the runtime what has a defined answer (errors of wrong arguments, attributes, what a capture allows, what stays
// broken after a fault) and prints the answers, to be compared: a GPU's are kept in answers.h200.txt, the simulated one must give the same.
// Usage: answers [SECTION]. Each section runs in a process of its own, for some break what comes after.
// Build: nvcc -O2 -std=c++17 -arch=sm_90 answers.cu -lcuda -o answers
#include "contexts.h"
#include "graphs.h"
#include "kernels.h"
#include "memory.h"
#include "streams.h"
#include <sys/wait.h>

static const Section SECTIONS[] = {
    {"before_init", before_init}, {"devices", devices}, {"limits", limits}, {"contexts", contexts},
    {"allocations", allocations}, {"driver_allocations", driver_allocations}, {"copies", copies}, {"pointers", pointers},
    {"pools", pools}, {"mapped_memory", mapped_memory}, {"shared_with_others", shared_with_others}, {"arrays", arrays},
    {"streams", streams}, {"events", events}, {"host_functions", host_functions}, {"memory_operations", memory_operations},
    {"captures", captures}, {"building", building}, {"executing", executing}, {"graph_memory", graph_memory}, {"discarded_captures", discarded_captures}, {"launches", launches}, {"attributes", attributes},
    {"modules", modules}, {"last_error", last_error}, {"failed_assert", failed_assert}, {"trapped", trapped},
    {"illegal_address", illegal_address}, {"misaligned", misaligned},
};

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
    for (const Section &section : SECTIONS) {
        if (argc > 1 && strcmp(argv[1], section.name)) continue;
        printf("[%s]\n", section.name);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            section.run();
            fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) printf("  ended by signal %d\n", WTERMSIG(status));
        else if (WEXITSTATUS(status)) printf("  ended with %d\n", WEXITSTATUS(status));
    }
}
