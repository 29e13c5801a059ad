/* cuFFT on the simulated GPU. Without arguments: plans of every kind, generated, against sums as the
   definition has them. With the name of a race (and "fixed"): two calls that race, or do not. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Stream *stream_t;
typedef struct Event *event_t;
typedef double complex number;
typedef int plan_t;

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemset(void *, int, size_t);
int cudaMemsetAsync(void *, int, size_t, stream_t);
int cudaDeviceSynchronize(void);
int cudaStreamCreateWithFlags(stream_t *, unsigned);
int cudaEventCreate(event_t *);
int cudaEventRecord(event_t, stream_t);
int cudaStreamWaitEvent(stream_t, event_t, unsigned);

int cufftCreate(plan_t *);
int cufftDestroy(plan_t);
int cufftPlan1d(plan_t *, int, int, int);
int cufftPlan2d(plan_t *, int, int, int);
int cufftPlan3d(plan_t *, int, int, int, int);
int cufftPlanMany(plan_t *, int, int *, int *, int, int, int *, int, int, int, int);
int cufftMakePlanMany64(plan_t, int, long long *, long long *, long long, long long, long long *, long long, long long,
                        int, long long, size_t *);
int cufftXtMakePlanMany(plan_t, int, long long *, long long *, long long, long long, int, long long *, long long,
                        long long, int, long long, size_t *, int);
int cufftSetStream(plan_t, stream_t);
int cufftSetAutoAllocation(plan_t, int);
int cufftSetWorkArea(plan_t, void *);
int cufftGetSize(plan_t, size_t *);
int cufftExecC2C(plan_t, void *, void *, int);
int cufftExecZ2Z(plan_t, void *, void *, int);
int cufftExecR2C(plan_t, void *, void *);
int cufftExecD2Z(plan_t, void *, void *);
int cufftExecC2R(plan_t, void *, void *);
int cufftExecZ2D(plan_t, void *, void *);
int cufftXtExec(plan_t, void *, void *, int);

enum { C2C, R2C, C2R };
static const int TYPES[2][3] = {{0x29, 0x2a, 0x2c}, {0x69, 0x6a, 0x6c}};
static int comparisons, failed;

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int code_ = (call);                                                                                           \
        if (code_) {                                                                                                  \
            printf("line %d: %d\n", __LINE__, code_);                                                                 \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

static uint64_t state = 88172645463325252u;
static uint64_t next(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}
static double value(void) { return (double)(int)next(17) - 8; }

/* One side: sizes (padded to three dimensions), what rows are embedded in, stride and distance. */
struct side {
    long long n[3], embed[3], stride, distance;
    int is_complex;
    size_t elements;
};

static size_t place(const struct side *s, long long b, const long long *x) {
    return b * s->distance + ((x[0] * s->embed[1] + x[1]) * s->embed[2] + x[2]) * s->stride;
}
static number get(const struct side *s, int wide, const void *at, size_t i) {
    if (!s->is_complex) return wide ? ((const double *)at)[i] : ((const float *)at)[i];
    return wide ? ((const double complex *)at)[i] : ((const float complex *)at)[i];
}
static void put(const struct side *s, int wide, void *at, size_t i, number v) {
    if (!s->is_complex && wide) ((double *)at)[i] = creal(v);
    else if (!s->is_complex) ((float *)at)[i] = creal(v);
    else if (wide) ((double complex *)at)[i] = v;
    else ((float complex *)at)[i] = v;
}
static size_t bytes(const struct side *s, int wide) { return s->elements * (wide ? 8 : 4) * (s->is_complex ? 2 : 1); }

/* The sum of the definition, over the whole of a transform. */
static number sum(const number *in, const long long *n, const long long *k, int direction) {
    number total = 0;
    for (long long x = 0; x < n[0]; x++)
        for (long long y = 0; y < n[1]; y++)
            for (long long z = 0; z < n[2]; z++) {
                double turn = (double)(x * k[0] % n[0]) / n[0] + (double)(y * k[1] % n[1]) / n[1] + (double)(z * k[2] % n[2]) / n[2];
                total += in[(x * n[1] + y) * n[2] + z] * cexp(direction * 2 * M_PI * I * turn);
            }
    return total;
}

/* `how`: 0 basic plan, 1 cufftPlanMany, 2 64-bit, 3 cufftXt; `gap`: the layouts have gaps. */
static void transform(int kind, int wide, int direction, int rank, const int *size, int batch, int how, int gap, int in_place) {
    struct side sides[2];
    long long n[3] = {1, 1, 1};
    for (int i = 0; i < rank; i++) n[3 - rank + i] = size[i];
    for (int i = 0; i < 2; i++) {
        struct side *s = &sides[i];
        memset(s, 0, sizeof *s);
        s->is_complex = kind == C2C || (kind == R2C) == (i == 1);
        memcpy(s->n, n, sizeof n);
        if (kind != C2C && s->is_complex) s->n[2] = n[2] / 2 + 1;
        memcpy(s->embed, s->n, sizeof n);
        if (kind != C2C && !s->is_complex && in_place) s->embed[2] = 2 * (n[2] / 2 + 1);
        s->stride = 1;
        if (gap) {
            s->embed[2] += 2 + i;
            if (rank > 1) s->embed[1] += 1;
            s->stride = 2 + i;
        }
        s->distance = s->embed[0] * s->embed[1] * s->embed[2] * s->stride + (gap ? 3 : 0);
        s->elements = s->distance * batch;
    }
    size_t in_bytes = bytes(&sides[0], wide), out_bytes = bytes(&sides[1], wide);
    size_t room = in_bytes > out_bytes ? in_bytes : out_bytes, whole = n[0] * n[1] * n[2];
    unsigned char *host = malloc(room), *result = malloc(room);
    number *values = malloc(whole * batch * sizeof *values), *spectrum = malloc(whole * sizeof *values);
    memset(host, 0x5a, room);
    for (int b = 0; b < batch; b++) {
        number *v = values + b * whole;
        for (size_t i = 0; i < whole; i++) v[i] = value() + (kind == C2C ? value() * I : 0);
        if (kind == C2R) {
            /* The spectrum of real numbers, so that the result is known. */
            for (size_t i = 0; i < whole; i++) {
                long long k[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
                spectrum[i] = sum(v, n, k, -1);
            }
        }
        long long x[3];
        for (x[0] = 0; x[0] < sides[0].n[0]; x[0]++)
            for (x[1] = 0; x[1] < sides[0].n[1]; x[1]++)
                for (x[2] = 0; x[2] < sides[0].n[2]; x[2]++) {
                    size_t flat = (x[0] * n[1] + x[1]) * n[2] + x[2];
                    put(&sides[0], wide, host, place(&sides[0], b, x), kind == C2R ? spectrum[flat] : v[flat]);
                }
    }
    void *in, *out;
    CHECK(cudaMalloc(&in, room));
    CHECK(cudaMemcpy(in, host, room, 1));
    out = in;
    if (!in_place) {
        CHECK(cudaMalloc(&out, room));
        CHECK(cudaMemset(out, 0x33, room));
    }
    plan_t plan;
    int type = TYPES[wide][kind], n32[3], embed32[2][3];
    long long n64[3], embed64[2][3];
    for (int i = 0; i < rank; i++) {
        n32[i] = n64[i] = size[i];
        for (int s = 0; s < 2; s++) embed32[s][i] = embed64[s][i] = sides[s].embed[3 - rank + i];
    }
    const struct side *a = &sides[0], *c = &sides[1];
    size_t work = 0;
    if (how == 0 && rank == 1) CHECK(cufftPlan1d(&plan, size[0], type, batch));
    else if (how == 0 && rank == 2) CHECK(cufftPlan2d(&plan, size[0], size[1], type));
    else if (how == 0) CHECK(cufftPlan3d(&plan, size[0], size[1], size[2], type));
    else if (how == 1)
        CHECK(cufftPlanMany(&plan, rank, n32, gap || in_place ? embed32[0] : NULL, a->stride, a->distance,
                            gap || in_place ? embed32[1] : NULL, c->stride, c->distance, type, batch));
    else {
        CHECK(cufftCreate(&plan));
        CHECK(cufftSetAutoAllocation(plan, 0));
        const int real = wide ? 1 : 0, complex_ = wide ? 5 : 4;
        if (how == 2)
            CHECK(cufftMakePlanMany64(plan, rank, n64, embed64[0], a->stride, a->distance, embed64[1], c->stride, c->distance, type,
                                      batch, &work));
        else
            CHECK(cufftXtMakePlanMany(plan, rank, n64, embed64[0], a->stride, a->distance, a->is_complex ? complex_ : real, embed64[1],
                                      c->stride, c->distance, c->is_complex ? complex_ : real, batch, &work, complex_));
        void *area;
        CHECK(cudaMalloc(&area, work + 16));
        CHECK(cufftSetWorkArea(plan, area));
    }
    if (how == 3) CHECK(cufftXtExec(plan, in, out, direction));
    else if (kind == C2C) CHECK((wide ? cufftExecZ2Z : cufftExecC2C)(plan, in, out, direction));
    else if (kind == R2C) CHECK((wide ? cufftExecD2Z : cufftExecR2C)(plan, in, out));
    else CHECK((wide ? cufftExecZ2D : cufftExecC2R)(plan, in, out));
    CHECK(cudaMemcpy(result, out, room, 2));
    double scale = 1;
    for (size_t i = 0; i < whole; i++) scale += cabs(values[i]);
    for (int b = 0; b < batch; b++) {
        long long x[3];
        for (x[0] = 0; x[0] < c->n[0]; x[0]++)
            for (x[1] = 0; x[1] < c->n[1]; x[1]++)
                for (x[2] = 0; x[2] < c->n[2]; x[2]++) {
                    const number *v = values + b * whole;
                    number expected = kind == C2R ? whole * v[(x[0] * n[1] + x[1]) * n[2] + x[2]] : sum(v, n, x, direction);
                    number found = get(c, wide, result, place(c, b, x));
                    double most = scale * (kind == C2R ? whole : 1) * (wide ? 1e-12 : 1e-5);
                    comparisons++;
                    if (!(cabs(expected - found) <= most)) {
                        if (failed++ < 5)
                            printf("kind %d wide %d direction %d rank %d size %lld %lld %lld batch %d how %d gap %d in place %d: "
                                   "(%lld %lld %lld) of %d: %g%+gi, expected %g%+gi\n",
                                   kind, wide, direction, rank, n[0], n[1], n[2], batch, how, gap, in_place, x[0], x[1], x[2], b,
                                   creal(found), cimag(found), creal(expected), cimag(expected));
                    }
                }
    }
    CHECK(cufftDestroy(plan));
    CHECK(cudaFree(in));
    if (!in_place) CHECK(cudaFree(out));
    free(host), free(result), free(values), free(spectrum);
}

static void all(void) {
    static const int SIZES[][3] = {{1, 1, 1}, {2, 3, 4}, {8, 5, 2}, {7, 2, 6}, {16, 3, 5}, {13, 4, 3}};
    for (int kind = 0; kind < 3; kind++)
        for (int wide = 0; wide < 2; wide++)
            for (int rank = 1; rank < 4; rank++)
                for (unsigned s = 0; s < sizeof SIZES / sizeof *SIZES; s++)
                    for (int how = 0; how < 4; how++) {
                        int direction = kind == C2R || (kind == C2C && next(2)) ? 1 : -1;
                        int batch = how == 0 && rank > 1 ? 1 : 1 + next(3);
                        int in_place = next(2), gap = how > 0 && next(2) && !in_place;
                        transform(kind, wide, direction, rank, SIZES[s], batch, how, gap, in_place);
                    }
    static const int LONG[][3] = {{97, 1, 1}, {256, 1, 1}, {360, 1, 1}};
    for (int s = 0; s < 3; s++)
        for (int kind = 0; kind < 3; kind++) transform(kind, 1, kind == R2C ? -1 : 1, 1, LONG[s], 2, 1, 0, 0);
    plan_t plan = 0;
    /* What no device takes. */
    if (!cufftPlan1d(&plan, 0, 0x29, 1) || !cufftPlan1d(&plan, 8, 0x77, 1) || !cufftDestroy(12345)) failed++;
    CHECK(cufftPlan1d(&plan, 8, 0x2a, 1));
    if (!cufftExecC2C(plan, &plan, &plan, -1)) failed++;
    CHECK(cufftDestroy(plan));
    printf("%d comparisons, %d failed\n", comparisons, failed);
}

static stream_t a, b;
static int fixed;
static void order(void) {
    if (!fixed) return;
    event_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event, a));
    CHECK(cudaStreamWaitEvent(b, event, 0));
}

static void race(const char *name) {
    const int N = 256;
    char *in, *out;
    plan_t plan;
    CHECK(cudaMalloc((void **)&in, 8 * N * 16));
    CHECK(cudaMalloc((void **)&out, 8 * N * 16));
    CHECK(cudaMemset(in, 0, 8 * N * 16));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&a, 1));
    CHECK(cudaStreamCreateWithFlags(&b, 1));
    /* Every second transform of a buffer of eight; the others are another stream's. */
    int n[1] = {N}, embed[1] = {N};
    if (!strcmp(name, "others")) CHECK(cufftPlanMany(&plan, 1, n, embed, 1, 2 * N, embed, 1, 2 * N, 0x69, 4));
    else if (!strcmp(name, "padding")) CHECK(cufftPlan1d(&plan, N, 0x2a, 4));
    else if (!strcmp(name, "destroyed")) CHECK(cufftPlan1d(&plan, N, 0x2c, 1));
    else CHECK(cufftPlan1d(&plan, N, 0x69, 4));
    CHECK(cufftSetStream(plan, a));
    if (!strcmp(name, "input")) {
        CHECK(cufftExecZ2Z(plan, in, out, -1));
        order();
        CHECK(cudaMemsetAsync(in + 4 * N * 16 - 8, 1, 8, b));
    } else if (!strcmp(name, "output")) {
        CHECK(cufftExecZ2Z(plan, in, out, 1));
        order();
        CHECK(cudaMemsetAsync(out + 8, 1, 8, b));
    } else if (!strcmp(name, "in place")) {
        CHECK(cufftExecZ2Z(plan, in, in, 1));
        order();
        CHECK(cudaMemsetAsync(in + 16, 1, 8, b));
    } else if (!strcmp(name, "others")) {
        CHECK(cufftExecZ2Z(plan, in, out, 1));
        if (!fixed) CHECK(cudaMemsetAsync(out + 2 * N * 16, 1, 8, b));
        else CHECK(cudaMemsetAsync(out + N * 16, 1, N * 16, b));
    } else if (!strcmp(name, "padding")) {
        /* A real row in place has room for its spectrum: the last bytes are written. */
        CHECK(cufftExecR2C(plan, in, in));
        if (!fixed) CHECK(cudaMemsetAsync(in + (N / 2 + 1) * 8 - 4, 1, 4, b));
        else CHECK(cudaMemsetAsync(in + 4 * (N / 2 + 1) * 8, 1, 4, b));
    } else if (!strcmp(name, "destroyed")) {
        /* A transform to real numbers may use its input as it likes: another's read is a race. */
        plan_t second;
        CHECK(cufftPlan1d(&second, N, 0x2c, 1));
        CHECK(cufftSetStream(second, b));
        CHECK(cufftExecC2R(plan, in, out));
        order();
        CHECK(cufftExecC2R(second, in, out + 4 * N * 16));
    } else if (!strcmp(name, "readers")) {
        plan_t second;
        CHECK(cufftPlan1d(&second, N, 0x69, 4));
        CHECK(cufftSetStream(second, b));
        CHECK(cufftExecZ2Z(plan, in, out, 1));
        CHECK(cufftExecZ2Z(second, in, fixed ? out + 4 * N * 16 : out, 1));
    } else if (!strcmp(name, "work area")) {
        /* One plan in two streams: its work area is shared. */
        char *other;
        CHECK(cudaMalloc((void **)&other, 4 * N * 16));
        CHECK(cufftExecZ2Z(plan, in, out, 1));
        order();
        CHECK(cufftSetStream(plan, b));
        CHECK(cufftExecZ2Z(plan, in, other, 1));
    } else {
        printf("no race %s\n", name);
        exit(2);
    }
    CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    fixed = argc > 2;
    if (argc > 1) race(argv[1]);
    else all();
    return failed != 0;
}
