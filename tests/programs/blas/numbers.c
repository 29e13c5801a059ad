/* cuRAND's generators on the simulated GPU. Without arguments: moments of each distribution, seeds and
   offsets. With the name of a function (and "fixed"): numbers that race with a fill, or do not. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Stream *stream_t;
typedef struct Event *event_t;
typedef struct Generator *generator_t;

int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemsetAsync(void *, int, size_t, stream_t);
int cudaDeviceSynchronize(void);
int cudaStreamCreateWithFlags(stream_t *, unsigned);
int cudaEventCreate(event_t *);
int cudaEventRecord(event_t, stream_t);
int cudaStreamWaitEvent(stream_t, event_t, unsigned);

int curandCreateGenerator(generator_t *, int);
int curandDestroyGenerator(generator_t);
int curandSetStream(generator_t, stream_t);
int curandSetPseudoRandomGeneratorSeed(generator_t, unsigned long long);
int curandSetGeneratorOffset(generator_t, unsigned long long);
int curandSetGeneratorOrdering(generator_t, int);
int curandGenerateSeeds(generator_t);
int curandGenerate(generator_t, void *, size_t);
int curandGenerateLongLong(generator_t, void *, size_t);
int curandGenerateUniform(generator_t, void *, size_t);
int curandGenerateUniformDouble(generator_t, void *, size_t);
int curandGenerateNormal(generator_t, void *, size_t, float, float);
int curandGenerateNormalDouble(generator_t, void *, size_t, double, double);
int curandGenerateLogNormal(generator_t, void *, size_t, float, float);
int curandGenerateLogNormalDouble(generator_t, void *, size_t, double, double);

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int code_ = (call);                                                                                           \
        if (code_) {                                                                                                  \
            printf("line %d: %d\n", __LINE__, code_);                                                                 \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

enum { BITS, WIDE_BITS, UNIFORM, UNIFORM_DOUBLE, NORMAL, NORMAL_DOUBLE, LOG_NORMAL, LOG_NORMAL_DOUBLE, KINDS };
static const char *NAMES[] = {"bits", "wide bits", "uniform", "uniform double", "normal", "normal double", "log-normal", "log-normal double"};
static const double MEAN = 0.25, DEVIATION = 0.5;
static int comparisons, failed;

static int is_wide(int kind) { return kind & 1; }

static int generate(generator_t g, int kind, void *to, size_t count) {
    switch (kind) {
    case BITS: return curandGenerate(g, to, count);
    case WIDE_BITS: return curandGenerateLongLong(g, to, count);
    case UNIFORM: return curandGenerateUniform(g, to, count);
    case UNIFORM_DOUBLE: return curandGenerateUniformDouble(g, to, count);
    case NORMAL: return curandGenerateNormal(g, to, count, MEAN, DEVIATION);
    case NORMAL_DOUBLE: return curandGenerateNormalDouble(g, to, count, MEAN, DEVIATION);
    case LOG_NORMAL: return curandGenerateLogNormal(g, to, count, MEAN, DEVIATION);
    default: return curandGenerateLogNormalDouble(g, to, count, MEAN, DEVIATION);
    }
}

static void expect(int right, const char *what, int kind) {
    comparisons++;
    if (!right && failed++ < 8) printf("%s: %s\n", NAMES[kind], what);
}

static double value(int kind, const void *at, size_t i) {
    if (kind == BITS) return ((const uint32_t *)at)[i] / 4294967296.0;
    if (kind == WIDE_BITS) return ((const uint64_t *)at)[i] / 18446744073709551616.0;
    return is_wide(kind) ? ((const double *)at)[i] : ((const float *)at)[i];
}

static void moments(int kind) {
    enum { N = 20000 };
    size_t bytes = N * (is_wide(kind) ? 8 : 4);
    void *device, *first = malloc(bytes), *second = malloc(bytes);
    generator_t g;
    CHECK(cudaMalloc(&device, bytes));
    CHECK(curandCreateGenerator(&g, kind % 3 == 0 ? 100 : kind % 3 == 1 ? 121 : 161));
    CHECK(curandSetPseudoRandomGeneratorSeed(g, 1234 + kind));
    CHECK(curandSetGeneratorOrdering(g, 101));
    CHECK(curandGenerateSeeds(g));
    CHECK(generate(g, kind, device, N));
    CHECK(cudaMemcpy(first, device, bytes, 2));
    double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < N; i++) {
        double v = value(kind, first, i);
        if (kind >= LOG_NORMAL) v = log(v);
        sum += v, squares += v * v;
        low = v < low ? v : low, high = v > high ? v : high;
    }
    double mean = sum / N, variance = squares / N - mean * mean;
    double right = kind >= NORMAL ? MEAN : 0.5, spread = kind >= NORMAL ? DEVIATION * DEVIATION : 1 / 12.0;
    expect(fabs(mean - right) < 6 * sqrt(spread / N), "mean", kind);
    expect(fabs(variance - spread) < 0.05 * spread, "variance", kind);
    if (kind < NORMAL) expect(low >= 0 && high <= 1 && (kind < UNIFORM || low > 0), "range", kind);
    /* What follows differs; the same seed gives the same; an offset leaves numbers out. */
    CHECK(generate(g, kind, device, N));
    CHECK(cudaMemcpy(second, device, bytes, 2));
    expect(memcmp(first, second, bytes) != 0, "repeats itself", kind);
    CHECK(curandSetPseudoRandomGeneratorSeed(g, 1234 + kind));
    CHECK(generate(g, kind, device, N));
    CHECK(cudaMemcpy(second, device, bytes, 2));
    expect(memcmp(first, second, bytes) == 0, "the same seed", kind);
    CHECK(curandSetGeneratorOffset(g, 100));
    CHECK(generate(g, kind, device, N));
    CHECK(cudaMemcpy(second, device, bytes, 2));
    expect(memcmp((char *)first + 100 * bytes / N, second, bytes - 100 * bytes / N) == 0, "the offset", kind);
    if (kind >= NORMAL) expect(generate(g, kind, device, 3) == 105, "an odd number", kind);
    CHECK(curandDestroyGenerator(g));
    free(first), free(second);
}

int main(int argc, char **argv) {
    if (argc == 1) {
        for (int kind = 0; kind < KINDS; kind++) moments(kind);
        printf("%d comparisons, %d failed\n", comparisons, failed);
        return failed != 0;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        if (strcmp(argv[1], NAMES[kind])) continue;
        generator_t g;
        stream_t a, b;
        event_t event;
        char *device;
        const size_t count = 1000, bytes = count * (is_wide(kind) ? 8 : 4);
        CHECK(cudaMalloc((void **)&device, bytes + 64));
        CHECK(cudaStreamCreateWithFlags(&a, 1));
        CHECK(cudaStreamCreateWithFlags(&b, 1));
        CHECK(curandCreateGenerator(&g, 100));
        CHECK(curandSetStream(g, a));
        CHECK(generate(g, kind, device, count));
        /* Behind the numbers nothing is written. */
        CHECK(cudaMemsetAsync(device + bytes, 0, 64, b));
        if (argc > 2) {
            CHECK(cudaEventCreate(&event));
            CHECK(cudaEventRecord(event, a));
            CHECK(cudaStreamWaitEvent(b, event, 0));
        }
        CHECK(cudaMemsetAsync(device + bytes - 4, 0, 4, b));
        CHECK(cudaDeviceSynchronize());
        return 0;
    }
    printf("no numbers of the kind %s\n", argv[1]);
    return 2;
}
