// expect: clean
// pair: kernel wmma_halves / cudaMemcpy
// needs: none
// why: One stream. Matrix instructions of every common type on small whole numbers, which have one exact product.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_halves(const half *a, const half *b, float *c, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int t = 0; t < k; t += 16) {
        wmma::load_matrix_sync(fa, a + t, k);
        wmma::load_matrix_sync(fb, b + t, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

// 16 x 8 from 16 x k (rows) and 8 x k (columns), operands through ldmatrix.
__global__ void mma_f16(const half *a, const half *b, float *c) {
    __shared__ __align__(16) half sa[16 * 16], sb[8 * 16];
    int l = threadIdx.x;
    for (int i = l; i < 256; i += 32) sa[i] = a[i];
    for (int i = l; i < 128; i += 32) sb[i] = b[i];
    __syncwarp();
    unsigned ra[4], rb[2];
    float d[4] = {};
    unsigned pa = (unsigned)__cvta_generic_to_shared(sa + l % 16 * 16 + l / 16 * 8);
    unsigned pb = (unsigned)__cvta_generic_to_shared(sb + l % 8 * 16 + l / 8 % 2 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    for (int i = 0; i < 4; i++) c[(l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2] = d[i];
}

__global__ void mma_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
    int l = threadIdx.x, g = l / 4, q = l % 4;
    unsigned ra[4], rb[2];
    float d[4] = {1, 1, 1, 1};
    for (int i = 0; i < 4; i++) ra[i] = *(const unsigned *)&a[(g + i % 2 * 8) * 16 + q * 2 + i / 2 * 8];
    for (int i = 0; i < 2; i++) rb[i] = *(const unsigned *)&b[g * 16 + q * 2 + i * 8];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = d[i];
}

__global__ void mma_tf32(const float *a, const float *b, float *c) {
    int l = threadIdx.x, g = l / 4, q = l % 4;
    float d[4] = {};
    for (int t = 0; t < 2; t++) {
        unsigned ra[4], rb[2];
        for (int i = 0; i < 4; i++) ra[i] = __float_as_uint(a[(g + i % 2 * 8) * 16 + t * 8 + q + i / 2 * 4]);
        for (int i = 0; i < 2; i++) rb[i] = __float_as_uint(b[g * 16 + t * 8 + q + i * 4]);
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    }
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = d[i];
}

__global__ void mma_s8(const signed char *a, const signed char *b, int *c) {
    int l = threadIdx.x, g = l / 4, q = l % 4;
    unsigned ra[2], rb;
    int d[4] = {};
    for (int i = 0; i < 2; i++) ra[i] = *(const unsigned *)&a[(g + i * 8) * 16 + q * 4];
    rb = *(const unsigned *)&b[g * 16 + q * 4];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(rb));
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = d[i];
}

__global__ void mma_f64(const double *a, const double *b, double *c) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> fc;
    wmma::fill_fragment(fc, 0.25);
    for (int t = 0; t < 16; t += 4) {
        wmma::load_matrix_sync(fa, a + t, 16);
        wmma::load_matrix_sync(fb, b + t, 16);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}

static int entry_a(int i) { return i * 7 % 13 - 6; }
static int entry_b(int i) { return i * 5 % 11 - 5; }

template <class T, class R, class Kernel, class... More>
static void check(const char *name, Kernel kernel, int m, int n, int k, double bias, More... more) {
    std::vector<T> a(m * k), b(n * k);
    for (int i = 0; i < m * k; i++) a[i] = (T)(float)entry_a(i);
    for (int i = 0; i < n * k; i++) b[i] = (T)(float)entry_b(i);
    T *da, *db;
    R *dc;
    std::vector<R> c(m * n);
    CHECK(cudaMalloc(&da, a.size() * sizeof(T)));
    CHECK(cudaMalloc(&db, b.size() * sizeof(T)));
    CHECK(cudaMalloc(&dc, c.size() * sizeof(R)));
    CHECK(cudaMemcpy(da, a.data(), a.size() * sizeof(T), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), b.size() * sizeof(T), cudaMemcpyHostToDevice));
    kernel<<<1, 32>>>(da, db, dc, more...);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), dc, c.size() * sizeof(R), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            int sum = 0;
            for (int x = 0; x < k; x++) sum += entry_a(i * k + x) * entry_b(j * k + x);
            wrong += (double)c[i * n + j] != sum + bias;
        }
    printf("%s %g %g, %d wrong\n", name, (double)c[0], (double)c[m * n - 1], wrong);
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
}

int main() {
    check<half, float>("wmma f16", wmma_halves, 16, 16, 64, 0, 64);
    check<half, float>("mma f16", mma_f16, 16, 8, 16, 0);
    check<__nv_bfloat16, float>("mma bf16", mma_bf16, 16, 8, 16, 1);
    check<float, float>("mma tf32", mma_tf32, 16, 8, 16, 0);
    check<signed char, int>("mma s8", mma_s8, 16, 8, 16, 0);
    check<double, double>("wmma f64", mma_f64, 8, 8, 16, 0.25);
    return 0;
}
