// Switches over a parameter, which compilers make jump tables of: by the type of the parameter, the numbers of the cases,
// and where the switch stands. Without an argument each kernel is launched with each number. "racy" and "clean": two
// launches of each form on two streams that nothing orders, whose cases touch the same element or none; each pair has
// data with a size that no other has, and the program prints that size and the form.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

constexpr int N = 64, PARTS = 10;
enum Form { PLAIN, NO_DEFAULT, LOOP, NESTED, FALLS_THROUGH, GUARDED, FORMS };
static const char *const forms[] = {"plain", "without default", "in a loop", "nested", "falls through", "guarded"};
static size_t count;
static cudaStream_t a, b;

// Part k of the data belongs to case k. (Cases that do the same would become one.)
template <int BASE, bool HOLES, bool DEFAULT, bool FALLS, class T> __device__ void choose(int *data, T way, int i) {
    int *p = data + i;
    switch (way) {
    case BASE + 0: p[0 * N] = 1; break;
    case BASE + 1: atomicAdd(p + 1 * N, 2); break;
    case BASE + 2: p[2 * N] *= 3; if (FALLS) p[8 * N] = 1; else break;
    case BASE + 3: atomicOr(p + 3 * N, 4); break;
    case BASE + (HOLES ? 6 : 4): p[4 * N] = p[9 * N] + 5; break;
    case BASE + (HOLES ? 7 : 5): atomicMax(p + 5 * N, 6); break;
    case BASE + (HOLES ? 9 : 6): p[6 * N] -= 7; break;
    case BASE + (HOLES ? 12 : 7): atomicExch(p + 7 * N, 8); break;
    default: if (DEFAULT) p[8 * N] = 9;
    }
}

template <int FORM, int BASE, bool HOLES, class T> __global__ void kernel(int *data, T way, T inner, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    if (FORM == LOOP) {
        for (int turn = 0; turn < turns; turn++) choose<BASE, HOLES, true, false>(data + turn * PARTS * N, way, i);
    } else if (FORM == NESTED) {
        switch (inner) {
        case BASE + 0: choose<BASE, HOLES, true, false>(data, way, i); break;
        case BASE + 1: data[9 * N + i] = 1; break;
        case BASE + 2: atomicAdd(data + 8 * N + i, 1); break;
        case BASE + 3: data[7 * N + i] *= 2; break;
        case BASE + 4: atomicOr(data + 6 * N + i, 2); break;
        default: choose<BASE, HOLES, false, false>(data + PARTS * N, way, i);
        }
    } else if (FORM == GUARDED) {
        if (turns > 1) choose<BASE, HOLES, true, false>(data, way, i);
    } else {
        choose<BASE, HOLES, FORM == PLAIN, FORM == FALLS_THROUGH>(data, way, i);
    }
}

constexpr size_t SIZE = 3 * PARTS * N * sizeof(int);

template <int FORM, int BASE, bool HOLES, class T> void all(int *data) {
    for (int way = -2; way < 15; way++)
        for (int inner = way == 2 ? -1 : 0; inner < (FORM == NESTED ? 6 : 1); inner++)
            kernel<FORM, BASE, HOLES, T><<<1, 96, 0, a>>>(data, T(BASE + way), T(BASE + inner), 2 + way % 2);
    CHECK(cudaDeviceSynchronize());
}

// (A finding is one pair of call sites.)
template <int FORM, int BASE, bool HOLES, class T> __attribute__((noinline)) void pair(bool racy) {
    size_t size = SIZE + 16 * count++;
    int *data;
    CHECK(cudaMalloc(&data, size));
    CHECK(cudaMemset(data, 0, size));
    CHECK(cudaDeviceSynchronize());
    kernel<FORM, BASE, HOLES, T><<<1, N, 0, a>>>(data, T(BASE + 2), T(BASE), 2);
    kernel<FORM, BASE, HOLES, T><<<1, N, 0, b>>>(data, T(BASE + (racy ? 2 : 3)), T(BASE), 2);
    CHECK(cudaDeviceSynchronize());
    printf("%zu %s from %d%s\n", size, forms[FORM], BASE, HOLES ? " with holes" : "");
}

template <int FORM, int BASE, bool HOLES, class T> void member(const char *how, int *data) {
    if (how) pair<FORM, BASE, HOLES, T>(!strcmp(how, "racy"));
    else all<FORM, BASE, HOLES, T>(data);
}
template <int FORM> void members(const char *how, int *data) {
    member<FORM, 0, false, int>(how, data), member<FORM, -3, true, int>(how, data), member<FORM, 1000, true, unsigned>(how, data);
    member<FORM, 2, false, unsigned char>(how, data), member<FORM, 0, true, long long>(how, data);
    if constexpr (FORM + 1 < FORMS) members<FORM + 1>(how, data);
}

int main(int argc, char **arguments) {
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    int *data;
    CHECK(cudaMalloc(&data, SIZE));
    CHECK(cudaMemset(data, 0, SIZE));
    members<0>(argc > 1 ? arguments[1] : nullptr, data);
    puts("done");
    return 0;
}
