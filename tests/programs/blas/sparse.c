/* cuSPARSE on the simulated GPU: every function, over types, formats, bases and operations, against
   loops. */
#include "sparse.h"

/* What the arrays of a sparse matrix by rows say. */
static void expect_sparse(const sparse *m, const number *dense, const char *what) {
    long count = m->entries, n = m->format == PLACES ? count : firsts(m);
    char *first = malloc(n * 8 + 8), *second = malloc(count * 8 + 8), *values = malloc(count * 16 + 16);
    cudaMemcpy(first, m->first, n * width(m), 2), cudaMemcpy(second, m->second, count * width(m), 2);
    cudaMemcpy(values, m->values, count * BYTES[m->type], 2);
#define INDEX(array, k) ((m->wide_index ? ((int64_t *)array)[k] : ((int32_t *)array)[k]) - m->base)
    number *found = calloc((size_t)m->rows * m->columns + 1, sizeof *found);
    int good = 1, outer = 0, by_columns = m->format == COLUMNS;
    for (long k = 0; k < count; k++) {
        if (m->format == PLACES) outer = (int)INDEX(first, k);
        else
            while (outer < n - 1 && INDEX(first, outer + 1) <= k) outer++;
        int inner = (int)INDEX(second, k), i = by_columns ? inner : outer, j = by_columns ? outer : inner;
        if (i < 0 || j < 0 || i >= m->rows || j >= m->columns) good = 0;
        else found[(size_t)j * m->rows + i] += element(m->type, values, k);
    }
    for (int k = 0; k < m->rows * m->columns; k++) good &= cabs(found[k] - dense[k]) < 1e-3;
    expect(good, what, m->type);
    free(first), free(second), free(values), free(found);
}

static number operated(const sparse *m, int operation, int i, int j) {
    number value = operation ? *cell(m, j, i) : *cell(m, i, j);
    return operation == 2 ? conj(value) : value;
}
/* Half precision computes in single. */
static int computes(int type) { return type == H || type == B ? S : type; }

static void spmm(int type, int format, int base, int wide_index, int op_a, int op_b, int by_rows, double beta, int count) {
    sparse a = new_sparse(type, format, 7, 5, base, wide_index);
    int m = op_a ? 5 : 7, k = op_a ? 7 : 5, n = 4, flip = (op_b != 0) ^ by_rows;
    /* `matrix` is by columns: one by rows is the transpose. */
    matrix b = make(type, flip ? n : k, flip ? k : n, 2, count), c = by_rows ? make(type, n, m, 1, count) : make(type, m, n, 1, count);
    char alpha[16], beta_value[16];
    factor(computes(type), alpha, 2), factor(computes(type), beta_value, beta);
    descr db = dense_of(&b, by_rows), dc = dense_of(&c, by_rows);
    size_t bytes;
    int compute = CUDA[computes(type)];
    CHECK(cusparseSpMM_bufferSize(handle, op_a, op_b, alpha, a.descr, db, beta_value, dc, compute, 0, &bytes));
    void *buffer = room(bytes);
    CHECK(cusparseSpMM_preprocess(handle, op_a, op_b, alpha, a.descr, db, beta_value, dc, compute, 0, buffer));
    CHECK(cusparseSpMM(handle, op_a, op_b, alpha, a.descr, db, beta_value, dc, compute, 0, buffer));
    for (int p = 0; p < count; p++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                number sum = 0, *to = by_rows ? at(&c, p, j, i) : at(&c, p, i, j);
                for (int x = 0; x < k; x++) {
                    number value = flip ? *at(&b, p, j, x) : *at(&b, p, x, j);
                    sum += operated(&a, op_a, i, x) * (op_b == 2 ? conj(value) : value);
                }
                *to = 2 * sum + beta * *to;
            }
    compare(&c, "SpMM", 1e-3);
    drop(&b), drop(&c);
}

static void spmv(int type, int format, int base, int op_a, double beta) {
    sparse a = new_sparse(type, format, 6, 9, base, 0);
    int m = op_a ? 9 : 6, k = op_a ? 6 : 9;
    matrix x = make(type, k, 1, 0, 1), y = make(type, m, 1, 0, 1);
    char alpha[16], beta_value[16];
    factor(computes(type), alpha, -1), factor(computes(type), beta_value, beta);
    descr dx, dy;
    CHECK(cusparseCreateDnVec(&dx, (wide)k, x.device, CUDA[type]));
    CHECK(cusparseCreateDnVec(&dy, (wide)m, y.device, CUDA[type]));
    size_t bytes;
    int compute = CUDA[computes(type)];
    CHECK(cusparseSpMV_bufferSize(handle, op_a, alpha, a.descr, dx, beta_value, dy, compute, 0, &bytes));
    CHECK(cusparseSpMV(handle, op_a, alpha, a.descr, dx, beta_value, dy, compute, 0, room(bytes)));
    for (int i = 0; i < m; i++) {
        number sum = 0;
        for (int j = 0; j < k; j++) sum += operated(&a, op_a, i, j) * *at(&x, 0, j, 0);
        *at(&y, 0, i, 0) = beta * *at(&y, 0, i, 0) - sum;
    }
    compare(&y, "SpMV", 1e-3);
    drop(&x), drop(&y);
}

static void sddmm(int type, int op_a, int op_b, double beta) {
    sparse c = new_sparse(type, ROWS, 6, 5, 0, 0);
    int k = 3;
    matrix a = make(type, op_a ? k : 6, op_a ? 6 : k, 1, 1), b = make(type, op_b ? 5 : k, op_b ? k : 5, 0, 1);
    char alpha[16], beta_value[16];
    factor(type, alpha, 3), factor(type, beta_value, beta);
    descr da = dense_of(&a, 0), db = dense_of(&b, 0);
    size_t bytes;
    CHECK(cusparseSDDMM_bufferSize(handle, op_a, op_b, alpha, da, db, beta_value, c.descr, CUDA[type], 0, &bytes));
    void *buffer = room(bytes);
    CHECK(cusparseSDDMM_preprocess(handle, op_a, op_b, alpha, da, db, beta_value, c.descr, CUDA[type], 0, buffer));
    CHECK(cusparseSDDMM(handle, op_a, op_b, alpha, da, db, beta_value, c.descr, CUDA[type], 0, buffer));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 5; j++) {
            number sum = 0;
            for (int x = 0; x < k; x++) sum += op(&a, 0, op_a, i, x) * op(&b, 0, op_b, x, j);
            if (*cell(&c, i, j) != 0) *cell(&c, i, j) = 3 * sum + beta * *cell(&c, i, j);
        }
    expect_sparse(&c, c.dense, "SDDMM");
    drop(&a), drop(&b);
}

/* A triangle with ones, or with others, on the diagonal; what lies beyond it does not count. */
static void triangular(int type, int format, int op_a, int upper, int unit, int columns) {
    enum { n = 6 };
    sparse a = new_sparse(type, format, n, n, 0, 0);
    for (int i = 0; i < n; i++) *cell(&a, i, i) = unit ? 5 : i % 2 ? 1 : -1;
    from_dense(&a);
    matrix b = make(type, n, columns, 0, 1), x = make(type, n, columns, 0, 1);
    char alpha[16];
    factor(type, alpha, 2);
    CHECK(cusparseSpMatSetAttribute(a.descr, 0, &upper, sizeof upper));
    CHECK(cusparseSpMatSetAttribute(a.descr, 1, &unit, sizeof unit));
    descr db, dx, solution;
    size_t bytes;
    if (columns == 1) {
        CHECK(cusparseCreateDnVec(&db, (wide)n, b.device, CUDA[type]));
        CHECK(cusparseCreateDnVec(&dx, (wide)n, x.device, CUDA[type]));
        CHECK(cusparseSpSV_createDescr(&solution));
        CHECK(cusparseSpSV_bufferSize(handle, op_a, alpha, a.descr, db, dx, CUDA[type], 0, solution, &bytes));
        CHECK(cusparseSpSV_analysis(handle, op_a, alpha, a.descr, db, dx, CUDA[type], 0, solution, room(bytes)));
        CHECK(cusparseSpSV_solve(handle, op_a, alpha, a.descr, db, dx, CUDA[type], 0, solution));
    } else {
        db = dense_of(&b, 0), dx = dense_of(&x, 0);
        CHECK(cusparseSpSM_createDescr(&solution));
        CHECK(cusparseSpSM_bufferSize(handle, op_a, 0, alpha, a.descr, db, dx, CUDA[type], 0, solution, &bytes));
        CHECK(cusparseSpSM_analysis(handle, op_a, 0, alpha, a.descr, db, dx, CUDA[type], 0, solution, room(bytes)));
        CHECK(cusparseSpSM_solve(handle, op_a, 0, alpha, a.descr, db, dx, CUDA[type], 0, solution));
    }
    fetch(&x);
    double worst = 0, largest = 1;
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < n; i++) {
            number sum = 0;
            for (int k = 0; k < n; k++) {
                int row = op_a ? k : i, column = op_a ? i : k;
                if (upper ? row > column : row < column) continue;
                sum += (i == k && unit ? 1 : operated(&a, op_a, i, k)) * *at(&x, 0, k, j);
                largest = fmax(largest, cabs(*at(&x, 0, k, j)));
            }
            worst = fmax(worst, cabs(sum - 2 * *at(&b, 0, i, j)));
        }
    expect(worst < 1e-5 * largest * 40, columns == 1 ? "SpSV" : "SpSM", type);
    drop(&b), drop(&x);
}

static void spgemm(int type, int base, int wide_index) {
    sparse a = new_sparse(type, ROWS, 5, 7, base, wide_index), b = new_sparse(type, ROWS, 7, 4, base, wide_index);
    sparse c = {type, ROWS, 5, 4, 0, base, wide_index, calloc(20, sizeof(number))};
    c.first = room(6 * 8);
    c.descr = described(&c);
    char alpha[16], beta[16];
    factor(type, alpha, 2), factor(type, beta, 0);
    descr product;
    size_t one = 0, two = 0;
    CHECK(cusparseSpGEMM_createDescr(&product));
#define PRODUCT handle, 0, 0, alpha, a.descr, b.descr, beta, c.descr, CUDA[type], 0, product
    CHECK(cusparseSpGEMM_workEstimation(PRODUCT, &one, (void *)0));
    CHECK(cusparseSpGEMM_workEstimation(PRODUCT, &one, room(one)));
    CHECK(cusparseSpGEMM_compute(PRODUCT, &two, (void *)0));
    CHECK(cusparseSpGEMM_compute(PRODUCT, &two, room(two)));
    wide rows, columns, entries;
    CHECK(cusparseSpMatGetSize(c.descr, &rows, &columns, &entries));
    c.entries = (int)entries, c.second = room(entries * 8), c.values = room(entries * 16);
    CHECK(cusparseCsrSetPointers(c.descr, c.first, c.second, c.values));
    CHECK(cusparseSpGEMM_copy(PRODUCT));
    CHECK(cusparseSpGEMM_destroyDescr(product));
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 7; k++) *cell(&c, i, j) += 2 * *cell(&a, i, k) * *cell(&b, k, j);
    expect_sparse(&c, c.dense, "SpGEMM");
}

static void sum(int type, int base) {
    sparse a = new_sparse(type, ROWS, 6, 6, base, 0), b = new_sparse(type, ROWS, 6, 6, base, 0);
    for (int k = 0; k < 36; k++) b.dense[k] = k % 5 ? 0 : small(type);
    from_dense(&b);
    sparse c = {type, ROWS, 6, 6, 0, base, 0, calloc(36, sizeof(number))};
    c.first = room(7 * 4);
    descr of;
    CHECK(cusparseCreateMatDescr(&of));
    CHECK(cusparseSetMatIndexBase(of, base));
    char alpha[16], beta[16];
    factor(type, alpha, 2), factor(type, beta, -1);
    size_t bytes;
    CHECK(csrgeam2_bufferSizeExt[type](handle, 6, 6, alpha, of, a.entries, a.values, a.first, a.second, beta, of, b.entries,
                                       b.values, b.first, b.second, of, c.values, c.first, c.second, &bytes));
    void *buffer = room(bytes);
    CHECK(cusparseXcsrgeam2Nnz(handle, 6, 6, of, a.entries, a.first, a.second, of, b.entries, b.first, b.second, of, c.first,
                               &c.entries, buffer));
    c.second = room(c.entries * 4), c.values = room(c.entries * 16);
    CHECK(csrgeam2[type](handle, 6, 6, alpha, of, a.entries, a.values, a.first, a.second, beta, of, b.entries, b.values,
                         b.first, b.second, of, c.values, c.first, c.second, buffer));
    for (int k = 0; k < 36; k++) c.dense[k] = 2 * a.dense[k] - b.dense[k];
    expect_sparse(&c, c.dense, "csrgeam2");
}

static void conversions(int type, int base) {
    sparse a = new_sparse(type, ROWS, 6, 8, base, 0), csc = a, coo = a, from = a;
    size_t bytes;
    int kind = CUDA[type];
    csc.format = COLUMNS, csc.first = room(9 * 4), csc.second = room(a.entries * 4), csc.values = room(a.entries * 16);
    CHECK(cusparseCsr2cscEx2_bufferSize(handle, 6, 8, a.entries, a.values, a.first, a.second, csc.values, csc.first, csc.second,
                                        kind, 1, base, 1, &bytes));
    CHECK(cusparseCsr2cscEx2(handle, 6, 8, a.entries, a.values, a.first, a.second, csc.values, csc.first, csc.second, kind, 1,
                             base, 1, room(bytes)));
    expect_sparse(&csc, a.dense, "Csr2cscEx2");
    coo.format = PLACES, coo.first = room(a.entries * 4);
    CHECK(cusparseXcsr2coo(handle, a.first, a.entries, 6, coo.first, base));
    expect_sparse(&coo, a.dense, "Xcsr2coo");
    sparse back = a;
    back.first = room(7 * 4);
    CHECK(cusparseXcoo2csr(handle, coo.first, a.entries, 6, back.first, base));
    expect_sparse(&back, a.dense, "Xcoo2csr");
    /* Sorted by columns and back by rows; the permutation says where the values have gone. */
    void *order = room(a.entries * 4);
    CHECK(cusparseCreateIdentityPermutation(handle, a.entries, order));
    coo.second = copied(a.second, a.entries * 4);
    CHECK(cusparseXcoosort_bufferSizeExt(handle, 6, 8, a.entries, coo.first, coo.second, &bytes));
    CHECK(cusparseXcoosortByColumn(handle, 6, 8, a.entries, coo.first, coo.second, order, room(bytes)));
    int places[256], seconds[256];
    cudaMemcpy(places, order, a.entries * 4, 2), cudaMemcpy(seconds, coo.second, a.entries * 4, 2);
    char *values = malloc(a.entries * 16), *moved = malloc(a.entries * 16);
    cudaMemcpy(values, a.values, a.entries * BYTES[type], 2);
    for (int k = 0; k < a.entries; k++) {
        expect(!k || seconds[k - 1] <= seconds[k], "the order of columns", type);
        memcpy(moved + k * BYTES[type], values + places[k] * BYTES[type], BYTES[type]);
    }
    coo.values = filled(moved, a.entries * BYTES[type]);
    expect_sparse(&coo, a.dense, "XcoosortByColumn");
    CHECK(cusparseXcoosortByRow(handle, 6, 8, a.entries, coo.first, coo.second, order, room(bytes)));
    cudaMemcpy(places, order, a.entries * 4, 2);
    for (int k = 0; k < a.entries; k++) expect(places[k] == k, "XcoosortByRow", type);
    coo.values = a.values;
    /* Dense, and back. */
    for (int format = ROWS; format <= PLACES; format++) {
        matrix d = make(type, 6, 8, 1, 1);
        descr dense = dense_of(&d, 0), of = format == ROWS ? a.descr : described(format == COLUMNS ? &csc : &coo);
        CHECK(cusparseSparseToDense_bufferSize(handle, of, dense, 0, &bytes));
        CHECK(cusparseSparseToDense(handle, of, dense, 0, room(bytes)));
        memcpy(d.value, a.dense, 48 * sizeof(number));
        compare(&d, "SparseToDense", 0);
        from.format = format, from.entries = 0, from.first = room(9 * 4);
        from.second = from.values = 0;
        from.descr = described(&from);
        CHECK(cusparseDenseToSparse_bufferSize(handle, dense, from.descr, 0, &bytes));
        void *buffer = room(bytes);
        CHECK(cusparseDenseToSparse_analysis(handle, dense, from.descr, 0, buffer));
        wide rows, columns, entries;
        CHECK(cusparseSpMatGetSize(from.descr, &rows, &columns, &entries));
        expect(entries == a.entries, "the number of entries", type);
        from.entries = (int)entries;
        from.second = room(entries * 4), from.values = room(entries * 16);
        if (format == PLACES) from.first = room(entries * 4);
        CHECK(cusparseCsrSetPointers(from.descr, from.first, from.second, from.values));
        CHECK(cusparseDenseToSparse_convert(handle, dense, from.descr, 0, buffer));
        expect_sparse(&from, a.dense, "DenseToSparse");
        drop(&d);
    }
    free(values), free(moved);
}

static void vectors(int type, int base) {
    int places[] = {2 + base, 5 + base, 6 + base};
    matrix x = make(type, 3, 1, 0, 1), y = make(type, 9, 1, 0, 1);
    descr dx, dy;
    CHECK(cusparseCreateSpVec(&dx, (wide)9, (wide)3, filled(places, sizeof places), x.device, 2, base, CUDA[type]));
    CHECK(cusparseCreateDnVec(&dy, (wide)9, y.device, CUDA[type]));
    char alpha[16], beta[16], dot[16];
    factor(type, alpha, 2), factor(type, beta, 3);
    number wanted = 0;
    for (int k = 0; k < 3; k++) wanted += conj(*at(&x, 0, k, 0)) * *at(&y, 0, places[k] - base, 0);
    CHECK(cusparseSpVV(handle, is_complex(type) ? 2 : 0, dx, dy, dot, CUDA[type], (void *)0));
    expect(cabs(element(type, dot, 0) - wanted) < 1e-3, "SpVV", type);
    for (int k = 0; k < 9; k++) *at(&y, 0, k, 0) *= 3;
    for (int k = 0; k < 3; k++) *at(&y, 0, places[k] - base, 0) += 2 * *at(&x, 0, k, 0);
    CHECK(cusparseAxpby(handle, alpha, dx, beta, dy));
    compare(&y, "Axpby", 1e-3);
    CHECK(cusparseGather(handle, dy, dx));
    for (int k = 0; k < 3; k++) *at(&x, 0, k, 0) = *at(&y, 0, places[k] - base, 0);
    compare(&x, "Gather", 1e-3);
    cudaMemset(y.device, 0, 9 * BYTES[type]);
    for (int k = 0; k < 9; k++) *at(&y, 0, k, 0) = 0;
    for (int k = 0; k < 3; k++) *at(&y, 0, places[k] - base, 0) = *at(&x, 0, k, 0);
    CHECK(cusparseScatter(handle, dx, dy));
    compare(&y, "Scatter", 1e-3);
    drop(&x), drop(&y);
}

static void all(void) {
    for (int type = S; type <= B; type++)
        for (int format = ROWS; format <= PLACES; format++)
            for (int op_a = 0; op_a < 3; op_a++) {
                for (int k = 0; k < 2; k++) spmv(type, format, k, op_a, k);
                for (int op_b = 0; op_b < 3; op_b++)
                    for (int by_rows = 0; by_rows < 2; by_rows++)
                        spmm(type, format, by_rows, op_b == 1, op_a, op_b, by_rows, op_b, 1 + 2 * by_rows);
            }
    for (int type = S; type <= Z; type++) {
        for (int k = 0; k < 9; k++) sddmm(type, k % 3, k / 3, k % 2);
        for (int op_a = 0; op_a < 3; op_a++)
            for (int k = 0; k < 12; k++) triangular(type, k % 3, op_a, k & 1, k >> 1 & 1, k < 6 ? 1 : 3);
        for (int base = 0; base < 2; base++)
            spgemm(type, base, base), sum(type, base), conversions(type, base), vectors(type, base);
    }
}

int main(void) {
    begin();
    all();
    printf("%d comparisons, %d failed\n", checks, failures);
    return failures > 0;
}
