/* cuSPARSE's functions, and matrices for them, for the two programs that call it. */
#include "operands.h"

typedef struct Sparse *sparse_t;
typedef void *descr;
typedef long long wide;
int cusparseCreate(sparse_t *), cusparseSetStream(sparse_t, stream_t), cusparseSetPointerMode(sparse_t, int);
int cusparseCreateCsr(), cusparseCreateCsc(), cusparseCreateCoo(), cusparseCreateDnMat(), cusparseCreateDnVec();
int cusparseCreateSpVec(), cusparseCsrSetPointers(descr, void *, void *, void *);
int cusparseSpMatGetSize(descr, wide *, wide *, wide *), cusparseSpMatSetAttribute(descr, int, void *, size_t);
int cusparseDnMatSetStridedBatch(descr, int, wide), cusparseCsrSetStridedBatch(descr, int, wide, wide);
int cusparseSpMV_bufferSize(), cusparseSpMV(), cusparseSpMM_bufferSize(), cusparseSpMM(), cusparseSpMM_preprocess();
int cusparseSDDMM_bufferSize(), cusparseSDDMM(), cusparseSDDMM_preprocess();
int cusparseSpSV_createDescr(descr *), cusparseSpSV_bufferSize(), cusparseSpSV_analysis(), cusparseSpSV_solve();
int cusparseSpSM_createDescr(descr *), cusparseSpSM_bufferSize(), cusparseSpSM_analysis(), cusparseSpSM_solve();
int cusparseSpGEMM_createDescr(descr *), cusparseSpGEMM_destroyDescr(descr);
int cusparseSpGEMM_workEstimation(), cusparseSpGEMM_compute(), cusparseSpGEMM_copy();
int cusparseXcoo2csr(sparse_t, void *, int, int, void *, int), cusparseXcsr2coo(sparse_t, void *, int, int, void *, int);
int cusparseCreateIdentityPermutation(sparse_t, int, void *);
int cusparseXcoosort_bufferSizeExt(sparse_t, int, int, int, void *, void *, size_t *);
int cusparseXcoosortByRow(sparse_t, int, int, int, void *, void *, void *, void *);
int cusparseXcoosortByColumn(sparse_t, int, int, int, void *, void *, void *, void *);
int cusparseXcsrsort_bufferSizeExt(sparse_t, int, int, int, void *, void *, size_t *);
int cusparseXcsrsort(sparse_t, int, int, int, descr, void *, void *, void *, void *);
int cusparseCsr2cscEx2_bufferSize(), cusparseCsr2cscEx2();
int cusparseSparseToDense_bufferSize(), cusparseSparseToDense();
int cusparseDenseToSparse_bufferSize(), cusparseDenseToSparse_analysis(), cusparseDenseToSparse_convert();
int cusparseGather(sparse_t, descr, descr), cusparseScatter(sparse_t, descr, descr);
int cusparseAxpby(sparse_t, void *, descr, void *, descr), cusparseSpVV(sparse_t, int, descr, descr, void *, int, void *);
int cusparseCreateMatDescr(descr *), cusparseSetMatIndexBase(descr, int);
int cusparseXcsrgeam2Nnz();
#define FOUR(name)                                                                                                    \
    int cusparseS##name(), cusparseD##name(), cusparseC##name(), cusparseZ##name();                                   \
    static int (*const name[])() = {cusparseS##name, cusparseD##name, cusparseC##name, cusparseZ##name};
FOUR(csrgeam2) FOUR(csrgeam2_bufferSizeExt)

enum { ROWS, COLUMNS, PLACES };
static sparse_t handle;

/* A sparse matrix and the dense one that it stands for. */
typedef struct {
    int type, format, rows, columns, entries, base, wide_index;
    number *dense;
    void *first, *second, *values;
    descr descr;
} sparse;

static inline int firsts(const sparse *m) {
    return m->format == PLACES ? m->entries : (m->format == ROWS ? m->rows : m->columns) + 1;
}
static int width(const sparse *m) { return m->wide_index ? 8 : 4; }
static inline void *numbers_on_device(const sparse *m, const long *list, int count) {
    int32_t narrow[4096];
    int64_t wide[4096];
    for (int k = 0; k < count; k++) narrow[k] = (int32_t)list[k], wide[k] = list[k];
    return filled(m->wide_index ? (void *)wide : narrow, (size_t)count * width(m));
}
static inline number *cell(const sparse *m, int i, int j) { return &m->dense[(size_t)j * m->rows + i]; }

static inline descr described(const sparse *m) {
    descr to;
    int index = m->wide_index ? 3 : 2;
    if (m->format == PLACES)
        CHECK(cusparseCreateCoo(&to, (wide)m->rows, (wide)m->columns, (wide)m->entries, m->first, m->second, m->values, index,
                                m->base, CUDA[m->type]));
    else
        CHECK((m->format == ROWS ? cusparseCreateCsr : cusparseCreateCsc)(&to, (wide)m->rows, (wide)m->columns,
                                                                         (wide)m->entries, m->first, m->second, m->values,
                                                                         index, index, m->base, CUDA[m->type]));
    return to;
}
/* The arrays of a dense matrix's entries. */
static inline void from_dense(sparse *m) {
    long first[4096], second[4096];
    char values[4096 * 16];
    int entries = 0, by_columns = m->format == COLUMNS;
    int outer = by_columns ? m->columns : m->rows, inner = by_columns ? m->rows : m->columns;
    for (int a = 0; a < outer; a++) {
        if (m->format != PLACES) first[a] = entries + m->base;
        for (int b = 0; b < inner; b++) {
            number value = by_columns ? *cell(m, b, a) : *cell(m, a, b);
            if (value == 0) continue;
            if (m->format == PLACES) first[entries] = a + m->base;
            second[entries] = b + m->base;
            set_element(m->type, values, entries++, value);
        }
    }
    if (m->format != PLACES) first[outer] = entries + m->base;
    m->entries = entries;
    m->first = numbers_on_device(m, first, firsts(m)), m->second = numbers_on_device(m, second, entries);
    m->values = filled(values, (size_t)entries * BYTES[m->type]);
    m->descr = described(m);
}
static inline sparse new_sparse(int type, int format, int rows, int columns, int base, int wide_index) {
    sparse m = {type, format, rows, columns, 0, base, wide_index, calloc((size_t)rows * columns + 1, sizeof(number))};
    for (int k = 0; k < rows * columns; k++)
        if (k % 3 == 0 || k % 7 == 0) m.dense[k] = small(type);
    from_dense(&m);
    return m;
}
/* A dense matrix by columns or by rows. */
static inline descr dense_of(const matrix *m, int by_rows) {
    descr to;
    CHECK(cusparseCreateDnMat(&to, (wide)(by_rows ? m->columns : m->rows), (wide)(by_rows ? m->rows : m->columns), (wide)m->ld,
                              m->device, CUDA[m->type], by_rows ? 2 : 1));
    if (m->count > 1) CHECK(cusparseDnMatSetStridedBatch(to, m->count, (wide)m->stride));
    return to;
}
static inline void factor(int type, void *to, double value) { set_element(type, to, 0, value); }

static inline void on(stream_t stream) { CHECK(cusparseSetStream(handle, stream)); }
static inline void begin(void) {
    cudaStreamCreateWithFlags(&first, 1), cudaStreamCreateWithFlags(&second, 1);
    CHECK(cusparseCreate(&handle));
}
