// How questions are put to the driver and the runtime: every answer is one line, `question: answer`. An answer is the name of an
// error, a number, or a text; never an address or anything else that two runs would not answer alike.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

inline void ask(const char *question, cudaError_t answer) {
    // Most refusals are remembered as the thread's last error; some are not, and programs rely on either.
    cudaError_t last = cudaGetLastError();
    printf("  %s: %s", question, cudaGetErrorName(answer));
    if (last != answer) printf(" (last error: %s)", cudaGetErrorName(last));
    printf("\n");
}
inline void ask(const char *question, CUresult answer) {
    const char *name = nullptr;
    cuGetErrorName(answer, &name);
    printf("  %s: %s\n", question, name ? name : "a number without a name");
}
inline void ask(const char *question, const char *answer) { printf("  %s: %s\n", question, answer ? answer : "null"); }
inline void ask(const char *question, const std::string &answer) { ask(question, answer.c_str()); }
inline void ask(const char *question, bool answer) { printf("  %s: %s\n", question, answer ? "true" : "false"); }
template <class N> inline void ask(const char *question, N answer) { printf("  %s: %lld\n", question, (long long)answer); }

// The text of the call or expression is the question.
#define ASK(...) ask(#__VA_ARGS__, (__VA_ARGS__))

// What only prepares questions must work.
#define MUST(...)                                                                                                      \
    do {                                                                                                               \
        if ((int)(__VA_ARGS__) != 0) printf("  ! %s failed\n", #__VA_ARGS__), cudaGetLastError();                      \
    } while (0)

struct Section {
    const char *name;
    void (*run)();
};

__global__ void store(int *p, int v) { p[threadIdx.x + blockIdx.x * blockDim.x] = v; }

// Holds a stream until told to go on, so that "not ready" is an answer and no accident.
struct Gate {
    volatile int open = 0;
    static void wait(void *gate) {
        while (!((Gate *)gate)->open) usleep(100);
    }
    void close(cudaStream_t stream) { MUST(cudaLaunchHostFunc(stream, wait, this)); }
};
