/* Matrices on the device and on the host, for the programs beside this file, and the functions of
   CUDA's runtime and of cuBLAS that they call. Declared here, so that no header of CUDA's is needed. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Handle *handle_t;
typedef struct Stream *stream_t;
typedef struct Event *event_t;
typedef double complex number;

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemset(void *, int, size_t);
int cudaMemsetAsync(void *, int, size_t, stream_t);
int cudaDeviceSynchronize(void);
int cudaStreamCreateWithFlags(stream_t *, unsigned);
int cudaStreamSynchronize(stream_t);
int cudaEventCreate(event_t *);
int cudaEventRecord(event_t, stream_t);
int cudaStreamWaitEvent(stream_t, event_t, unsigned);

int cublasCreate_v2(handle_t *);
int cublasDestroy_v2(handle_t);
int cublasSetStream_v2(handle_t, stream_t);
int cublasSetPointerMode_v2(handle_t, int);
int cublasSetWorkspace_v2(handle_t, void *, size_t);

enum { S, D, C, Z, H, B, WHOLE };
static const int BYTES[] = {4, 8, 8, 16, 2, 2, 4}, CUDA[] = {0, 1, 4, 5, 2, 14, 10};

/* Half precision, by hand: only numbers that it holds exactly are stored. */
static double of_half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}
static uint16_t to_half(double value) {
    int exponent;
    if (value == 0) return 0;
    double fraction = frexp(fabs(value), &exponent);
    return (value < 0) << 15 | (exponent + 14) << 10 | (uint16_t)((fraction * 2 - 1) * 1024);
}

static number element(int type, const void *at, long index) {
    switch (type) {
    case S: return ((const float *)at)[index];
    case D: return ((const double *)at)[index];
    case C: return ((const float complex *)at)[index];
    case Z: return ((const double complex *)at)[index];
    case H: return of_half(((const uint16_t *)at)[index]);
    case WHOLE: return ((const int32_t *)at)[index];
    default: {
        uint32_t bits = (uint32_t)((const uint16_t *)at)[index] << 16;
        float value;
        memcpy(&value, &bits, 4);
        return value;
    }
    }
}
static void set_element(int type, void *at, long index, number value) {
    float real = (float)creal(value);
    switch (type) {
    case S: ((float *)at)[index] = real; break;
    case D: ((double *)at)[index] = creal(value); break;
    case C: ((float complex *)at)[index] = (float complex)value; break;
    case Z: ((double complex *)at)[index] = value; break;
    case H: ((uint16_t *)at)[index] = to_half(real); break;
    case WHOLE: ((int32_t *)at)[index] = (int32_t)real; break;
    default: memcpy((uint16_t *)at + index, (char *)&real + 2, 2);
    }
}

static int is_complex(int type) { return type == C || type == Z; }

static unsigned long seed = 1;
/* Small whole numbers, whose sums of products every type holds exactly. */
static number small(int type) {
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    int re = (int)(seed >> 33) % 5 - 2, im = (int)(seed >> 43) % 5 - 2;
    if (type == H || type == B) return re % 2;
    return is_complex(type) ? re + im * _Complex_I : re;
}

/* `count` matrices by columns, one behind the other with a gap. What lies between columns and
   matrices is never to be touched. */
typedef struct {
    int type, rows, columns, ld, count;
    long stride;
    char *device;
    number *value;
} matrix;

static inline matrix make(int type, int rows, int columns, int gap, int count) {
    matrix m = {type, rows, columns, rows + gap, count, (long)(rows + gap) * columns + gap, 0, 0};
    size_t bytes = (size_t)m.stride * count * BYTES[type];
    void *host = malloc(bytes + 16);
    memset(host, 0x5a, bytes);
    m.value = calloc((size_t)rows * columns * count + 1, sizeof *m.value);
    for (int b = 0; b < count; b++)
        for (int j = 0; j < columns; j++)
            for (int i = 0; i < rows; i++) {
                number value = m.value[(b * columns + j) * rows + i] = small(type);
                set_element(type, host, b * m.stride + (long)j * m.ld + i, value);
            }
    cudaMalloc((void **)&m.device, bytes + 16);
    cudaMemcpy(m.device, host, bytes, 1);
    free(host);
    return m;
}
static number *at(const matrix *m, int b, int i, int j) { return &m->value[(b * m->columns + j) * m->rows + i]; }

/* Reads values anew, without writing down differences. */
static inline void fetch(matrix *m) {
    size_t bytes = (size_t)m->stride * m->count * BYTES[m->type];
    void *host = malloc(bytes + 16);
    cudaMemcpy(host, m->device, bytes, 2);
    for (int b = 0; b < m->count; b++)
        for (int j = 0; j < m->columns; j++)
            for (int i = 0; i < m->rows; i++)
                *at(m, b, i, j) = element(m->type, host, b * m->stride + (long)j * m->ld + i);
    free(host);
}

static int checks, failures;
static void expect(int good, const char *what, int type) {
    checks++;
    if (!good && failures++ < 20) printf("wrong: %s, type %d\n", what, type);
}

/* What the device holds must be `m->value`, and the gaps as they were. */
static inline void compare(const matrix *m, const char *what, double tolerance) {
    size_t bytes = (size_t)m->stride * m->count * BYTES[m->type];
    unsigned char *host = malloc(bytes + 16);
    cudaMemcpy(host, m->device, bytes, 2);
    double worst = 0;
    int gaps = 1;
    for (long index = 0; index < m->stride * m->count; index++) {
        int b = index / m->stride, j = index % m->stride / m->ld, i = index % m->stride % m->ld;
        if (i < m->rows && j < m->columns) {
            double error = cabs(element(m->type, host, index) - *at(m, b, i, j));
            worst = error > worst || error != error ? error : worst;
        } else
            for (int k = 0; k < BYTES[m->type]; k++) gaps &= host[index * BYTES[m->type] + k] == 0x5a;
    }
    free(host);
    expect(worst <= tolerance, what, m->type);
    expect(gaps, "a gap was written", m->type);
}

static inline void drop(matrix *m) {
    cudaFree(m->device);
    free(m->value);
}

/* An element of op(A): 0 as it is, 1 transposed, 2 and conjugated. */
static inline number op(const matrix *m, int b, int operation, int i, int j) {
    number value = operation ? *at(m, b, j, i) : *at(m, b, i, j);
    return operation == 2 ? conj(value) : value;
}

/* The device's array of the addresses of a batch. */
static inline void *addresses(const matrix *m) {
    char *list[16], *device;
    for (int b = 0; b < m->count; b++) list[b] = m->device + b * m->stride * BYTES[m->type];
    cudaMalloc((void **)&device, sizeof list);
    cudaMemcpy(device, list, sizeof list, 1);
    return device;
}
