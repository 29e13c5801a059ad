/* The calls of a training step of an LSTM of cuDNN's with a CTC loss, for what their analysis costs: real kernels (lstm_kernels.cu) on the fake
 * driver, which runs none of them. Four layers of a hundred steps: each step clears the locks of its product, launches it and a cell, and
 * hands over to another stream by an event that is made and destroyed for that.
 *   lstm IMAGE STEPS [moving]       prints the number of operations
 * With `moving` each step has its memory elsewhere, as a caching allocator may hand it out: launches of a step differ from those of the one
 * before in pointers, and among each other in numbers. */
#define MINI_IMPLEMENTS
#include "../common.h"

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
MINI_API(POINTER)

enum { CELL, BACK, GEMM, SUM, SCALE, ALPHA, KERNELS };
static const char *const names[KERNELS] = {"cell_8_8_8_8_8_4_4_4", "back_8_8_8_8_4_4_4", "gemm_8_8_8_8_4_4_4_4_4_4",
                                           "sum_8_8_4", "scale_8_8_4_4", "alpha_8_8_8_4_4_4"};
enum { LAYERS = 4, TIMES = 100, STREAMS = 3 };
static CUfunction kernels[KERNELS];
static CUstream streams[STREAMS];
static unsigned long operations;

static void launch(int kernel, unsigned x, unsigned z, unsigned threads, unsigned rows, CUstream stream, void **parameters) {
    CHECK(p_cuLaunchKernel(kernels[kernel], x, 1, z, threads, rows, 1, 0, stream, parameters, 0));
    operations++;
}
static void hand_over(CUstream from, CUstream to) {
    CUevent event;
    CHECK(p_cuEventCreate(&event, 2));
    CHECK(p_cuEventRecord(event, from));
    CHECK(p_cuStreamWaitEvent(to, event, 0));
    CHECK(p_cuEventDestroy_v2(event));
    operations += 4;
}
static size_t more;
static CUdeviceptr room(size_t bytes) {
    CUdeviceptr at;
    CHECK(p_cuMemAlloc_v2(&at, bytes + more));
    return at;
}

int main(int argc, char **argv) {
    REQUIRE(argc > 2);
    int steps = atoi(argv[2]);
    size_t by = argc > 3 && !strcmp(argv[3], "moving") ? 512 : 0;
    more = steps * by;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define LOOK(name, arguments) p_##name = dlsym(driver, #name);
    MINI_API(LOOK)
    CUcontext context;
    CUmodule module;
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    static char image[1 << 20];
    FILE *file = fopen(argv[1], "rb");
    REQUIRE(file && fread(image, 1, sizeof image, file) > 0);
    CHECK(p_cuModuleLoadData(&module, image));
    for (int k = 0; k < KERNELS; k++) CHECK(p_cuModuleGetFunction(&kernels[k], module, names[k]));
    for (int k = 0; k < STREAMS; k++) CHECK(p_cuStreamCreate(&streams[k], 1));

    int hidden = 256, batch = 16, four = 4 * hidden;
    size_t state = sizeof(float) * hidden * batch;
    CUdeviceptr gates[LAYERS], h[LAYERS], c[LAYERS], weights[LAYERS], bias = room(four * sizeof(float)), dgates[LAYERS], dh[LAYERS], dc[LAYERS],
                locks = room(1 << 20), x = room(1 << 20), y = room(1 << 20), labels = room(1 << 16), alpha = room(1 << 20);
    for (int l = 0; l < LAYERS; l++) {
        gates[l] = room(TIMES * state * 4), h[l] = room(TIMES * state), c[l] = room(TIMES * state), dc[l] = room(state);
        weights[l] = room(sizeof(float) * hidden * four), dgates[l] = room(TIMES * state * 4), dh[l] = room(TIMES * state);
    }
    for (int step = 0; step < steps; step++) {
        for (int l = 0; l < LAYERS && step; l++) gates[l] += by, h[l] += by, c[l] += by, dc[l] += by, dgates[l] += by, dh[l] += by;
        if (step) x += by, y += by, alpha += by;
        for (int back = 0; back < 2; back++)
            for (int l = 0; l < LAYERS; l++) {
                CUstream stream = streams[l & 1];
                for (int n = 0; n < TIMES; n++) {
                    int t = (l & 1) != back ? TIMES - 1 - n : n, before = t ? t - 1 : 0;
                    CUdeviceptr lock = locks + 4096 * (n % 16 + 16 * l), own = c[l] + state * t, earlier = c[l] + state * before;
                    CHECK(p_cuMemsetD8Async(lock, 0, 256, stream));
                    operations++;
                    if (back) {
                        void *cell[] = {&dh[l], &own, &dgates[l], &dc[l], &hidden, &batch, &t};
                        launch(BACK, 16, 1, 256, 1, stream, cell);
                        CUdeviceptr from = dgates[l] + state * 4 * t, to = dh[l] + state * before;
                        void *product[] = {&from, &weights[l], &to, &lock, &batch, &hidden, &four, &four, &hidden, &hidden};
                        launch(GEMM, hidden / 16, 4, 16, 16, stream, product);
                    } else {
                        CUdeviceptr from = h[l] + state * before, to = gates[l] + state * 4 * t;
                        void *product[] = {&from, &weights[l], &to, &lock, &batch, &four, &hidden, &hidden, &four, &four};
                        launch(GEMM, four / 16, 4, 16, 16, stream, product);
                        void *cell[] = {&gates[l], &bias, &earlier, &own, &h[l], &hidden, &batch, &t};
                        launch(CELL, 16, 1, 256, 1, stream, cell);
                    }
                    if (l < 2 || n & 1) hand_over(stream, streams[(l + 1) & 1]);
                }
            }
        hand_over(streams[0], streams[2]);
        hand_over(streams[1], streams[2]);
        for (int t = 0; t < TIMES; t++) {
            int classes = 40, length = 30;
            void *loss[] = {&y, &labels, &alpha, &classes, &length, &t};
            launch(ALPHA, batch, 1, 64, 1, streams[2], loss);
        }
        for (int k = 0; k < 20; k++) {
            int n = 1000 + k * 16;
            float part = 1.f / (step + 1);
            void *scale[] = {&x, &y, &n, &part}, *sum[] = {&x, &y, &n};
            launch(SCALE, 16, 1, 128, 1, streams[2], scale);
            launch(SUM, 16, 1, 256, 1, streams[2], sum);
        }
        hand_over(streams[2], streams[0]);
        hand_over(streams[2], streams[1]);
        for (int k = 0; k < STREAMS; k++) CHECK(p_cuStreamSynchronize(streams[k]));
    }
    printf("{\"operations\": %lu}\n", operations);
    return 0;
}
