/* Vectors, matrices of which a part is stored, triangular systems and factors: cuBLAS against loops.
   Prints how many comparisons were made; exits with 1 when one failed. */
#include "matrices.h"

#define FOUR(type, name)                                                                                  \
    type cublasS##name, cublasD##name, cublasC##name, cublasZ##name;                                      \
    static type *const name[] = {cublasS##name, cublasD##name, cublasC##name, cublasZ##name}

typedef int axpy_t(handle_t, int, const void *, const void *, int, void *, int);
typedef int scal_t(handle_t, int, const void *, void *, int);
typedef int two_t(handle_t, int, void *, int, void *, int);
typedef int gemv_t(handle_t, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int);
typedef int symm_t(handle_t, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int);
typedef int syrk_t(handle_t, int, int, int, int, const void *, const void *, int, const void *, void *, int);
typedef int syr2k_t(handle_t, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int);
typedef int trmm_t(handle_t, int, int, int, int, int, int, const void *, const void *, int, const void *, int, void *, int);
typedef int trsm_t(handle_t, int, int, int, int, int, int, const void *, const void *, int, void *, int);
typedef int trsms_t(handle_t, int, int, int, int, int, int, const void *, const void *, int, void *, int, int);
typedef int getrf_t(handle_t, int, void *, int, int *, int *, int);
typedef int getri_t(handle_t, int, void *, int, int *, void *, int, int *, int);
typedef int getrs_t(handle_t, int, int, int, void *, int, int *, void *, int, int *, int);
typedef int matinv_t(handle_t, int, void *, int, void *, int, int *, int);
typedef int geqrf_t(handle_t, int, int, void *, int, void *, int *, int);
typedef int gels_t(handle_t, int, int, int, int, void *, int, void *, int, int *, int *, int);
typedef int geam_t(handle_t, int, int, int, int, const void *, const void *, int, const void *, const void *, int, void *, int);
typedef int dgmm_t(handle_t, int, int, int, const void *, int, const void *, int, void *, int);
typedef int ger_t(handle_t, int, int, const void *, const void *, int, const void *, int, void *, int);

FOUR(axpy_t, axpy_v2);
FOUR(scal_t, scal_v2);
FOUR(two_t, copy_v2);
FOUR(two_t, swap_v2);
FOUR(gemv_t, gemv_v2);
FOUR(symm_t, symm_v2);
FOUR(syrk_t, syrk_v2);
FOUR(syr2k_t, syr2k_v2);
FOUR(trmm_t, trmm_v2);
FOUR(trsm_t, trsm_v2);
FOUR(trsms_t, trsmBatched);
FOUR(getrf_t, getrfBatched);
FOUR(getri_t, getriBatched);
FOUR(getrs_t, getrsBatched);
FOUR(matinv_t, matinvBatched);
FOUR(geqrf_t, geqrfBatched);
FOUR(gels_t, gelsBatched);
FOUR(geam_t, geam);
FOUR(dgmm_t, dgmm);
ger_t cublasSger_v2, cublasDger_v2, cublasCgerc_v2, cublasZgerc_v2;
static ger_t *const ger[] = {cublasSger_v2, cublasDger_v2, cublasCgerc_v2, cublasZgerc_v2};
symm_t cublasChemm_v2, cublasZhemm_v2;
syrk_t cublasCherk_v2, cublasZherk_v2;
syr2k_t cublasCher2k_v2, cublasZher2k_v2;
int cublasSdot_v2(handle_t, int, const void *, int, const void *, int, void *);
int cublasDdot_v2(handle_t, int, const void *, int, const void *, int, void *);
int cublasCdotc_v2(handle_t, int, const void *, int, const void *, int, void *);
int cublasZdotu_v2(handle_t, int, const void *, int, const void *, int, void *);
typedef int reduce_t(handle_t, int, const void *, int, void *);
reduce_t cublasSnrm2_v2, cublasDnrm2_v2, cublasScnrm2_v2, cublasDznrm2_v2, cublasSasum_v2, cublasDasum_v2, cublasScasum_v2,
    cublasDzasum_v2, cublasIsamax_v2, cublasIdamax_v2, cublasIcamax_v2, cublasIzamax_v2, cublasIsamin_v2, cublasIdamin_v2,
    cublasIcamin_v2, cublasIzamin_v2;
int cublasSetMatrix(int, int, int, const void *, int, void *, int);
int cublasGetMatrix(int, int, int, const void *, int, void *, int);
int cublasSetVector(int, int, const void *, int, void *, int);
int cublasGetVector(int, int, const void *, int, void *, int);

static handle_t handle;
static char alpha[16], beta[16];

static int real_of(int type) { return type == C ? S : type == Z ? D : type; }
static double tolerance(int type) { return real_of(type) == S ? 2e-4 : 1e-11; }

static void vectors(int type) {
    number two = is_complex(type) ? 2 + _Complex_I : 2;
    set_element(type, alpha, 0, two);
    int n = 9, step = 3;
    /* Rows of a matrix with `step` rows: vectors with that increment. */
    matrix x = make(type, step, n, 0, 1), y = make(type, step, n, 0, 1);
    expect(!axpy_v2[type](handle, n, alpha, x.device, step, y.device, -step), "axpy", type);
    for (int i = 0; i < n; i++) *at(&y, 0, 0, n - 1 - i) += two * *at(&x, 0, 0, i);
    compare(&y, "axpy", 0);
    expect(!scal_v2[type](handle, n, alpha, x.device, step), "scal", type);
    for (int i = 0; i < n; i++) *at(&x, 0, 0, i) *= two;
    compare(&x, "scal", 0);
    expect(!copy_v2[type](handle, n, x.device, step, y.device, step), "copy", type);
    for (int i = 0; i < n; i++) *at(&y, 0, 0, i) = *at(&x, 0, 0, i);
    compare(&y, "copy", 0);
    int bytes = BYTES[type];
    expect(!swap_v2[type](handle, n, x.device + bytes, step, y.device, step), "swap", type);
    for (int i = 0; i < n; i++) {
        number kept = *at(&x, 0, 1, i);
        *at(&x, 0, 1, i) = *at(&y, 0, 0, i);
        *at(&y, 0, 0, i) = kept;
    }
    compare(&x, "swap", 0);
    compare(&y, "swap", 0);
    static reduce_t *const norm[] = {cublasSnrm2_v2, cublasDnrm2_v2, cublasScnrm2_v2, cublasDznrm2_v2};
    static reduce_t *const sum[] = {cublasSasum_v2, cublasDasum_v2, cublasScasum_v2, cublasDzasum_v2};
    static reduce_t *const greatest[] = {cublasIsamax_v2, cublasIdamax_v2, cublasIcamax_v2, cublasIzamax_v2};
    static reduce_t *const smallest[] = {cublasIsamin_v2, cublasIdamin_v2, cublasIcamin_v2, cublasIzamin_v2};
    double squares = 0, absolute = 0, most = -1, least = 1e9;
    int at_most = 0, at_least = 0;
    number dot = 0;
    for (int i = 0; i < n; i++) {
        number value = *at(&x, 0, 1, i);
        double size = fabs(creal(value)) + fabs(cimag(value));
        squares += creal(value) * creal(value) + cimag(value) * cimag(value);
        absolute += size;
        if (size > most) most = size, at_most = i + 1;
        if (size < least) least = size, at_least = i + 1;
        dot += (type == C ? conj(value) : value) * *at(&y, 0, 0, i);
    }
    char result[16];
    const char *from = x.device + bytes;
    expect(!norm[type](handle, n, from, step, result), "nrm2", type);
    expect(fabs(creal(element(real_of(type), result, 0)) - sqrt(squares)) < 1e-5, "nrm2", type);
    expect(!sum[type](handle, n, from, step, result), "asum", type);
    expect(creal(element(real_of(type), result, 0)) == absolute, "asum", type);
    expect(!greatest[type](handle, n, from, step, result) && *(int *)result == at_most, "amax", type);
    expect(!smallest[type](handle, n, from, step, result) && *(int *)result == at_least, "amin", type);
    int (*const inner[])(handle_t, int, const void *, int, const void *, int, void *) = {cublasSdot_v2, cublasDdot_v2,
                                                                                      cublasCdotc_v2, cublasZdotu_v2};
    expect(!inner[type](handle, n, from, step, y.device, step, result), "dot", type);
    expect(element(type, result, 0) == dot, "dot", type);
    /* The result on the device. */
    char *device;
    cudaMalloc((void **)&device, 16);
    cublasSetPointerMode_v2(handle, 1);
    inner[type](handle, n, from, step, y.device, step, device);
    cublasSetPointerMode_v2(handle, 0);
    cudaMemcpy(result, device, bytes, 2);
    expect(element(type, result, 0) == dot, "dot on the device", type);
    drop(&x), drop(&y);
}

static void matrix_vector(int type) {
    for (int trans = 0; trans < 3; trans++) {
        int m = 7, n = 4;
        matrix a = make(type, m, n, 2, 1), x = make(type, 1, trans ? m : n, 1, 1), y = make(type, 1, trans ? n : m, 2, 1);
        set_element(type, alpha, 0, 2), set_element(type, beta, 0, -1);
        expect(!gemv_v2[type](handle, trans, m, n, alpha, a.device, a.ld, x.device, x.ld, beta, y.device, y.ld), "gemv", type);
        for (int i = 0; i < y.columns; i++) {
            number sum = 0;
            for (int j = 0; j < x.columns; j++) sum += op(&a, 0, trans, i, j) * *at(&x, 0, 0, j);
            *at(&y, 0, 0, i) = 2 * sum - *at(&y, 0, 0, i);
        }
        compare(&y, "gemv", 0);
        drop(&y);
        y = make(type, 1, trans ? m : n, 0, 1);
        matrix *left = trans ? &y : &x, u = make(type, 1, m, 0, 1), v = make(type, 1, n, 0, 1);
        (void)left;
        expect(!ger[type](handle, m, n, alpha, u.device, 1, v.device, 1, a.device, a.ld), "ger", type);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) *at(&a, 0, i, j) += 2 * *at(&u, 0, 0, i) * conj(*at(&v, 0, 0, j));
        compare(&a, "ger", 0);
        drop(&a), drop(&x), drop(&y), drop(&u), drop(&v);
    }
}

/* The element of a matrix of which the lower (0) or upper (1) part is stored. */
static number stored(const matrix *m, int upper, int hermitian, int i, int j) {
    if (hermitian && i == j) return creal(*at(m, 0, i, i));
    if (upper ? i <= j : i >= j) return *at(m, 0, i, j);
    return hermitian ? conj(*at(m, 0, j, i)) : *at(m, 0, j, i);
}

static void symmetric(int type, int hermitian, int side, int upper) {
    int m = 6, n = 4, size = side ? n : m, k = 5;
    set_element(type, alpha, 0, 2), set_element(type, beta, 0, -1);
    matrix a = make(type, size, size, 1, 1), b = make(type, m, n, 0, 1), c = make(type, m, n, 2, 1);
    symm_t *call = hermitian ? (type == C ? cublasChemm_v2 : cublasZhemm_v2) : symm_v2[type];
    expect(!call(handle, side, upper, m, n, alpha, a.device, a.ld, b.device, b.ld, beta, c.device, c.ld), "symm", type);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            number sum = 0;
            for (int l = 0; l < size; l++)
                sum += side ? *at(&b, 0, i, l) * stored(&a, upper, hermitian, l, j) : stored(&a, upper, hermitian, i, l) * *at(&b, 0, l, j);
            *at(&c, 0, i, j) = 2 * sum - *at(&c, 0, i, j);
        }
    compare(&c, "symm", 0);
    drop(&a), drop(&b), drop(&c);
    for (int twice = 0; twice < 2; twice++) {
        int trans = side ? (hermitian ? 2 : 1) : 0, turn = hermitian ? 2 : 1;
        matrix x = trans ? make(type, k, m, 1, 1) : make(type, m, k, 1, 1), y = trans ? make(type, k, m, 0, 1) : make(type, m, k, 0, 1);
        c = make(type, m, m, 2, 1);
        if (hermitian) {
            set_element(twice ? type : real_of(type), alpha, 0, 2);
            set_element(real_of(type), beta, 0, -1);
        }
        int done = twice ? (hermitian ? (type == C ? cublasCher2k_v2 : cublasZher2k_v2) : syr2k_v2[type])(
                               handle, upper, trans, m, k, alpha, x.device, x.ld, y.device, y.ld, beta, c.device, c.ld)
                         : (hermitian ? (type == C ? cublasCherk_v2 : cublasZherk_v2) : syrk_v2[type])(
                               handle, upper, trans, m, k, alpha, x.device, x.ld, beta, c.device, c.ld);
        expect(!done, "syrk", type);
        for (int j = 0; j < m; j++)
            for (int i = 0; i < m; i++) {
                if (upper ? i > j : i < j) continue;
                number sum = 0;
                for (int l = 0; l < k; l++) {
                    number xi = op(&x, 0, trans, i, l), xj = op(&x, 0, trans, j, l), yi = op(&y, 0, trans, i, l), yj = op(&y, 0, trans, j, l);
                    if (turn == 2) xj = conj(xj), yj = conj(yj);
                    sum += twice ? xi * yj + yi * xj : xi * xj;
                }
                number before = *at(&c, 0, i, j);
                if (hermitian && i == j) before = creal(before);
                *at(&c, 0, i, j) = 2 * sum - before;
            }
        compare(&c, twice ? "syr2k" : "syrk", 0);
        drop(&x), drop(&y), drop(&c);
    }
}

static void triangles(int type, int side, int upper, int trans, int unit) {
    int m = 6, n = 4, size = side ? n : m;
    set_element(type, alpha, 0, 2);
    matrix a = make(type, size, size, 1, 2), b = make(type, m, n, 2, 2), c = make(type, m, n, 1, 1);
    /* Far from singular. */
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < size; i++) {
            char value[16];
            *at(&a, t, i, i) = 8;
            set_element(type, value, 0, 8);
            cudaMemcpy(a.device + (t * a.stride + (long)i * a.ld + i) * BYTES[type], value, BYTES[type], 1);
        }
    expect(!trmm_v2[type](handle, side, upper, trans, unit, m, n, alpha, a.device, a.ld, b.device, b.ld, c.device, c.ld), "trmm", type);
    matrix full = make(type, size, size, 0, 2);
    for (int t = 0; t < 2; t++)
        for (int j = 0; j < size; j++)
            for (int i = 0; i < size; i++)
                *at(&full, t, i, j) = i == j && unit ? 1 : (upper ? i <= j : i >= j) ? *at(&a, t, i, j) : 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            number sum = 0;
            for (int l = 0; l < size; l++)
                sum += side ? *at(&b, 0, i, l) * op(&full, 0, trans, l, j) : op(&full, 0, trans, i, l) * *at(&b, 0, l, j);
            *at(&c, 0, i, j) = 2 * sum;
        }
    compare(&c, "trmm", 0);
    number *right = malloc(sizeof(number) * m * n * 2);
    for (int many = 0; many < 2; many++) {
        memcpy(right, b.value, sizeof(number) * m * n * 2);
        int done = many ? trsmBatched[type](handle, side, upper, trans, unit, m, n, alpha, addresses(&a), a.ld, addresses(&b), b.ld, 2)
                        : trsm_v2[type](handle, side, upper, trans, unit, m, n, alpha, a.device, a.ld, b.device, b.ld);
        expect(!done, "trsm", type);
        fetch(&b);
        double worst = 0;
        for (int t = 0; t <= many; t++)
            for (int j = 0; j < n; j++)
                for (int i = 0; i < m; i++) {
                    number sum = 0;
                    for (int l = 0; l < size; l++)
                        sum += side ? *at(&b, t, i, l) * op(&full, t, trans, l, j) : op(&full, t, trans, i, l) * *at(&b, t, l, j);
                    worst = fmax(worst, cabs(sum - 2 * right[(t * n + j) * m + i]));
                }
        expect(worst < 100 * tolerance(type), "trsm", type);
        compare(&b, "gaps of trsm", 0);
    }
    free(right);
    drop(&a), drop(&b), drop(&c), drop(&full);
}

static void factors(int type) {
    int n = 6, count = 3, info[4], rows = 9;
    matrix a = make(type, n, n, 1, count), b = make(type, n, 2, 1, count), inverse = make(type, n, n, 0, count);
    matrix before = a, right = b;
    before.value = malloc(sizeof(number) * n * n * count), right.value = malloc(sizeof(number) * n * 2 * count);
    memcpy(before.value, a.value, sizeof(number) * n * n * count), memcpy(right.value, b.value, sizeof(number) * n * 2 * count);
    int *pivots, *infos;
    cudaMalloc((void **)&pivots, 4 * n * count), cudaMalloc((void **)&infos, 4 * count);
    void *as = addresses(&a), *bs = addresses(&b), *inverses = addresses(&inverse);
    expect(!matinvBatched[type](handle, n, as, a.ld, inverses, inverse.ld, infos, count), "matinv", type);
    compare(&a, "matinv leaves A", 0);
    for (int way = 0; way < 2; way++) {
        if (way) {
            expect(!getrfBatched[type](handle, n, as, a.ld, pivots, infos, count), "getrf", type);
            cudaMemcpy(info, infos, 4 * count, 2);
            expect(!info[0] && !info[1] && !info[2], "info of getrf", type);
            expect(!getriBatched[type](handle, n, as, a.ld, pivots, inverses, inverse.ld, infos, count), "getri", type);
        }
        fetch(&inverse);
        double worst = 0;
        for (int t = 0; t < count; t++)
            for (int j = 0; j < n; j++)
                for (int i = 0; i < n; i++) {
                    number sum = 0;
                    for (int l = 0; l < n; l++) sum += *at(&before, t, i, l) * *at(&inverse, t, l, j);
                    worst = fmax(worst, cabs(sum - (i == j)));
                }
        expect(worst < 50 * tolerance(type), way ? "getri" : "matinv", type);
    }
    for (int trans = 0; trans < 3; trans++) {
        expect(!getrsBatched[type](handle, trans, n, 2, as, a.ld, pivots, bs, b.ld, info, count) && !info[0], "getrs", type);
        fetch(&b);
        double worst = 0;
        for (int t = 0; t < count; t++)
            for (int j = 0; j < 2; j++)
                for (int i = 0; i < n; i++) {
                    number sum = 0;
                    for (int l = 0; l < n; l++) sum += op(&before, t, trans, i, l) * *at(&b, t, l, j);
                    worst = fmax(worst, cabs(sum - *at(&right, t, i, j)) / (1 + cabs(*at(&right, t, i, j))));
                }
        expect(worst < 500 * tolerance(type), "getrs", type);
        compare(&b, "gaps of getrs", 0);
        memcpy(right.value, b.value, sizeof(number) * n * 2 * count);
    }
    /* Q R: the product of the triangle with its conjugate transpose is that of A. */
    matrix q = make(type, rows, n, 1, 2), tau = make(type, n, 1, 0, 2), x = make(type, rows, 2, 1, 2), again = make(type, rows, n, 0, 2);
    memcpy(again.value, q.value, sizeof(number) * rows * n * 2);
    expect(!geqrfBatched[type](handle, rows, n, addresses(&q), q.ld, addresses(&tau), info, 2), "geqrf", type);
    fetch(&q), fetch(&tau);
    double worst = 0;
    for (int t = 0; t < 2; t++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                number theirs = 0, ours = 0;
                for (int l = 0; l < rows; l++) theirs += conj(*at(&again, t, l, i)) * *at(&again, t, l, j);
                for (int l = 0; l <= (i < j ? i : j); l++) ours += conj(*at(&q, t, l, i)) * *at(&q, t, l, j);
                worst = fmax(worst, cabs(theirs - ours));
            }
    expect(worst < 100 * tolerance(type), "geqrf", type);
    /* The first reflector, applied to the first column, leaves the corner. */
    number sum = *at(&again, 0, 0, 0);
    for (int l = 1; l < rows; l++) sum += conj(*at(&q, 0, l, 0)) * *at(&again, 0, l, 0);
    expect(cabs(*at(&again, 0, 0, 0) - conj(*at(&tau, 0, 0, 0)) * sum - *at(&q, 0, 0, 0)) < 10 * tolerance(type), "tau", type);
    /* The residual of least squares is orthogonal to A's columns. */
    matrix y = make(type, rows, n, 1, 2);
    number *wanted = malloc(sizeof(number) * rows * 2 * 2);
    memcpy(wanted, x.value, sizeof(number) * rows * 2 * 2);
    expect(!gelsBatched[type](handle, 0, rows, n, 2, addresses(&y), y.ld, addresses(&x), x.ld, info, infos, 2) && !info[0], "gels", type);
    fetch(&x);
    worst = 0;
    for (int t = 0; t < 2; t++)
        for (int j = 0; j < 2; j++) {
            number residual[9];
            for (int i = 0; i < rows; i++) {
                residual[i] = wanted[(t * 2 + j) * rows + i];
                for (int l = 0; l < n; l++) residual[i] -= *at(&y, t, i, l) * *at(&x, t, l, j);
            }
            for (int l = 0; l < n; l++) {
                number inner = 0;
                for (int i = 0; i < rows; i++) inner += conj(*at(&y, t, i, l)) * residual[i];
                worst = fmax(worst, cabs(inner));
            }
        }
    expect(worst < 500 * tolerance(type), "gels", type);
    free(wanted);
}

static void by_elements(int type) {
    int m = 5, n = 3;
    set_element(type, alpha, 0, 2), set_element(type, beta, 0, -1);
    matrix a = make(type, n, m, 1, 1), b = make(type, m, n, 0, 1), c = make(type, m, n, 2, 1), x = make(type, 1, n, 1, 1);
    expect(!geam[type](handle, 2, 0, m, n, alpha, a.device, a.ld, beta, b.device, b.ld, c.device, c.ld), "geam", type);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) *at(&c, 0, i, j) = 2 * op(&a, 0, 2, i, j) - *at(&b, 0, i, j);
    compare(&c, "geam", 0);
    expect(!dgmm[type](handle, 1, m, n, b.device, b.ld, x.device, x.ld, c.device, c.ld), "dgmm", type);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) *at(&c, 0, i, j) = *at(&b, 0, i, j) * *at(&x, 0, 0, j);
    compare(&c, "dgmm", 0);
    drop(&a), drop(&b), drop(&c), drop(&x);
}

static void transfers(void) {
    float host[40], back[40];
    matrix m = make(S, 4, 5, 2, 1);
    for (int i = 0; i < 40; i++) host[i] = i;
    expect(!cublasSetMatrix(4, 5, 4, host, 8, m.device, m.ld), "SetMatrix", S);
    for (int j = 0; j < 5; j++)
        for (int i = 0; i < 4; i++) *at(&m, 0, i, j) = j * 8 + i;
    compare(&m, "SetMatrix", 0);
    memset(back, 0, sizeof back);
    expect(!cublasGetMatrix(4, 5, 4, m.device, m.ld, back, 8), "GetMatrix", S);
    for (int i = 0; i < 40; i++) expect(back[i] == (i % 8 < 4 ? i : 0), "GetMatrix", S);
    expect(!cublasSetVector(5, 4, host, 3, m.device, m.ld), "SetVector", S);
    for (int j = 0; j < 5; j++) *at(&m, 0, 0, j) = j * 3;
    compare(&m, "SetVector", 0);
    expect(!cublasGetVector(5, 4, m.device, m.ld, back, 1) && back[4] == 12, "GetVector", S);
    drop(&m);
}

int main(void) {
    if (cublasCreate_v2(&handle)) return 2;
    for (int type = S; type <= Z; type++) {
        vectors(type), matrix_vector(type), factors(type), by_elements(type);
        for (int side = 0; side < 2; side++)
            for (int upper = 0; upper < 2; upper++) {
                symmetric(type, 0, side, upper);
                if (is_complex(type)) symmetric(type, 1, side, upper);
                for (int trans = 0; trans < 3; trans++)
                    for (int unit = 0; unit < 2; unit++) triangles(type, side, upper, trans, unit);
            }
    }
    transfers();
    cublasDestroy_v2(handle);
    printf("%d comparisons, %d failed\n", checks, failures);
    return failures != 0;
}
