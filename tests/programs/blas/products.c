/* The products of cuBLAS and cuBLASLt against loops: all operations, types and forms of batches.
   Prints how many comparisons were made; exits with 1 when one failed. */
#include "matrices.h"

typedef int gemm_t(handle_t, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int);
gemm_t cublasSgemm_v2, cublasDgemm_v2, cublasCgemm_v2, cublasZgemm_v2, cublasHgemm;
static gemm_t *const gemm[] = {cublasSgemm_v2, cublasDgemm_v2, cublasCgemm_v2, cublasZgemm_v2, cublasHgemm};

int cublasSgemm_v2_64(handle_t, int, int, int64_t, int64_t, int64_t, const void *, const void *, int64_t, const void *, int64_t,
                      const void *, void *, int64_t);

typedef int strided_t(handle_t, int, int, int, int, int, const void *, const void *, int, long long, const void *, int, long long,
                      const void *, void *, int, long long, int);
strided_t cublasSgemmStridedBatched, cublasDgemmStridedBatched, cublasCgemmStridedBatched, cublasZgemmStridedBatched,
    cublasHgemmStridedBatched;
static strided_t *const strided[] = {cublasSgemmStridedBatched, cublasDgemmStridedBatched, cublasCgemmStridedBatched,
                                     cublasZgemmStridedBatched, cublasHgemmStridedBatched};

typedef int batched_t(handle_t, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *,
                      int, int);
batched_t cublasSgemmBatched, cublasDgemmBatched, cublasCgemmBatched, cublasZgemmBatched, cublasHgemmBatched;
static batched_t *const batched[] = {cublasSgemmBatched, cublasDgemmBatched, cublasCgemmBatched, cublasZgemmBatched, cublasHgemmBatched};

int cublasGemmStridedBatchedEx(handle_t, int, int, int, int, int, const void *, const void *, int, int, long long, const void *,
                               int, int, long long, const void *, void *, int, int, long long, int, int, int);
int cublasGemmEx(handle_t, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *,
                 void *, int, int, int, int);

typedef struct { uint64_t words[8]; } algo_t;
typedef struct { algo_t algo; size_t workspace; int state; float waves; int reserved[4]; } found_t;
int cublasLtCreate(void **);
int cublasLtMatmulDescCreate(void **, int, int);
int cublasLtMatmulDescSetAttribute(void *, int, const void *, size_t);
int cublasLtMatmulDescDestroy(void *);
int cublasLtMatrixLayoutCreate(void **, int, uint64_t, uint64_t, int64_t);
int cublasLtMatrixLayoutSetAttribute(void *, int, const void *, size_t);
int cublasLtMatrixLayoutDestroy(void *);
int cublasLtMatmulPreferenceCreate(void **);
int cublasLtMatmulAlgoGetHeuristic(void *, void *, void *, void *, void *, void *, void *, int, found_t *, int *);
int cublasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *,
                   void *, void *, const algo_t *, void *, size_t, stream_t);

static handle_t handle;
static void *light;
static int refusals;

/* C = alpha op(A) op(B) + beta C on the host. */
static void by_loops(matrix *c, const matrix *a, const matrix *b, int ta, int tb, number alpha, number beta) {
    int k = ta ? a->rows : a->columns;
    for (int n = 0; n < c->count; n++)
        for (int j = 0; j < c->columns; j++)
            for (int i = 0; i < c->rows; i++) {
                number sum = 0;
                for (int l = 0; l < k; l++) sum += op(a, n, ta, i, l) * op(b, n, tb, l, j);
                *at(c, n, i, j) = alpha * sum + beta * *at(c, n, i, j);
            }
}

enum { PLAIN, WIDE, STRIDED, POINTERS, DEVICE_FACTORS, EX, STRIDED_EX, FORMS };

static void multiply(int form, int type, int ta, int tb, int m, int n, int k, number alpha, number beta) {
    int count = form == STRIDED || form == POINTERS || form == STRIDED_EX ? 3 : 1;
    matrix a = ta ? make(type, k, m, 2, count) : make(type, m, k, 2, count);
    matrix b = tb ? make(type, n, k, 0, count) : make(type, k, n, 1, count);
    matrix c = make(type, m, n, 3, count);
    int scale = type == H && form < EX ? H : type == B || type == H ? S : type;
    char factors[2][16], *device;
    set_element(scale, factors[0], 0, alpha);
    set_element(scale, factors[1], 0, beta);
    const void *x = factors[0], *y = factors[1];
    int cuda = CUDA[type], compute = type == D || type == Z ? 70 : 68, done = -1;
    if (beta == 0) cudaMemset(c.device, 0x5a, 0);
    switch (form) {
    case PLAIN: done = gemm[type](handle, ta, tb, m, n, k, x, a.device, a.ld, b.device, b.ld, y, c.device, c.ld); break;
    case WIDE:
        done = cublasSgemm_v2_64(handle, ta, tb, m, n, k, x, a.device, a.ld, b.device, b.ld, y, c.device, c.ld);
        break;
    case STRIDED:
        done = strided[type](handle, ta, tb, m, n, k, x, a.device, a.ld, a.stride, b.device, b.ld, b.stride, y, c.device, c.ld,
                             c.stride, count);
        break;
    case POINTERS:
        done = batched[type](handle, ta, tb, m, n, k, x, addresses(&a), a.ld, addresses(&b), b.ld, y, addresses(&c), c.ld, count);
        break;
    case DEVICE_FACTORS:
        cudaMalloc((void **)&device, 32);
        cudaMemcpy(device, factors, 32, 1);
        cublasSetPointerMode_v2(handle, 1);
        done = gemm[type](handle, ta, tb, m, n, k, device, a.device, a.ld, b.device, b.ld, device + 16, c.device, c.ld);
        cublasSetPointerMode_v2(handle, 0);
        break;
    case EX:
        done = cublasGemmEx(handle, ta, tb, m, n, k, x, a.device, cuda, a.ld, b.device, cuda, b.ld, y, c.device, cuda, c.ld,
                            compute, -1);
        break;
    case STRIDED_EX:
        done = cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, x, a.device, cuda, a.ld, a.stride, b.device, cuda, b.ld,
                                          b.stride, y, c.device, cuda, c.ld, c.stride, count, compute, -1);
        break;
    }
    expect(done == 0, "status of a product", type);
    by_loops(&c, &a, &b, ta, tb, alpha, beta);
    compare(&c, "product", 0);
    drop(&a), drop(&b), drop(&c);
}

/* What is not a number must not come through a factor of zero. */
static void zeros(void) {
    matrix a = make(S, 4, 4, 0, 1), b = make(S, 4, 4, 0, 1), c = make(S, 4, 4, 0, 1);
    float one = 1, zero = 0;
    cudaMemset(c.device, 0xff, 64);
    cublasSgemm_v2(handle, 0, 0, 4, 4, 4, &one, a.device, 4, b.device, 4, &zero, c.device, 4);
    by_loops(&c, &a, &b, 0, 0, 1, 0);
    compare(&c, "beta of zero", 0);
    cudaMemset(a.device, 0xff, 64);
    cublasSgemm_v2(handle, 0, 0, 4, 4, 4, &zero, a.device, 4, b.device, 4, &one, c.device, 4);
    compare(&c, "alpha of zero", 0);
    expect(cublasSgemm_v2(handle, 0, 0, 4, 4, 4, &one, a.device, 3, b.device, 4, &one, c.device, 4) == 7, "a small ld", S);
    drop(&a), drop(&b), drop(&c);
}

static double gelu(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
static double gelu_slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

/* cuBLASLt with each epilogue. Rows and columns are multiples of what masks need. */
static void light_product(int type, unsigned epilogue, int by_rows) {
    int m = 16, n = 6, k = 5;
    matrix a = make(type, k, m, 0, 2), b = make(type, k, n, 0, 2), c = make(type, m, n, 0, 2), d = make(type, m, n, 0, 2);
    matrix bias = make(type, m > n ? m : n, 1, 0, 1), before = make(type, m, n, 0, 2);
    int one = 1, scale = type == D ? D : S, count = 2;
    void *with, *layout[4], *preference, *workspace;
    uint64_t mask_ld = 128, aux_ld = epilogue & (2 | 8) ? mask_ld : (uint64_t)m, aux_stride = aux_ld * n;
    unsigned char *aux, mask[128 / 8 * 6 * 2];
    cudaMalloc(&workspace, 1024);
    cudaMalloc((void **)&aux, sizeof mask + (size_t)m * n * 16);
    for (size_t byte = 0; byte < sizeof mask; byte++) mask[byte] = (unsigned char)(byte * 37);
    cudaMemcpy(aux, mask, sizeof mask, 1);
    if (epilogue & 64) cudaMemcpy(aux, before.device, (size_t)m * n * 2 * BYTES[type], 2 + 1);
    expect(!cublasLtMatmulDescCreate(&with, type == D ? 70 : 68, CUDA[scale]), "description", type);
    cublasLtMatmulDescSetAttribute(with, 3, &one, 4);
    cublasLtMatmulDescSetAttribute(with, 7, &epilogue, 4);
    cublasLtMatmulDescSetAttribute(with, 8, &bias.device, 8);
    cublasLtMatmulDescSetAttribute(with, 11, &aux, 8);
    cublasLtMatmulDescSetAttribute(with, 12, &aux_ld, 8);
    cublasLtMatmulDescSetAttribute(with, 13, &aux_stride, 8);
    matrix *all[] = {&a, &b, &c, &d};
    for (int i = 0; i < 4; i++) {
        cublasLtMatrixLayoutCreate(&layout[i], CUDA[type], all[i]->rows, all[i]->columns, all[i]->ld);
        cublasLtMatrixLayoutSetAttribute(layout[i], 5, &count, 4);
        cublasLtMatrixLayoutSetAttribute(layout[i], 6, &all[i]->stride, 8);
    }
    if (by_rows) { /* The transpose of C and D, by rows, lies as they do by columns. */
        expect(cublasLtMatrixLayoutSetAttribute(layout[2], 99, &one, 4) == 7, "an unknown attribute", type);
    }
    char factors[2][16];
    set_element(scale, factors[0], 0, 2);
    set_element(scale, factors[1], 0, -1);
    found_t found = {0};
    int got = 0;
    cublasLtMatmulPreferenceCreate(&preference);
    int asked = cublasLtMatmulAlgoGetHeuristic(light, with, layout[0], layout[1], layout[2], layout[3], preference, 1, &found, &got);
    int status = cublasLtMatmul(light, with, factors[0], a.device, layout[0], b.device, layout[1], factors[1], c.device, layout[2],
                                d.device, layout[3], got ? &found.algo : 0, workspace, 1024, 0);
    if (asked || got != 1 || found.state || status) { /* NVIDIA's library has no kernel for some; the stand-in has one for all. */
        printf("refused: type %d, epilogue %u: heuristic %d, %d algorithms, matmul %d\n", type, epilogue, asked, got, status);
        refusals++;
        return;
    }
    cudaDeviceSynchronize();
    memcpy(d.value, c.value, sizeof(number) * m * n * 2);
    by_loops(&d, &a, &b, 1, 0, 2, -1);
    matrix sums = bias;
    number *added = malloc(sizeof(number) * 16);
    memcpy(added, bias.value, sizeof(number) * 16);
    for (int t = 0; t < 2; t++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                number *value = at(&d, t, i, j);
                unsigned byte = mask[t * (aux_stride / 8) + j * (aux_ld / 8) + i / 8];
                if (epilogue & 4) *value += added[i];
                if (epilogue & 2 && creal(*value) < 0) *value = 0;
                if (epilogue & 32) *value = gelu(creal(*value));
                if (epilogue & 8 && !(byte >> i % 8 & 1)) *value = 0;
                if (epilogue & 64) *value *= gelu_slope(creal(*at(&before, t, i, j)));
            }
    double tolerance = epilogue & (32 | 64) ? (type == D || type == S ? 1e-4 : 0.3) : 0;
    compare(&d, "a product of cuBLASLt", tolerance);
    if (epilogue & 16) { /* The last of the batch counts, for there is one vector. */
        for (int i = 0; i < m; i++) {
            sums.value[i] = 0;
            for (int j = 0; j < n; j++) sums.value[i] += *at(&d, 1, i, j);
        }
        compare(&sums, "sums of rows", tolerance * n);
    }
    if (epilogue == (2 | 4 | 128)) { /* The mask says what was positive. */
        cudaMemcpy(mask, aux, sizeof mask, 2);
        int good = 1;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                good &= (mask[j * (aux_ld / 8) + i / 8] >> i % 8 & 1) == (creal(*at(&d, 0, i, j)) > 0);
        expect(good, "the mask of ReLU", type);
    }
    cublasLtMatmulDescDestroy(with);
    for (int i = 0; i < 4; i++) cublasLtMatrixLayoutDestroy(layout[i]);
    free(added);
}

int main(void) {
    if (cublasCreate_v2(&handle) || cublasLtCreate(&light)) return 2;
    for (int type = S; type <= B; type++)
        for (int ta = 0; ta < 3; ta++)
            for (int tb = 0; tb < 3; tb++)
                for (int form = PLAIN; form < FORMS; form++) {
                    if ((type == B && form < EX) || (form == WIDE && type != S)) continue;
                    number alpha = is_complex(type) ? 2 - _Complex_I : 2;
                    multiply(form, type, ta, tb, 7, 5, 6, alpha, form == EX ? 0 : -1);
                }
    multiply(PLAIN, S, 0, 0, 90, 70, 50, 1, 0);
    multiply(PLAIN, Z, 2, 1, 65, 33, 40, 1, 1);
    multiply(PLAIN, D, 0, 0, 5, 4, 0, 1, 2);
    multiply(STRIDED, S, 0, 0, 0, 4, 3, 1, 2);
    zeros();
    for (int type = S; type <= B; type++) {
        if (is_complex(type)) continue;
        static const unsigned EPILOGUES[] = {1, 2, 4, 2 | 4, 32, 32 | 4, 2 | 4 | 128, 32 | 4 | 128, 8 | 128, 8 | 16 | 128, 64 | 16 | 128};
        for (unsigned i = 0; i < sizeof EPILOGUES / 4; i++) light_product(type, EPILOGUES[i], i == 0);
    }
    cublasDestroy_v2(handle);
    printf("%d products of cuBLASLt refused\n%d comparisons, %d failed\n", refusals, checks, failures);
    return failures != 0;
}
