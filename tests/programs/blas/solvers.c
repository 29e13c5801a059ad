/* cuSOLVER on the simulated GPU: every function, over types, sizes and modes. What it gives must be
   factors, solutions, eigenvalues and singular values of what it got. */
#include "solvers.h"

/* The greatest difference of a product of operated matrices from another. */
static double product(const matrix *a, int op_a, const matrix *b, int op_b, const matrix *c, int batch) {
    double worst = 0;
    int inner = op_a ? a->rows : a->columns;
    for (int i = 0; i < (op_a ? a->columns : a->rows); i++)
        for (int j = 0; j < (op_b ? b->rows : b->columns); j++) {
            number sum = 0;
            for (int k = 0; k < inner; k++) sum += op(a, batch, op_a, i, k) * op(b, batch, op_b, k, j);
            double error = cabs(sum - (c ? *at(c, batch, i, j) : i == j));
            worst = error > worst || error != error ? error : worst;
        }
    return worst;
}
static void informed(int count, const int *wanted, const char *what, int type) {
    int got[16];
    cudaMemcpy(got, info, count * sizeof *got, 2);
    for (int k = 0; k < count; k++) expect(got[k] == (wanted ? wanted[k] : 0), what, type);
    cudaMemset(info, 0x11, 16 * sizeof *info);
}
/* Only one triangle of a factor. */
static void keep(matrix *m, int upper, int unit) {
    for (int b = 0; b < m->count; b++)
        for (int j = 0; j < m->columns; j++)
            for (int i = 0; i < m->rows; i++) {
                if (upper ? i > j : i < j) *at(m, b, i, j) = 0;
                if (unit && i == j) *at(m, b, i, j) = 1;
            }
}

static void cholesky(int type, int n, int gap, int upper, int x) {
    matrix a = positive(type, n, n + gap, 1), l = duplicate(&a), b = make(type, n, 3, gap, 1), v = duplicate(&b);
    int length = 0;
    size_t bytes = 0, host = 0;
    if (x) {
        CHECK(cusolverDnXpotrf_bufferSize(solver, params, upper, (wide)n, CUDA[type], l.device, (wide)l.ld, CUDA[type],
                                          &bytes, &host));
        CHECK(cusolverDnXpotrf(solver, params, upper, (wide)n, CUDA[type], l.device, (wide)l.ld, CUDA[type], room(bytes),
                               bytes, (void *)0, (size_t)0, info));
    } else {
        CHECK(potrf_bufferSize[type](solver, upper, n, l.device, l.ld, &length));
        CHECK(potrf[type](solver, upper, n, l.device, l.ld, work(type, length), length, info));
    }
    informed(1, 0, "potrf info", type);
    result(&l);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            if (upper ? i > j : i < j) expect(*at(&l, 0, i, j) == *at(&a, 0, i, j), "the other triangle", type);
    matrix inverse = duplicate(&l);
    if (x)
        CHECK(cusolverDnXpotrs(solver, params, upper, (wide)n, (wide)3, CUDA[type], l.device, (wide)l.ld, CUDA[type],
                               v.device, (wide)v.ld, info));
    else
        CHECK(potrs[type](solver, upper, n, 3, l.device, l.ld, v.device, v.ld, info));
    informed(1, 0, "potrs info", type);
    keep(&l, upper, 0);
    expect(product(&l, upper ? 2 : 0, &l, upper ? 0 : 2, &a, 0) < tolerance(type, n), "potrf", type);
    result(&v);
    expect(product(&a, 0, &v, 0, &b, 0) < tolerance(type, n), "potrs", type);
    CHECK(potri_bufferSize[type](solver, upper, n, inverse.device, inverse.ld, &length));
    CHECK(potri[type](solver, upper, n, inverse.device, inverse.ld, work(type, length), length, info));
    informed(1, 0, "potri info", type);
    result(&inverse);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            if (upper ? i > j : i < j) *at(&inverse, 0, i, j) = conj(*at(&inverse, 0, j, i));
    expect(product(&a, 0, &inverse, 0, 0, 0) < tolerance(type, n), "potri", type);
    drop(&a), drop(&l), drop(&b), drop(&v), drop(&inverse);
}

static void cholesky_batched(int type, int n, int gap, int upper) {
    matrix a = positive(type, n, n + gap, 4), l = duplicate(&a), b = packed(type, n, 1, n + gap, 4), v = duplicate(&b);
    int wanted[] = {0, 0, n, 0};
    *at(&l, 2, n - 1, n - 1) = -1; /* Not positive in the last place. */
    upload(&l);
    CHECK(potrfBatched[type](solver, upper, n, addresses(&l), l.ld, info, 4));
    informed(4, wanted, "potrfBatched info", type);
    CHECK(potrsBatched[type](solver, upper, n, 1, addresses(&l), l.ld, addresses(&v), v.ld, info, 4));
    informed(1, 0, "potrsBatched info", type);
    result(&l), result(&v), keep(&l, upper, 0);
    for (int k = 0; k < 4; k++) {
        if (k == 2) continue;
        expect(product(&l, upper ? 2 : 0, &l, upper ? 0 : 2, &a, k) < tolerance(type, n), "potrfBatched", type);
        expect(product(&a, 0, &v, 0, &b, k) < tolerance(type, n), "potrsBatched", type);
    }
    drop(&a), drop(&l), drop(&b), drop(&v);
}

static void lu(int type, int m, int n, int gap, int x) {
    matrix a = packed(type, m, n, m + gap, 1);
    for (int k = 0; k < m && k < n; k++) *at(&a, 0, k, (k + 1) % (m < n ? m : n)) += 9; /* Rows change places. */
    upload(&a);
    matrix f = duplicate(&a);
    int length = 0, k = m < n ? m : n, order[64];
    wide pivots[64];
    size_t bytes = 0, host = 0;
    void *device = room(64 * 8);
    if (x) {
        CHECK(cusolverDnXgetrf_bufferSize(solver, params, (wide)m, (wide)n, CUDA[type], f.device, (wide)f.ld, CUDA[type],
                                          &bytes, &host));
        CHECK(cusolverDnXgetrf(solver, params, (wide)m, (wide)n, CUDA[type], f.device, (wide)f.ld, device, CUDA[type],
                               room(bytes), bytes, (void *)0, (size_t)0, info));
        cudaMemcpy(pivots, device, sizeof pivots, 2);
    } else {
        int narrow[64];
        CHECK(getrf_bufferSize[type](solver, m, n, f.device, f.ld, &length));
        CHECK(getrf[type](solver, m, n, f.device, f.ld, work(type, length), device, info));
        cudaMemcpy(narrow, device, sizeof narrow, 2);
        for (int i = 0; i < k; i++) pivots[i] = narrow[i];
    }
    informed(1, 0, "getrf info", type);
    result(&f);
    for (int i = 0; i < m; i++) order[i] = i;
    for (int i = 0; i < k; i++) {
        int other = (int)pivots[i] - 1, was = order[i];
        expect(other >= i && other < m, "a pivot", type);
        order[i] = order[other], order[other] = was;
    }
    double worst = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            number sum = 0;
            for (int p = 0; p <= i && p <= j && p < k; p++) sum += (p == i ? 1 : *at(&f, 0, i, p)) * *at(&f, 0, p, j);
            double error = cabs(sum - *at(&a, 0, order[i], j));
            worst = error > worst || error != error ? error : worst;
        }
    expect(worst < tolerance(type, m + n), "getrf", type);
    for (int trans = 0; trans < 3 && m == n; trans++) {
        matrix b = make(type, n, 2, gap, 1), v = duplicate(&b);
        if (x)
            CHECK(cusolverDnXgetrs(solver, params, trans, (wide)n, (wide)2, CUDA[type], f.device, (wide)f.ld, device,
                                   CUDA[type], v.device, (wide)v.ld, info));
        else
            CHECK(getrs[type](solver, trans, n, 2, f.device, f.ld, device, v.device, v.ld, info));
        informed(1, 0, "getrs info", type);
        result(&v);
        expect(product(&a, trans, &v, 0, &b, 0) < tolerance(type, n), "getrs", type);
        drop(&b), drop(&v);
    }
    drop(&a), drop(&f), cudaFree(device);
}

static void qr(int type, int m, int n, int gap, int x) {
    matrix a = packed(type, m, n, m + gap, 1), f = duplicate(&a);
    int length = 0, k = m < n ? m : n;
    size_t bytes = 0, host = 0;
    void *tau = room((size_t)k * BYTES[type]);
    if (x) {
        CHECK(cusolverDnXgeqrf_bufferSize(solver, params, (wide)m, (wide)n, CUDA[type], f.device, (wide)f.ld, CUDA[type], tau,
                                          CUDA[type], &bytes, &host));
        CHECK(cusolverDnXgeqrf(solver, params, (wide)m, (wide)n, CUDA[type], f.device, (wide)f.ld, CUDA[type], tau,
                               CUDA[type], room(bytes), bytes, (void *)0, (size_t)0, info));
    } else {
        CHECK(geqrf_bufferSize[type](solver, m, n, f.device, f.ld, &length));
        CHECK(geqrf[type](solver, m, n, f.device, f.ld, tau, work(type, length), length, info));
    }
    informed(1, 0, "geqrf info", type);
    result(&f);
    matrix r = duplicate(&f), whole = packed(type, m, m, m + gap, 1), again;
    keep(&r, 1, 0);
    /* All of Q, by applying it to the identity; then from the right, and its adjoint from both sides. */
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++) *at(&whole, 0, i, j) = i == j;
    upload(&whole), again = duplicate(&whole);
    int adjoint = is_complex(type) ? 2 : 1;
    for (int side = 0; side < 2; side++)
        for (int trans = 0; trans <= adjoint; trans += adjoint) {
            upload(&whole);
            CHECK(ormqr_bufferSize[type](solver, side, trans, m, m, k, f.device, f.ld, tau, whole.device, whole.ld, &length));
            CHECK(ormqr[type](solver, side, trans, m, m, k, f.device, f.ld, tau, whole.device, whole.ld, work(type, length),
                              length, info));
            informed(1, 0, "ormqr info", type);
            result(&whole);
            expect(product(&whole, 2, &whole, 0, 0, 0) < tolerance(type, m), "ormqr's Q", type);
            expect(product(&whole, trans ? 2 : 0, &r, 0, &a, 0) < tolerance(type, m), "ormqr", type);
            memcpy(whole.value, again.value, sizeof *whole.value * m * m);
        }
    if (m >= n) {
        matrix q = duplicate(&f);
        CHECK(orgqr_bufferSize[type](solver, m, n, k, q.device, q.ld, tau, &length));
        CHECK(orgqr[type](solver, m, n, k, q.device, q.ld, tau, work(type, length), length, info));
        informed(1, 0, "orgqr info", type);
        result(&q);
        matrix square = r;
        square.rows = n;
        number *values = calloc(n * n, sizeof *values);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) values[j * n + i] = *at(&r, 0, i, j);
        square.value = values;
        expect(product(&q, 2, &q, 0, 0, 0) < tolerance(type, m), "orgqr's Q", type);
        expect(product(&q, 0, &square, 0, &a, 0) < tolerance(type, m), "orgqr", type);
        free(values), drop(&q);
    }
    drop(&a), drop(&f), drop(&r), drop(&whole), drop(&again), cudaFree(tau);
}

/* syevd, syevj, syevjBatched, Xsyevd, XsyevBatched. */
static void symmetric(int type, int n, int gap, int upper, int vectors, int which) {
    int count = which == 2 || which == 4 ? 3 : 1, length = 0;
    matrix a = positive(type, n, n + gap, count), v = duplicate(&a), w = packed(real_of(type), n, 1, n, count);
    /* What lies in the other triangle does not count. */
    for (int b = 0; b < count; b++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                if (upper ? i > j : i < j) *at(&v, b, i, j) = 77;
    upload(&v);
    size_t bytes = 0, host = 0;
    switch (which) {
    case 0:
        CHECK(syevd_bufferSize[type](solver, vectors, upper, n, v.device, v.ld, w.device, &length));
        CHECK(syevd[type](solver, vectors, upper, n, v.device, v.ld, w.device, work(type, length), length, info));
        break;
    case 1:
        CHECK(syevj_bufferSize[type](solver, vectors, upper, n, v.device, v.ld, w.device, &length, jacobi));
        CHECK(syevj[type](solver, vectors, upper, n, v.device, v.ld, w.device, work(type, length), length, info, jacobi));
        break;
    case 2:
        CHECK(syevjBatched_bufferSize[type](solver, vectors, upper, n, v.device, v.ld, w.device, &length, jacobi, count));
        CHECK(syevjBatched[type](solver, vectors, upper, n, v.device, v.ld, w.device, work(type, length), length, info,
                                 jacobi, count));
        break;
    case 3:
        CHECK(cusolverDnXsyevd_bufferSize(solver, params, vectors, upper, (wide)n, CUDA[type], v.device, (wide)v.ld,
                                          CUDA[w.type], w.device, CUDA[type], &bytes, &host));
        CHECK(cusolverDnXsyevd(solver, params, vectors, upper, (wide)n, CUDA[type], v.device, (wide)v.ld, CUDA[w.type],
                               w.device, CUDA[type], room(bytes), bytes, (void *)0, (size_t)0, info));
        break;
    default:
        CHECK(cusolverDnXsyevBatched_bufferSize(solver, params, vectors, upper, (wide)n, CUDA[type], v.device, (wide)v.ld,
                                                CUDA[w.type], w.device, CUDA[type], &bytes, &host, (wide)count));
        CHECK(cusolverDnXsyevBatched(solver, params, vectors, upper, (wide)n, CUDA[type], v.device, (wide)v.ld, CUDA[w.type],
                                     w.device, CUDA[type], room(bytes), bytes, (void *)0, (size_t)0, info, (wide)count));
    }
    informed(count, 0, "syev info", type);
    result(&v), result(&w);
    for (int b = 0; b < count; b++) {
        double trace = 0, sum = 0;
        for (int i = 0; i < n; i++) {
            trace += creal(*at(&a, b, i, i)), sum += creal(*at(&w, b, i, 0));
            expect(!i || creal(*at(&w, b, i - 1, 0)) <= creal(*at(&w, b, i, 0)), "the order of eigenvalues", type);
        }
        expect(fabs(trace - sum) < tolerance(type, n) * n, "the trace", type);
        if (!vectors) continue;
        expect(product(&v, 2, &v, 0, 0, b) < tolerance(type, n), "eigenvectors", type);
        matrix scaled = make(type, n, n, 0, count);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) *at(&scaled, b, i, j) = *at(&v, b, i, j) * *at(&w, b, j, 0);
        expect(product(&a, 0, &v, 0, &scaled, b) < tolerance(type, n) * n, "syev", type);
        drop(&scaled);
    }
    drop(&a), drop(&v), drop(&w);
}

/* gesvd, gesvdj, gesvdjBatched, gesvdaStridedBatched, Xgesvd, Xgesvdp. `all`: whole bases. */
static void singular(int type, int m, int n, int gap, int all, int which) {
    int count = which == 2 || which == 3 ? 3 : 1, length = 0, k = m < n ? m : n, by_rows = which == 0 || which == 4;
    if (which == 2) all = 1;
    if (which == 3) all = 0;
    if (by_rows && m < n) return;
    matrix a = packed(type, m, n, m + gap, count), f = duplicate(&a), s = packed(real_of(type), k, 1, k, count);
    matrix u = packed(type, m, all ? m : k, m + gap, count);
    matrix v = by_rows ? packed(type, all ? n : k, n, (all ? n : k) + gap, 1) : packed(type, n, all ? n : k, n + gap, count);
    size_t bytes = 0, host = 0;
    double left[3] = {-1, -1, -1};
    int letter = all ? 'A' : 'S', real = CUDA[s.type], kind = CUDA[type];
    switch (which) {
    case 0:
        CHECK(gesvd_bufferSize[type](solver, m, n, &length));
        CHECK(gesvd[type](solver, letter, letter, m, n, f.device, f.ld, s.device, u.device, u.ld, v.device, v.ld,
                          work(type, length), length, (void *)0, info));
        break;
    case 1:
        CHECK(gesvdj_bufferSize[type](solver, 1, !all, m, n, f.device, f.ld, s.device, u.device, u.ld, v.device, v.ld,
                                      &length, jacobi_svd));
        CHECK(gesvdj[type](solver, 1, !all, m, n, f.device, f.ld, s.device, u.device, u.ld, v.device, v.ld,
                           work(type, length), length, info, jacobi_svd));
        break;
    case 2:
        CHECK(gesvdjBatched_bufferSize[type](solver, 1, m, n, f.device, f.ld, s.device, u.device, u.ld, v.device, v.ld,
                                             &length, jacobi_svd, count));
        CHECK(gesvdjBatched[type](solver, 1, m, n, f.device, f.ld, s.device, u.device, u.ld, v.device, v.ld,
                                  work(type, length), length, info, jacobi_svd, count));
        break;
    case 3:
        CHECK(gesvdaStridedBatched_bufferSize[type](solver, 1, k, m, n, f.device, f.ld, (wide)f.stride, s.device, (wide)k,
                                                    u.device, u.ld, (wide)u.stride, v.device, v.ld, (wide)v.stride, &length,
                                                    count));
        CHECK(gesvdaStridedBatched[type](solver, 1, k, m, n, f.device, f.ld, (wide)f.stride, s.device, (wide)k, u.device,
                                         u.ld, (wide)u.stride, v.device, v.ld, (wide)v.stride, work(type, length), length,
                                         info, left, count));
        for (int b = 0; b < count; b++) expect(left[b] == 0, "what is left out", type);
        compare(&f, "the input of gesvda", 0);
        break;
    case 4:
        CHECK(cusolverDnXgesvd_bufferSize(solver, params, letter, letter, (wide)m, (wide)n, kind, f.device, (wide)f.ld,
                                          real, s.device, kind, u.device, (wide)u.ld, kind, v.device, (wide)v.ld, kind,
                                          &bytes, &host));
        CHECK(cusolverDnXgesvd(solver, params, letter, letter, (wide)m, (wide)n, kind, f.device, (wide)f.ld, real,
                               s.device, kind, u.device, (wide)u.ld, kind, v.device, (wide)v.ld, kind, room(bytes), bytes,
                               (void *)0, (size_t)0, info));
        break;
    default:
        CHECK(cusolverDnXgesvdp_bufferSize(solver, params, 1, !all, (wide)m, (wide)n, kind, f.device, (wide)f.ld, real,
                                           s.device, kind, u.device, (wide)u.ld, kind, v.device, (wide)v.ld, kind, &bytes,
                                           &host));
        CHECK(cusolverDnXgesvdp(solver, params, 1, !all, (wide)m, (wide)n, kind, f.device, (wide)f.ld, real, s.device, kind,
                                u.device, (wide)u.ld, kind, v.device, (wide)v.ld, kind, room(bytes), bytes, (void *)0,
                                (size_t)0, info, left));
    }
    informed(count, 0, "svd info", type);
    result(&s), result(&u), result(&v);
    for (int b = 0; b < count; b++) {
        expect(product(&u, 2, &u, 0, 0, b) < tolerance(type, m), "left vectors", type);
        expect(product(&v, by_rows ? 0 : 2, &v, by_rows ? 2 : 0, 0, b) < tolerance(type, n), "right vectors", type);
        double worst = 0;
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                number sum = 0;
                for (int p = 0; p < k; p++)
                    sum += *at(&u, b, i, p) * *at(&s, b, p, 0) * (by_rows ? *at(&v, b, p, j) : conj(*at(&v, b, j, p)));
                double error = cabs(sum - *at(&a, b, i, j));
                worst = error > worst || error != error ? error : worst;
            }
        expect(worst < tolerance(type, m + n), "svd", type);
        for (int p = 1; p < k; p++)
            expect(creal(*at(&s, b, p, 0)) <= creal(*at(&s, b, p - 1, 0)), "the order of singular values", type);
    }
    drop(&a), drop(&f), drop(&s), drop(&u), drop(&v);
}

static void general(int type, int n, int gap, int complex_values) {
    matrix a = packed(type, n, n, n + gap, 1), f = duplicate(&a), v = packed(type, n, n, n + gap, 1);
    int kind = complex_values ? is_complex(type) ? type : type == S ? C : Z : type;
    matrix w = packed(kind, complex_values ? n : 2 * n, 1, complex_values ? n : 2 * n, 1);
    size_t bytes = 0, host = 0;
    CHECK(cusolverDnXgeev_bufferSize(solver, params, 0, 1, (wide)n, CUDA[type], f.device, (wide)f.ld, CUDA[kind], w.device,
                                     CUDA[type], (void *)0, (wide)n, CUDA[type], v.device, (wide)v.ld, CUDA[type], &bytes,
                                     &host));
    CHECK(cusolverDnXgeev(solver, params, 0, 1, (wide)n, CUDA[type], f.device, (wide)f.ld, CUDA[kind], w.device, CUDA[type],
                          (void *)0, (wide)n, CUDA[type], v.device, (wide)v.ld, CUDA[type], room(bytes), bytes, (void *)0,
                          (size_t)0, info));
    informed(1, 0, "geev info", type);
    result(&w), result(&v);
    for (int j = 0; j < n; j++) {
        number value = complex_values ? *at(&w, 0, j, 0) : *at(&w, 0, j, 0) + *at(&w, 0, n + j, 0) * _Complex_I;
        int pair = !is_complex(type) && cimag(value) > 0;
        double worst = 0, norm = 0;
        for (int i = 0; i < n; i++) {
            number sum = 0, x = 0;
            for (int k = 0; k < n; k++) {
                number element = *at(&v, 0, k, j) + (pair ? *at(&v, 0, k, j + 1) * _Complex_I : 0);
                sum += *at(&a, 0, i, k) * element;
                if (k == i) x = element;
            }
            norm += creal(x * conj(x));
            double error = cabs(sum - value * x);
            worst = error > worst || error != error ? error : worst;
        }
        expect(worst < tolerance(type, n) * 50, "geev", type);
        expect(fabs(norm - 1) < tolerance(type, n), "the length of an eigenvector", type);
        if (pair) {
            number other = complex_values ? *at(&w, 0, j + 1, 0) : *at(&w, 0, j + 1, 0) + *at(&w, 0, n + j + 1, 0) * _Complex_I;
            expect(other == conj(value), "a pair of eigenvalues", type);
            j++;
        }
    }
    drop(&a), drop(&f), drop(&v), drop(&w);
}

static void all(void) {
    static const int SIZES[] = {1, 2, 5, 12};
    for (int type = S; type <= Z; type++)
        for (int at = 0; at < 4; at++) {
            int n = SIZES[at], gap = at % 2 * 3;
            for (int upper = 0; upper < 2; upper++) {
                cholesky(type, n, gap, upper, 0), cholesky(type, n, gap, upper, 1);
                cholesky_batched(type, n, gap, upper);
                for (int which = 0; which < 5; which++)
                    for (int vectors = 0; vectors < 2; vectors++) symmetric(type, n, gap, upper, vectors, which);
            }
            for (int more = -1; more < 4; more += 2)
                for (int x = 0; x < 2; x++) {
                    int m = n + more > 0 ? n + more : n;
                    lu(type, m, n, gap, x), lu(type, n, n, gap, x), qr(type, m, n, gap, x);
                    for (int which = 0; which < 6; which++) singular(type, m, n, gap, x, which);
                }
            general(type, n, gap, 1);
            if (!is_complex(type)) general(type, n, gap, 0);
        }
    /* What has no answer says so. */
    matrix zero = packed(D, 3, 3, 3, 1);
    for (int k = 0; k < 9; k++) zero.value[k] = 0;
    upload(&zero);
    int length, one = 1;
    CHECK(getrf_bufferSize[D](solver, 3, 3, zero.device, 3, &length));
    CHECK(getrf[D](solver, 3, 3, zero.device, 3, work(D, length), (void *)0, info));
    informed(1, &one, "a singular matrix", D);
    CHECK(potrf_bufferSize[D](solver, 0, 3, zero.device, 3, &length));
    CHECK(potrf[D](solver, 0, 3, zero.device, 3, work(D, length), length, info));
    informed(1, &one, "a matrix that is not positive", D);
    expect(potrf[D](solver, 0, 3, zero.device, 2, work(D, length), length, info) == 3, "a leading dimension", D);
    expect(potrf[D](solver, 0, 3, zero.device, 3, work(D, length), 0, info) == 3, "a workspace that is too small", D);
    expect(potrf[D]((void *)0, 0, 3, zero.device, 3, work(D, length), length, info) == 1, "no handle", D);
}

int main(void) {
    begin();
    all();
    printf("%d comparisons, %d failed\n", checks, failures);
    return failures > 0;
}
