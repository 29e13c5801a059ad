// expect: clean
// pair: kernel halves / cudaMemcpy
// needs: none
// why: One stream. Arithmetic of small floats: every operation has one right result by IEEE 754.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void halves(const float *in, unsigned short *out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    __half a = __float2half(in[i]), b = __float2half(in[(i + 1) % n]);
    __half2 p = __halves2half2(a, b), q = __halves2half2(b, __float2half(0.375f));
    __half2 r = __hfma2(p, q, __float2half2_rn(1.0f));
    __half results[] = {__hadd(a, b), __hmul(a, b), __hfma(a, b, a), __hsub(b, a), __low2half(r), __high2half(r), hfloor(a),
                        __hmax(a, b), __habs(__hneg(a)), __int2half_rn(i * 77), __hdiv(a, __float2half(4.0f))};
    for (int k = 0; k < 11; k++) out[i * 24 + k] = __half_as_ushort(results[k]);
    out[i * 24 + 11] = __hlt(a, b) | __heq(a, a) << 1 | __hisnan(a) << 2;
    __nv_bfloat16 c = __float2bfloat16(in[i]), d = __float2bfloat16_rz(in[(i + 3) % n]);
    __nv_bfloat162 s = __hmul2(__halves2bfloat162(c, d), __halves2bfloat162(d, c));
    __nv_bfloat16 more[] = {__hadd(c, d), __hmul(c, d), __hfma(c, d, c), __hsub(c, d), __low2bfloat16(s), __high2bfloat16(s),
                            __hmin(c, d), __hneg(c)};
    for (int k = 0; k < 8; k++) out[i * 24 + 12 + k] = __bfloat16_as_ushort(more[k]);
    out[i * 24 + 20] = __half2int_rn(a);
    out[i * 24 + 21] = __half_as_ushort(__double2half(in[i] / 3.0));
    out[i * 24 + 22] = __half_as_ushort(__float2half_rz(in[i] * 1.001f));
    out[i * 24 + 23] = (unsigned short)(__bfloat162float(c) * 8);
}

int main() {
    const int n = 128;
    std::vector<float> in(n);
    std::vector<unsigned short> out(n * 24);
    for (int i = 0; i < n; i++) in[i] = (i * 37 % 128) / 16.0f + i * 0.001f;
    float *a;
    unsigned short *b;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, out.size() * 2));
    CHECK(cudaMemcpy(a, in.data(), n * 4, cudaMemcpyHostToDevice));
    halves<<<1, n>>>(a, b, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), b, out.size() * 2, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 24; k++) {
        unsigned hash = 1;
        for (int i = 0; i < n; i++) hash = hash * 31 + out[i * 24 + k];
        printf("%08x%s", hash, k % 8 == 7 ? "\n" : " ");
    }
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return 0;
}
