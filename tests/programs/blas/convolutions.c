/* Convolutions by cuDNN's graph interface, on two streams: `convolutions WHAT [racy]`.
   `forward`, `data`, `filter`: the convolution and its gradients, against loops; with the race an
   operand is uploaded on a stream that nobody waits for. `bias`: with a bias and ReLU behind it, in
   a graph. `stride`: of one tap every other element is read, and the others belong to another
   stream; with the race it writes one of the first. `matmul`: an operation that is not simulated. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *descriptor_t;
typedef struct Stream *stream_t;
int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpyAsync(void *, const void *, size_t, int, stream_t);
int cudaMemsetAsync(void *, int, size_t, stream_t);
int cudaDeviceSynchronize(void);
int cudaStreamCreateWithFlags(stream_t *, unsigned);
int cudaStreamSynchronize(stream_t);
int cudnnCreate(void **);
int cudnnSetStream(void *, stream_t);
int cudnnBackendCreateDescriptor(int, descriptor_t *);
int cudnnBackendDestroyDescriptor(descriptor_t);
int cudnnBackendSetAttribute(descriptor_t, int, int, int64_t, const void *);
int cudnnBackendGetAttribute(descriptor_t, int, int, int64_t, int64_t *, void *);
int cudnnBackendFinalize(descriptor_t);
int cudnnBackendExecute(void *, descriptor_t, descriptor_t);
int cudaStreamBeginCapture(stream_t, int);
int cudaStreamEndCapture(stream_t, void **);
int cudaGraphInstantiate(void **, void *, unsigned long long);
int cudaGraphLaunch(void *, stream_t);

enum { INT64 = 3, BOOLEAN = 2, FLOAT = 4, POINTER = 6, DESCRIPTOR = 15 };
enum { N = 2, C = 4, K = 6, GROUPS = 2, H = 7, W = 5, R = 3, P = 4, Q = 5 };

#define MUST(call) \
    do { \
        int status_ = (call); \
        if (status_) { fprintf(stderr, "line %d: status %d\n", __LINE__, status_); exit(3); } \
    } while (0)

static descriptor_t made(int kind) {
    descriptor_t descriptor;
    MUST(cudnnBackendCreateDescriptor(kind, &descriptor));
    return descriptor;
}

static void set(descriptor_t of, int name, int kind, int64_t count, const void *from) {
    MUST(cudnnBackendSetAttribute(of, name, kind, count, from));
}

static void refer(descriptor_t of, int name, descriptor_t to) { set(of, name, DESCRIPTOR, 1, &to); }

/* A tensor of floats, the channels last (`nhwc`) or in the order of its dimensions. */
static descriptor_t tensor(int64_t id, int64_t a, int64_t b, int64_t h, int64_t w, int nhwc, int virtual) {
    descriptor_t of = made(17);
    int64_t dims[] = {a, b, h, w}, last[] = {h * w * b, 1, w * b, b}, first[] = {b * h * w, h * w, w, 1}, align = 16;
    int kind = 0;
    char yes = 1;
    set(of, 901, 1, 1, &kind), set(of, 902, INT64, 4, dims), set(of, 903, INT64, 4, nhwc ? last : first);
    set(of, 906, INT64, 1, &id), set(of, 900, INT64, 1, &align);
    if (virtual) set(of, 907, BOOLEAN, 1, &yes);
    MUST(cudnnBackendFinalize(of));
    return of;
}

static descriptor_t convolution(int64_t stride, int64_t pad) {
    descriptor_t of = made(1);
    int64_t spatial = 2, ones[] = {1, 1}, strides[] = {stride, 1}, pads[] = {pad, pad};
    int kind = 0, crossed = 1;
    set(of, 100, 1, 1, &kind), set(of, 101, 7, 1, &crossed), set(of, 106, INT64, 1, &spatial);
    set(of, 102, INT64, 2, ones), set(of, 103, INT64, 2, strides), set(of, 104, INT64, 2, pads), set(of, 105, INT64, 2, pads);
    MUST(cudnnBackendFinalize(of));
    return of;
}

/* Forward 10, filter 11, data 12. `names` are the attributes of convolution, x, w and y. */
static descriptor_t operation(int kind, descriptor_t with, descriptor_t x, descriptor_t w, descriptor_t y) {
    static const int names[3][6] = {{700, 701, 702, 704, 703, 705}, {712, 713, 714, 716, 715, 717}, {706, 707, 708, 710, 709, 711}};
    const int *name = names[kind - 10];
    float alpha = 1, beta = 0;
    descriptor_t of = made(kind);
    set(of, name[0], FLOAT, 1, &alpha), set(of, name[1], FLOAT, 1, &beta), refer(of, name[2], with);
    refer(of, name[3], x), refer(of, name[4], w), refer(of, name[5], y);
    MUST(cudnnBackendFinalize(of));
    return of;
}

static descriptor_t pointwise(int mode, descriptor_t x, descriptor_t b, descriptor_t y) {
    descriptor_t with = made(0), of = made(13);
    int kind = 0;
    set(with, 0, 14, 1, &mode), set(with, 1, 1, 1, &kind);
    MUST(cudnnBackendFinalize(with));
    refer(of, 750, with), refer(of, 751, x), refer(of, 753, y);
    if (b) refer(of, 752, b);
    MUST(cudnnBackendFinalize(of));
    return of;
}

/* The plan of the first of the engines that the heuristics name. */
static descriptor_t plan_of(void *handle, descriptor_t *operations, int count) {
    descriptor_t graph = made(15), heuristics = made(4), configuration = made(3), plan = made(5);
    int mode = 3;
    int64_t found = 0, workspace = -1;
    set(graph, 800, 0, 1, &handle), set(graph, 801, DESCRIPTOR, count, operations);
    if (cudnnBackendFinalize(graph)) exit(4);
    refer(heuristics, 201, graph), set(heuristics, 200, 8, 1, &mode);
    MUST(cudnnBackendFinalize(heuristics));
    MUST(cudnnBackendGetAttribute(heuristics, 202, DESCRIPTOR, 0, &found, NULL));
    if (found != 1) exit(5);
    MUST(cudnnBackendGetAttribute(heuristics, 202, DESCRIPTOR, 1, &found, &configuration));
    set(plan, 400, 0, 1, &handle), refer(plan, 401, configuration);
    MUST(cudnnBackendFinalize(plan));
    MUST(cudnnBackendGetAttribute(plan, 402, INT64, 1, &found, &workspace));
    if (workspace != 0) exit(6);
    cudnnBackendDestroyDescriptor(graph), cudnnBackendDestroyDescriptor(heuristics), cudnnBackendDestroyDescriptor(configuration);
    return plan;
}

static void execute(void *handle, descriptor_t plan, int64_t count, int64_t *ids, void **at) {
    descriptor_t pack = made(16);
    set(pack, 1000, INT64, count, ids), set(pack, 1001, POINTER, count, at);
    MUST(cudnnBackendFinalize(pack));
    MUST(cudnnBackendExecute(handle, plan, pack));
    cudnnBackendDestroyDescriptor(pack);
}

enum { X = N * C * H * W, F = K * (C / GROUPS) * R * R, Y = N * K * P * Q };
static float x[X], f[F], y[Y], bias[K];

/* Every product of an element of x and one of the filter, and the element of y that it is a part of.
   Images and results have their channels last. */
static void products(void (*body)(int, int, int)) {
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            for (int p = 0; p < P; p++)
                for (int q = 0; q < Q; q++)
                    for (int c = 0; c < C / GROUPS; c++)
                        for (int r = 0; r < R; r++)
                            for (int s = 0; s < R; s++) {
                                int h = 2 * p + r - 1, w = q + s - 1, channel = k / (K / GROUPS) * (C / GROUPS) + c;
                                if (h < 0 || h >= H || w < 0 || w >= W) continue;
                                body(((n * H + h) * W + w) * C + channel, ((k * (C / GROUPS) + c) * R + r) * R + s,
                                     ((n * P + p) * Q + q) * K + k);
                            }
}

static float expected[X > Y ? X : Y];
static void forward(int i, int j, int o) { expected[o] += x[i] * f[j]; }
static void data(int i, int j, int o) { expected[i] += f[j] * y[o]; }
static void filter(int i, int j, int o) { expected[j] += x[i] * y[o]; }

static float *upload(const float *from, int count, stream_t on) {
    float *at, *there;
    cudaMalloc((void **)&at, count * sizeof(float)), cudaMalloc((void **)&there, count * sizeof(float));
    cudaMemcpy(there, from, count * sizeof(float), 1);
    cudaDeviceSynchronize();
    cudaMemcpyAsync(at, there, count * sizeof(float), 3, on);
    return at;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int racy = argc > 2;
    void *handle;
    stream_t work, other;
    cudaStreamCreateWithFlags(&work, 1), cudaStreamCreateWithFlags(&other, 1);
    MUST(cudnnCreate(&handle));
    MUST(cudnnSetStream(handle, work));
    for (int i = 0; i < X; i++) x[i] = (i * 7 + 3) % 11 - 5;
    for (int i = 0; i < F; i++) f[i] = (i * 5 + 1) % 7 - 3;
    for (int i = 0; i < Y; i++) y[i] = (i * 3 + 2) % 13 - 6;
    for (int i = 0; i < K; i++) bias[i] = i - 2;
    if (!strcmp(what, "stride")) { /* 8 x 1 elements, 1 tap, every other one. */
        descriptor_t of = operation(10, convolution(2, 0), tensor('x', 1, 1, 8, 1, 0, 0), tensor('w', 1, 1, 1, 1, 0, 0),
                                    tensor('y', 1, 1, 4, 1, 0, 0));
        float *in = upload(x, 8, work), *tap = upload(f, 1, work), *out = upload(y, 4, work);
        int64_t ids[] = {'x', 'w', 'y'};
        void *at[] = {in, tap, out};
        cudaDeviceSynchronize();
        execute(handle, plan_of(handle, &of, 1), 3, ids, at);
        cudaMemsetAsync(in + 1 + racy, 0, 4, other);
        cudaDeviceSynchronize();
        return 0;
    }
    descriptor_t tx = tensor('x', N, C, H, W, 1, 0), tw = tensor('w', K, C / GROUPS, R, R, 0, 0);
    descriptor_t with = convolution(2, 1), operations[3];
    int behind = !strcmp(what, "bias"), count = behind ? 3 : 1, kind = !strcmp(what, "filter") ? 11 : !strcmp(what, "data") ? 12 : 10;
    descriptor_t ty = tensor('y', N, K, P, Q, 1, behind);
    /* In no order: they are sorted. */
    operations[count - 1] = operation(kind, with, tx, tw, ty);
    if (behind) {
        descriptor_t sum = tensor('s', N, K, P, Q, 1, 1);
        operations[1] = pointwise(0, ty, tensor('b', 1, K, 1, 1, 0, 0), sum);
        operations[0] = pointwise(100, sum, NULL, tensor('z', N, K, P, Q, 1, 0));
    }
    if (!strcmp(what, "matmul")) {
        operations[0] = made(19);
        MUST(cudnnBackendFinalize(operations[0]));
    }
    descriptor_t plan = plan_of(handle, operations, count);
    cudnnBackendDestroyDescriptor(tx), cudnnBackendDestroyDescriptor(tw), cudnnBackendDestroyDescriptor(with);
    /* The first operand comes last, on the other stream. */
    float *dy = upload(y, Y, work), *db = upload(bias, K, work), *dx, *dw;
    if (kind == 12)
        dx = upload(x, X, work), dw = upload(f, F, other);
    else
        dw = upload(f, F, work), dx = upload(x, X, other);
    if (!racy) cudaStreamSynchronize(other);
    int64_t ids[] = {'x', 'w', behind ? 'z' : 'y', 'b'};
    void *at[] = {dx, dw, dy, db}, *graph, *exec;
    if (behind) cudaStreamBeginCapture(work, 2);
    execute(handle, plan, behind ? 4 : 3, ids, at);
    if (behind) {
        cudaStreamEndCapture(work, &graph);
        cudnnBackendDestroyDescriptor(plan);
        MUST(cudaGraphInstantiate(&exec, graph, 0));
        MUST(cudaGraphLaunch(exec, work));
    }
    products(kind == 10 ? forward : kind == 11 ? filter : data);
    int result = kind == 10 ? Y : kind == 11 ? F : X, failed = 0;
    for (int i = 0; behind && i < Y; i++) expected[i] = fmaxf(expected[i] + bias[i % K], 0);
    float got[X > Y ? X : Y];
    cudaMemcpyAsync(got, kind == 10 ? dy : kind == 11 ? dw : dx, result * sizeof(float), 2, work);
    cudaStreamSynchronize(work);
    for (int i = 0; i < result; i++) failed += got[i] != expected[i];
    printf("%d comparisons, %d failed\n", result, failed);
    cudaDeviceSynchronize();
    return failed != 0 && !racy;
}
