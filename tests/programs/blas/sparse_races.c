/* cuSPARSE's functions, each once. `races N`: with a race on its operand N; `fixed`: in order. */
#include "sparse.h"

static const char *once(int at, int type) {
    sparse a = new_sparse(type, ROWS, 6, 6, 0, 0);
    for (int i = 0; i < 6; i++) *cell(&a, i, i) = 1;
    from_dense(&a);
    int bytes = BYTES[type], kind = CUDA[type], n = a.entries;
    matrix b = make(type, 6, 3, 2, 1), c = make(type, 6, 3, 2, 1);
    char alpha[16], beta[16];
    factor(type, alpha, 1), factor(type, beta, 0);
    descr db = dense_of(&b, 0), dc = dense_of(&c, 0), x, y, of;
    CHECK(cusparseCreateDnVec(&x, (wide)6, b.device, kind));
    CHECK(cusparseCreateDnVec(&y, (wide)6, c.device, kind));
    size_t size = 0;
    void *buffer, *rows = room(n * 4), *order = room(n * 4), *firsts = room(7 * 4);
#define MATRIX operand(a.first, 7 * 4, 'r'), operand(a.second, n * 4, 'r'), operand(a.values, n *bytes, 'r')
#define GAPS(m) leaves((m).device + 6 * bytes, 2 * bytes), leaves((m).device + 14 * bytes, 2 * bytes)
    switch (at) {
    case 0:
        CHECK(cusparseSpMV_bufferSize(handle, 0, alpha, a.descr, x, beta, y, kind, 0, &size));
        buffer = room(size);
        MATRIX, operand(c.device, 6 * bytes, 'w'), operand(b.device, 6 * bytes, 'p'), operand(buffer, size, 's');
        GAPS(b), GAPS(c), ready();
        CHECK(cusparseSpMV(handle, 0, alpha, a.descr, x, beta, y, kind, 0, buffer));
        return "SpMV";
    case 1:
        CHECK(cusparseSpMM_bufferSize(handle, 0, 0, alpha, a.descr, db, beta, dc, kind, 0, &size));
        buffer = room(size);
        MATRIX, operand(c.device, 6 * bytes, 'w'), operand(b.device, 6 * bytes, 'p'), operand(buffer, size, 's');
        GAPS(b), GAPS(c), ready();
        CHECK(cusparseSpMM(handle, 0, 0, alpha, a.descr, db, beta, dc, kind, 0, buffer));
        return "SpMM";
    case 2:
        CHECK(cusparseSDDMM_bufferSize(handle, 0, 1, alpha, db, dc, beta, a.descr, kind, 0, &size));
        buffer = room(size);
        operand(a.first, 7 * 4, 'r'), operand(a.second, n * 4, 'r'), operand(a.values, n * bytes, 'w');
        operand(b.device, 6 * bytes, 'p'), operand(c.device, 6 * bytes, 'p'), operand(buffer, size, 's');
        GAPS(b), GAPS(c), ready();
        CHECK(cusparseSDDMM(handle, 0, 1, alpha, db, dc, beta, a.descr, kind, 0, buffer));
        return "SDDMM";
    case 3:
        CHECK(cusparseSpSV_createDescr(&of));
        CHECK(cusparseSpSV_bufferSize(handle, 0, alpha, a.descr, x, y, kind, 0, of, &size));
        buffer = room(size);
        CHECK(cusparseSpSV_analysis(handle, 0, alpha, a.descr, x, y, kind, 0, of, buffer));
        MATRIX, operand(c.device, 6 * bytes, 'w'), operand(b.device, 6 * bytes, 'r'), operand(buffer, size, 's');
        GAPS(b), GAPS(c), ready();
        CHECK(cusparseSpSV_solve(handle, 0, alpha, a.descr, x, y, kind, 0, of));
        return "SpSV_solve";
    case 4:
        CHECK(cusparseSpSM_createDescr(&of));
        CHECK(cusparseSpSM_bufferSize(handle, 0, 0, alpha, a.descr, db, dc, kind, 0, of, &size));
        buffer = room(size);
        CHECK(cusparseSpSM_analysis(handle, 0, 0, alpha, a.descr, db, dc, kind, 0, of, buffer));
        MATRIX, operand(c.device, 6 * bytes, 'w'), operand(b.device, 6 * bytes, 'r'), operand(buffer, size, 's');
        GAPS(b), GAPS(c), ready();
        CHECK(cusparseSpSM_solve(handle, 0, 0, alpha, a.descr, db, dc, kind, 0, of));
        return "SpSM_solve";
    case 5: { /* The result is stored by the last call; the others wait. */
        sparse square = {type, ROWS, 6, 6, 0, 0, 0, 0, firsts};
        square.descr = described(&square);
        size_t two = 0;
        wide entries, side;
        CHECK(cusparseSpGEMM_createDescr(&of));
#define SQUARE handle, 0, 0, alpha, a.descr, a.descr, beta, square.descr, kind, 0, of
        CHECK(cusparseSpGEMM_workEstimation(SQUARE, &size, (void *)0));
        CHECK(cusparseSpGEMM_workEstimation(SQUARE, &size, room(size)));
        CHECK(cusparseSpGEMM_compute(SQUARE, &two, (void *)0));
        buffer = room(two);
        CHECK(cusparseSpGEMM_compute(SQUARE, &two, buffer));
        CHECK(cusparseSpMatGetSize(square.descr, &side, &side, &entries));
        void *columns = room(entries * 4), *values = room(entries * bytes);
        CHECK(cusparseCsrSetPointers(square.descr, firsts, columns, values));
        operand(firsts, 7 * 4, 'w'), operand(columns, entries * 4, 'w'), operand(values, entries * bytes, 'w');
        operand(buffer, two, 's'), leaves(a.first, 7 * 4), leaves(a.second, n * 4), leaves(a.values, n * bytes), ready();
        CHECK(cusparseSpGEMM_copy(SQUARE));
        CHECK(cusparseSpGEMM_destroyDescr(of)); /* While its result is still to be stored. */
        return "SpGEMM_copy";
    }
    case 6:
        CHECK(cusparseXcsr2coo(handle, a.first, n, 6, rows, 0));
        operand(rows, n * 4, 'r'), operand(firsts, 7 * 4, 'w'), ready();
        CHECK(cusparseXcoo2csr(handle, rows, n, 6, firsts, 0));
        return "Xcoo2csr";
    case 7:
        operand(a.first, 7 * 4, 'r'), operand(rows, n * 4, 'w'), ready();
        CHECK(cusparseXcsr2coo(handle, a.first, n, 6, rows, 0));
        return "Xcsr2coo";
    case 8:
        CHECK(cusparseXcoosort_bufferSizeExt(handle, 6, 6, n, rows, a.second, &size));
        buffer = room(size);
        operand(rows, n * 4, 'w'), operand(a.second, n * 4, 'w'), operand(order, n * 4, 'w'), operand(buffer, size, 's');
        ready();
        CHECK(cusparseXcoosortByRow(handle, 6, 6, n, rows, a.second, order, buffer));
        return "XcoosortByRow";
    case 9:
        CHECK(cusparseCreateMatDescr(&of));
        CHECK(cusparseXcsrsort_bufferSizeExt(handle, 6, 6, n, a.first, a.second, &size));
        buffer = room(size);
        operand(a.first, 7 * 4, 'r'), operand(a.second, n * 4, 'w'), operand(order, n * 4, 'w'), operand(buffer, size, 's');
        ready();
        CHECK(cusparseXcsrsort(handle, 6, 6, n, of, a.first, a.second, order, buffer));
        return "Xcsrsort";
    case 10: {
        void *values = room(n * bytes);
        CHECK(cusparseCsr2cscEx2_bufferSize(handle, 6, 6, n, a.values, a.first, a.second, values, firsts, rows, kind, 1, 0, 1,
                                            &size));
        buffer = room(size);
        MATRIX, operand(firsts, 7 * 4, 'w'), operand(rows, n * 4, 'w'), operand(values, n * bytes, 'w');
        operand(buffer, size, 's'), ready();
        CHECK(cusparseCsr2cscEx2(handle, 6, 6, n, a.values, a.first, a.second, values, firsts, rows, kind, 1, 0, 1, buffer));
        return "Csr2cscEx2";
    }
    case 11: {
        matrix d = make(type, 6, 6, 2, 1);
        descr dense = dense_of(&d, 0);
        CHECK(cusparseSparseToDense_bufferSize(handle, a.descr, dense, 0, &size));
        buffer = room(size);
        MATRIX, operand(d.device, 6 * bytes, 'w'), operand(buffer, size, 's'), GAPS(d), ready();
        CHECK(cusparseSparseToDense(handle, a.descr, dense, 0, buffer));
        return "SparseToDense";
    }
    case 12: {
        int places[] = {1, 4};
        void *indices = filled(places, sizeof places);
        CHECK(cusparseCreateSpVec(&of, (wide)6, (wide)2, indices, c.device, 2, 0, kind));
        operand(indices, 8, 'r'), operand(c.device, 2 * bytes, 'w'), operand(b.device, 6 * bytes, 'p'), GAPS(b), ready();
        CHECK(cusparseGather(handle, x, of));
        return "Gather";
    }
    case 13: {
        descr matrix_of;
        int total;
        CHECK(cusparseCreateMatDescr(&matrix_of));
        CHECK(csrgeam2_bufferSizeExt[type](handle, 6, 6, alpha, matrix_of, n, a.values, a.first, a.second, beta, matrix_of, n,
                                           a.values, a.first, a.second, matrix_of, a.values, firsts, rows, &size));
        buffer = room(size);
        CHECK(cusparseXcsrgeam2Nnz(handle, 6, 6, matrix_of, n, a.first, a.second, matrix_of, n, a.first, a.second, matrix_of,
                                   firsts, &total, buffer));
        void *values = room(n * bytes);
        MATRIX, operand(firsts, 7 * 4, 'r'), operand(rows, n * 4, 'w'), operand(values, n * bytes, 'w');
        operand(buffer, size, 's'), ready();
        CHECK(csrgeam2[type](handle, 6, 6, alpha, matrix_of, n, a.values, a.first, a.second, beta, matrix_of, n, a.values,
                             a.first, a.second, matrix_of, values, firsts, rows, buffer));
        return "csrgeam2";
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
            if (kind) printf("%c cusparse%s%s\n", kind, *name == 'c' ? &"S\0D\0C\0Z"[2 * type] : "", name);
        }
    }
    return 0;
}
