/* cuSOLVER's functions, each once. `races N`: with a race on its operand N; `fixed`: in order. */
#include "solvers.h"

enum { N = 6, LD = 8 };

/* What lies between the columns of a matrix, and one of its triangles without the diagonal: 1 the
   lower, 2 the upper one. */
static void around(const matrix *m, int triangle) {
    int bytes = BYTES[m->type];
    for (int j = 0; j < m->columns; j++) {
        char *column = m->device + (long)j * m->ld * bytes;
        if (m->ld > m->rows && j + 1 < m->columns) leaves(column + m->rows * bytes, (m->ld - m->rows) * bytes);
        if (triangle == 2) leaves(column, j * bytes);
        if (triangle == 1 && j + 1 < m->rows) leaves(column + (j + 1) * bytes, (m->rows - j - 1) * bytes);
    }
}
/* One column of a matrix as an operand: the first of its triangle. */
static void column(const matrix *m, char kind) { operand(m->device, m->rows * BYTES[m->type], kind); }

/* Each function once. The call is made where `ready` is. */
static const char *once(int at, int type) {
    int length = 0, bytes = BYTES[type], real = BYTES[real_of(type)];
    matrix a = positive(type, N, LD, 1), b = packed(type, N, 2, LD, 1), c = packed(type, N, N, LD, 1);
    void *buffer, *tau = room(N * bytes), *values = room(N * real);
    int *pivots = room(N * 4), one[N] = {1, 2, 3, 4, 5, 6};
    cudaMemcpy(pivots, one, sizeof one, 1);
    switch (at) {
    case 0:
        CHECK(potrf_bufferSize[type](solver, 0, N, a.device, LD, &length));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), around(&a, 2), ready();
        CHECK(potrf[type](solver, 0, N, a.device, LD, buffer, length, info));
        return "potrf";
    case 1:
        column(&b, 'w'), operand(info, 4, 'w'), column(&a, 'r'), around(&a, 2), around(&b, 0), ready();
        CHECK(potrs[type](solver, 0, N, 2, a.device, LD, b.device, LD, info));
        return "potrs";
    case 2:
        CHECK(potri_bufferSize[type](solver, 1, N, a.device, LD, &length));
        buffer = work(type, length);
        operand(a.device + LD * bytes, 2 * bytes, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's');
        around(&a, 1), ready();
        CHECK(potri[type](solver, 1, N, a.device, LD, buffer, length, info));
        return "potri";
    case 3: {
        void *list = addresses(&a);
        column(&a, 'w'), operand(info, 4, 'w'), operand(list, 8, 'r'), around(&a, 0), ready();
        CHECK(potrfBatched[type](solver, 0, N, list, LD, info, 1));
        return "potrfBatched";
    }
    case 4:
        CHECK(getrf_bufferSize[type](solver, N, N, a.device, LD, &length));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(pivots, N * 4, 'w');
        around(&a, 0), ready();
        CHECK(getrf[type](solver, N, N, a.device, LD, buffer, pivots, info));
        return "getrf";
    case 5:
        column(&b, 'w'), operand(info, 4, 'w'), column(&a, 'r'), operand(pivots, N * 4, 'r'), around(&a, 0), around(&b, 0);
        ready();
        CHECK(getrs[type](solver, 0, N, 2, a.device, LD, pivots, b.device, LD, info));
        return "getrs";
    case 6:
        CHECK(geqrf_bufferSize[type](solver, N, N, a.device, LD, &length));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(tau, N * bytes, 'w');
        around(&a, 0), ready();
        CHECK(geqrf[type](solver, N, N, a.device, LD, tau, buffer, length, info));
        return "geqrf";
    case 7:
        CHECK(orgqr_bufferSize[type](solver, N, N, N, a.device, LD, tau, &length));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(tau, N * bytes, 'r');
        around(&a, 0), ready();
        CHECK(orgqr[type](solver, N, N, N, a.device, LD, tau, buffer, length, info));
        return is_complex(type) ? "ungqr" : "orgqr";
    case 8: /* R, above the reflectors, is another's. */
        CHECK(ormqr_bufferSize[type](solver, 0, 0, N, N, N, a.device, LD, tau, c.device, LD, &length));
        buffer = work(type, length);
        column(&c, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(tau, N * bytes, 'r');
        operand(a.device + bytes, (N - 1) * bytes, 'r'), around(&a, 2), around(&c, 0), leaves(a.device, bytes), ready();
        CHECK(ormqr[type](solver, 0, 0, N, N, N, a.device, LD, tau, c.device, LD, buffer, length, info));
        return is_complex(type) ? "unmqr" : "ormqr";
    case 9:
        CHECK(syevd_bufferSize[type](solver, 1, 0, N, a.device, LD, values, &length));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(values, N * real, 'w');
        around(&a, 0), ready();
        CHECK(syevd[type](solver, 1, 0, N, a.device, LD, values, buffer, length, info));
        return is_complex(type) ? "heevd" : "syevd";
    case 10: /* Without vectors, one triangle. */
        CHECK(syevj_bufferSize[type](solver, 0, 0, N, a.device, LD, values, &length, jacobi));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(values, N * real, 'w');
        around(&a, 2), ready();
        CHECK(syevj[type](solver, 0, 0, N, a.device, LD, values, buffer, length, info, jacobi));
        return is_complex(type) ? "heevj" : "syevj";
    case 11: {
        matrix u = packed(type, N, N, LD, 1);
        CHECK(gesvd_bufferSize[type](solver, N, N, &length));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(values, N * real, 'w');
        column(&c, 'w'), column(&u, 'w'), around(&a, 0), around(&u, 0), ready();
        CHECK(gesvd[type](solver, 'A', 'A', N, N, a.device, LD, values, u.device, LD, c.device, LD, buffer, length, (void *)0,
                          info));
        return "gesvd";
    }
    case 12: /* Without vectors, these are not touched. */
        CHECK(gesvdj_bufferSize[type](solver, 0, 1, N, N, a.device, LD, values, c.device, LD, b.device, LD, &length,
                                      jacobi_svd));
        buffer = work(type, length);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, (size_t)length * bytes, 's'), operand(values, N * real, 'w');
        around(&a, 0), leaves(c.device, N * bytes), leaves(b.device, N * bytes), ready();
        CHECK(gesvdj[type](solver, 0, 1, N, N, a.device, LD, values, c.device, LD, b.device, LD, buffer, length, info,
                           jacobi_svd));
        return "gesvdj";
    case 13: {
        size_t device = 0, host = 0;
        CHECK(cusolverDnXpotrf_bufferSize(solver, params, 0, (wide)N, CUDA[type], a.device, (wide)LD, CUDA[type], &device,
                                          &host));
        buffer = room(device);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, device, 's'), around(&a, 2), ready();
        CHECK(cusolverDnXpotrf(solver, params, 0, (wide)N, CUDA[type], a.device, (wide)LD, CUDA[type], buffer, device,
                               (void *)0, (size_t)0, info));
        return "Xpotrf";
    }
    case 14: {
        size_t device = 0, host = 0;
        void *complexes = room(N * 2 * bytes);
        int kind = is_complex(type) ? type : type == S ? C : Z;
        CHECK(cusolverDnXgeev_bufferSize(solver, params, 0, 1, (wide)N, CUDA[type], a.device, (wide)LD, CUDA[kind],
                                         complexes, CUDA[type], (void *)0, (wide)N, CUDA[type], c.device, (wide)LD,
                                         CUDA[type], &device, &host));
        buffer = room(device);
        column(&a, 'w'), operand(info, 4, 'w'), operand(buffer, device, 's'), operand(complexes, N * BYTES[kind], 'w');
        column(&c, 'w'), around(&a, 0), around(&c, 0), ready();
        CHECK(cusolverDnXgeev(solver, params, 0, 1, (wide)N, CUDA[type], a.device, (wide)LD, CUDA[kind], complexes,
                              CUDA[type], (void *)0, (wide)N, CUDA[type], c.device, (wide)LD, CUDA[type], buffer, device,
                              (void *)0, (size_t)0, info));
        return "Xgeev";
    }
    default: return 0;
    }
}

int main(int argc, char **argv) {
    begin();
    int which = argc > 2 ? atoi(argv[2]) : -1;
    for (int type = S; type <= Z; type++) {
        /* A race once for each function: of another type for each operand. */
        if (which >= 0 && type != which % 4) continue;
        const char *name;
        for (int at = 0; (name = once(at, type)); at++) {
            char kind = meet(which);
            if (kind) printf("%c cusolverDn%s%s\n", kind, *name == 'X' ? "" : &"S\0D\0C\0Z"[2 * type], name);
        }
    }
    return 0;
}
