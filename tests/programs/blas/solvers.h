/* cuSOLVER's functions, and matrices for them, for the two programs that call it. */
#include "operands.h"

typedef struct Solver *solver_t;
int cusolverDnCreate(solver_t *);
int cusolverDnDestroy(solver_t);
int cusolverDnSetStream(solver_t, stream_t);
int cusolverDnCreateParams(void **);
int cusolverDnCreateSyevjInfo(void **);
int cusolverDnCreateGesvdjInfo(void **);

/* A function of four types. Its arguments are integers and pointers. */
#define FOUR(name, s, d, c, z)                                                                                        \
    int cusolverDn##s(), cusolverDn##d(), cusolverDn##c(), cusolverDn##z();                                           \
    static int (*const name[])() = {cusolverDn##s, cusolverDn##d, cusolverDn##c, cusolverDn##z};
#define ALIKE(name) FOUR(name, S##name, D##name, C##name, Z##name)
#define SIZED(name) ALIKE(name) ALIKE(name##_bufferSize)
#define NAMED(name, real, complex)                                                                                    \
    FOUR(name, S##real, D##real, C##complex, Z##complex)                                                              \
    FOUR(name##_bufferSize, S##real##_bufferSize, D##real##_bufferSize, C##complex##_bufferSize,                      \
         Z##complex##_bufferSize)
SIZED(potrf) SIZED(potri) ALIKE(potrs) ALIKE(potrfBatched) ALIKE(potrsBatched)
SIZED(getrf) ALIKE(getrs) SIZED(geqrf) NAMED(orgqr, orgqr, ungqr) NAMED(ormqr, ormqr, unmqr)
NAMED(syevd, syevd, heevd) NAMED(syevj, syevj, heevj) NAMED(syevjBatched, syevjBatched, heevjBatched)
SIZED(gesvd) SIZED(gesvdj) SIZED(gesvdjBatched) SIZED(gesvdaStridedBatched)
#define WIDE(name) int cusolverDn##name(), cusolverDn##name##_bufferSize();
WIDE(Xpotrf) WIDE(Xgetrf) WIDE(Xgeqrf) WIDE(Xsyevd) WIDE(XsyevBatched) WIDE(Xgesvd) WIDE(Xgesvdp) WIDE(Xgeev)
int cusolverDnXpotrs(), cusolverDnXgetrs();

static solver_t solver;
static void *params, *jacobi, *jacobi_svd;
static int *info;
typedef long long wide;

static inline double tolerance(int type, int n) { return (type == S || type == C ? 2e-5 : 1e-12) * (n + 4) * (n + 4); }
static inline int real_of(int type) { return type == C ? S : type == Z ? D : type; }

static inline void upload(matrix *m) {
    size_t bytes = (size_t)m->stride * m->count * BYTES[m->type];
    char *host = malloc(bytes + 16);
    memset(host, 0x5a, bytes);
    for (int b = 0; b < m->count; b++)
        for (int j = 0; j < m->columns; j++)
            for (int i = 0; i < m->rows; i++)
                set_element(m->type, host, b * m->stride + (long)j * m->ld + i, *at(m, b, i, j));
    cudaMemcpy(m->device, host, bytes, 1);
    free(host);
}
/* What a call has made of a matrix, whose gaps must be as they were. */
static inline void result(matrix *m) {
    fetch(m);
    compare(m, "a gap", 0);
}
/* Without gaps between the matrices of a batch, as most functions want it. */
static inline matrix packed(int type, int rows, int columns, int ld, int count) {
    matrix m = make(type, rows, columns, ld - rows, count);
    m.stride = (long)ld * columns;
    upload(&m);
    return m;
}
static inline matrix duplicate(const matrix *m) {
    matrix copy = packed(m->type, m->rows, m->columns, m->ld, m->count);
    memcpy(copy.value, m->value, sizeof *m->value * m->rows * m->columns * m->count);
    upload(&copy);
    return copy;
}
static inline matrix positive(int type, int n, int ld, int count) {
    matrix m = packed(type, n, n, ld, count), g = make(type, n, n, 0, count);
    for (int b = 0; b < count; b++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                number sum = i == j ? n + 1 : 0;
                for (int k = 0; k < n; k++) sum += *at(&g, b, i, k) * conj(*at(&g, b, j, k));
                *at(&m, b, i, j) = sum;
            }
    drop(&g);
    upload(&m);
    return m;
}
static inline void *work(int type, int count) { return room((size_t)count * BYTES[type]); }

static inline void on(stream_t stream) { CHECK(cusolverDnSetStream(solver, stream)); }
/* Creates all that the functions take beside matrices. */
static inline void begin(void) {
    cudaStreamCreateWithFlags(&first, 1), cudaStreamCreateWithFlags(&second, 1);
    CHECK(cusolverDnCreate(&solver));
    CHECK(cusolverDnCreateParams(&params));
    CHECK(cusolverDnCreateSyevjInfo(&jacobi));
    CHECK(cusolverDnCreateGesvdjInfo(&jacobi_svd));
    info = room(64);
    cudaMemset(info, 0x11, 64);
}
