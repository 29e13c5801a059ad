// expect: clean
// pair: kernel tricks / cudaMemcpy
// needs: none
// why: One stream. Bit fields, permutations, carries, dot products and other instructions that are named or intrinsic.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void tricks(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = in[i], b = in[(i + 1) % n], c = in[(i + 7) % n], r[20];
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r[0]) : "r"(a), "r"(b & 31), "r"(c & 15));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r[1]) : "r"(a), "r"(b), "r"(c & 31), "r"(7));
    asm("bfe.s32 %0, %1, 5, 9;" : "=r"(r[2]) : "r"(a));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r[3]) : "r"(a), "r"(b), "r"(c));
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r[4]) : "r"(a), "r"(b), "r"(c & 0x7777));
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r[5]) : "r"(a), "r"(b), "r"(c));
    asm("mad.hi.u32 %0, %1, %2, %3;" : "=r"(r[6]) : "r"(a), "r"(b), "r"(c));
    asm("{add.cc.u32 %0, %2, %3; addc.u32 %1, %4, 0;}" : "=&r"(r[7]), "=&r"(r[8]) : "r"(a), "r"(b), "r"(c));
    asm("{mul.lo.u32 %0, %1, %2; mad.lo.cc.u32 %0, %0, %3, %1; }" : "=&r"(r[9]) : "r"(a), "r"(b), "r"(c));
    r[10] = __brev(a) + __popc(b) + __clz(c) + __ffs(a);
    r[11] = __dp4a(a, b, c);
    r[12] = __vabsdiffu4(a, b) + __vadd2(a, c) + __vmaxu4(b, c);
    r[13] = __umulhi(a, b) + __mulhi((int)a, (int)c) + __sad((int)a, (int)b, c);
    r[14] = __funnelshift_r(a, b, c) + __byte_perm(a, b, 0x3715);
    unsigned long long wide = (unsigned long long)a * b + c;
    r[15] = (unsigned)(wide % 1000003) + (unsigned)(wide / ((unsigned long long)c + 1)) + __popcll(wide) + __clzll(wide);
    r[16] = (int)a / (int)(b % 1000 + 1) + (int)a % -7 + __uhadd(a, b) + __rhadd((int)a, (int)b);
    r[17] = __float_as_uint(__fmaf_rz(a, 1.5f, b)) ^ __float_as_uint(__fadd_ru(a, 0.3f)) ^ __float_as_uint(__fdiv_rd(a, 3.f));
    double d = a * 0.1, root = __dsqrt_rn(d);
    r[18] = __double2hiint(root) ^ __double2loint(root) ^ (unsigned)__double2int_rn(d / 7) ^ __float2uint_ru(a * 1e-3f);
    asm("{.reg .pred p; setp.lt.and.u32 p, %1, %2, 1; selp.u32 %0, %1, %2, p;}" : "=r"(r[19]) : "r"(a), "r"(c));
    for (int k = 0; k < 20; k++) out[i * 20 + k] = r[k];
}

int main() {
    const int n = 1000;
    std::vector<unsigned> in(n), out(n * 20);
    for (int i = 0; i < n; i++) in[i] = i * 2654435761u ^ (i * i);
    unsigned *a, *b;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 80));
    CHECK(cudaMemcpy(a, in.data(), n * 4, cudaMemcpyHostToDevice));
    tricks<<<(n + 127) / 128, 128>>>(a, b, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), b, n * 80, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 20; k++) {
        unsigned hash = 1;
        for (int i = 0; i < n; i++) hash = hash * 31 + out[i * 20 + k];
        printf("%08x%s", hash, k % 10 == 9 ? "\n" : " ");
    }
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return 0;
}
