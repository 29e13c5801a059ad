// Integer arithmetic, logic, shifts, bit fields, compares and selects of every width, with registers, immediates,
// parameters and uniform values as operands.
#include <cstdint>

template <class T> __device__ T some(T x, T y, int n)
{
    T r = x + y * T(3) - (x << (n & 7)) + (x >> (n & 15));
    r ^= (x & y) | ~(x ^ T(0x55));
    r += x > y ? x : y;
    r += x < T(100) ? T(n) : y;
    r -= x == y ? T(1) : T(2);
    if (y != T(0)) r += x / y + x % y;
    r += x / T(12) + x % T(10) + x / T(100) + x % T(64) + x / T(-7);
    r = r > T(5) && (x <= y || n >= 3) ? r : T(r + 9);
    return r;
}

#define SOME(T) \
    __global__ void some_##T(T *o, const T *a, T s, int n) \
    { \
        int i = blockIdx.x * blockDim.x + threadIdx.x; \
        if (i < n) o[i] = some<T>(a[i], s, n) + some<T>(s, a[n - i], i) + some<T>(s, T(n), n); \
    }
SOME(int8_t) SOME(uint8_t) SOME(int16_t) SOME(uint16_t) SOME(int32_t) SOME(uint32_t) SOME(int64_t) SOME(uint64_t)

__global__ void bits(unsigned *o, const unsigned *a, unsigned long long *o8, const unsigned long long *a8, unsigned s, unsigned long long s8)
{
    unsigned i = threadIdx.x + blockIdx.x * 64, x = a[i], y = a[i + 1];
    unsigned long long w = a8[i];
    o[i] = __popc(x) + __clz(y) + __ffs(x) + __brev(y) + __clz(s) + __popc(s) + __brev(s) + __ffs(s);
    o[i + 1] = __popcll(w) + __clzll(w) + __ffsll(w) + (unsigned)__brevll(w) + __popcll(s8) + __clzll((long long)s8);
    o[i + 2] = __byte_perm(x, y, 0x5410) + __byte_perm(x, y, s) + __byte_perm(s, x, y) + __byte_perm(x, 0, 0x4440);
    o[i + 3] = __funnelshift_l(x, y, s) + __funnelshift_r(x, y, s) + __funnelshift_lc(x, y, x) + __funnelshift_rc(x, y, 40u);
    o[i + 4] = __mulhi((int)x, (int)y) + __umulhi(x, y) + __umulhi(x, s) + __umul24(x, y) + __mul24(x, y) + __umulhi(x, 0xcccccccdu);
    o8[i] = __umul64hi(w, s8) + __mul64hi(w, s8) + (unsigned long long)x * y + (long long)(int)x * (int)y + w * s8 + (w >> s) + ((long long)w >> x) + (w << y);
    o[i + 5] = __sad(x, y, s) + __usad(x, y, s) + __hadd(x, y) + __rhadd(x, y) + __uhadd(x, s) + abs((int)x) + abs((int)(x - s));
    o[i + 6] = __vadd2(x, y) + __vsub4(x, y) + __vmaxs2(x, y) + __vminu4(x, s) + __vabsdiffu4(x, y) + __vcmpeq4(x, y) + __vaddss2(x, y);
    o[i + 7] = __dp4a((int)x, (int)y, (int)s) + __dp4a(x, y, s) + __dp2a_lo((int)x, (int)y, (int)s);
    o[i + 8] = min(x, y) + max(x, s) + min((int)x, (int)y) + max(min((int)x, (int)s), -5) + min(max(x, 3u), 77u);
    o8[i + 1] = min(w, s8) + max((long long)w, (long long)s8) + min((long long)w, 17ll) + max(w, (unsigned long long)x);
}

template <int W> __device__ unsigned bitfield(unsigned x, unsigned p, unsigned l)
{
    unsigned u, m, n; int s;
    asm volatile("bfe.u32 %0, %1, %2, %3;" : "=r"(u) : "r"(x), "r"(p), "r"(l));
    asm volatile("bfe.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(x), "r"(p), "r"(l));
    asm volatile("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(m) : "r"(x), "r"(u), "r"(p), "r"(l));
    asm volatile("bmsk.clamp.b32 %0, %1, %2;" : "=r"(n) : "r"(p), "r"(l));
    unsigned v; int t;
    asm volatile("bmsk.wrap.b32 %0, %1, %2;" : "=r"(v) : "r"(p), "r"(W));
    asm volatile("szext.wrap.s32 %0, %1, %2;" : "=r"(t) : "r"(x), "r"(l));
    unsigned z;
    asm volatile("szext.clamp.u32 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(l));
    int f, g;
    asm volatile("bfind.s32 %0, %1;" : "=r"(f) : "r"(x));
    asm volatile("bfind.shiftamt.u32 %0, %1;" : "=r"(g) : "r"(x));
    unsigned long long q, w = (unsigned long long)x << 20 | p;
    asm volatile("bfe.u64 %0, %1, %2, %3;" : "=l"(q) : "l"(w), "r"(p), "r"(l));
    asm volatile("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(q) : "l"(w), "l"(q), "r"(p), "r"(l));
    return u + s + m + n + v + t + z + f + g + (unsigned)q;
}

__global__ void fields(unsigned *o, const unsigned *a, unsigned p, unsigned l)
{
    unsigned i = threadIdx.x;
    o[i] = bitfield<3>(a[i], p, l) + bitfield<9>(p, a[i], 7) + bitfield<5>(a[i], 8, 8) + bitfield<5>(p, 8, l);
}

__global__ void carries(unsigned *o, const unsigned *a, unsigned s, unsigned t)
{
    unsigned i = threadIdx.x, r[8];
    asm volatile("add.cc.u32 %0, %8, %9; addc.cc.u32 %1, %10, %11; addc.cc.u32 %2, %8, %11; addc.u32 %3, %9, %10;\n\t"
                 "sub.cc.u32 %4, %8, %9; subc.cc.u32 %5, %10, %11; subc.u32 %6, %9, %8; mad.lo.cc.u32 %7, %8, %9, %10;"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(a[i]), "r"(a[i + 1]), "r"(s), "r"(t));
    unsigned x, y, z;
    asm volatile("mad.lo.cc.u32 %0, %3, %4, %5; madc.hi.cc.u32 %1, %3, %4, %5; madc.lo.u32 %2, %4, %4, %3;"
                 : "=r"(x), "=r"(y), "=r"(z) : "r"(a[i]), "r"(s), "r"(t));
    for (int k = 0; k < 8; k++) o[i * 8 + k] = r[k];
    o[i] += x + y + z;
}

template <int N> __device__ void long_add(unsigned *o, const unsigned *a, const unsigned *b)
{
    unsigned long long c = 0;
    for (int k = 0; k < N; k++) { c += (unsigned long long)a[k] + b[k]; o[k] = (unsigned)c; c >>= 32; }
}
__global__ void big_add(unsigned *o, const unsigned *a, const unsigned *b) { long_add<8>(o + threadIdx.x * 8, a + threadIdx.x * 8, b); }

__global__ void big_mul(unsigned __int128 *o, const unsigned __int128 *a, unsigned __int128 s)
{
    int i = threadIdx.x;
    o[i] = a[i] * s + (a[i] >> (i & 127)) - (s << (i & 63));
    if (a[i] < s) o[i + 1] = s - a[i];
}

// Predicate logic: many conditions at once, packed predicates, uniform and per-thread.
__global__ void logic(int *o, const int *a, int p, int q, long long w)
{
    int i = threadIdx.x, x = a[i], y = a[i + 32];
    bool b0 = x < p, b1 = y > q, b2 = x == y, b3 = (x & 3) == 1, b4 = x > 0 && y < 0, b5 = (long long)x * y > w, b6 = p < q, b7 = w > 3;
    o[i] = (b0 && !b1) || (b2 ^ b3) ? x : y;
    o[i + 1] = (b4 || b5) != (b6 && b7) ? p : q;
    o[i + 2] = (b0 + b1 + b2) * 2 + b3 + (b4 & b5) + (b6 | b0) + !b7;
    if ((b0 && b1 && b2) || (b3 && b4) || (!b5 && b6)) o[i + 3] = x & y & p;
    if (b6 && b7) o[i + 4] = p | q;
    o[i + 5] = (x & y) | (~x & p) | (y ^ q);
    o[i + 6] = (x | p) & (y | q) & ~(x & 0xff00);
    unsigned m = 0;
    for (int k = 0; k < 7; k++) m |= (unsigned)(a[k * 32 + i] > k * p) << k;
    o[i + 7] = m;
    for (int k = 0; k < 6; k++) if (m >> k & 1) o[i + 8 + k] = a[i] * k;
}

// Address patterns: strides, shifts, signed and unsigned indices, 64-bit indices.
struct Wide { int a[3]; };
__global__ void addresses(Wide *o, const Wide *in, char *bytes, long long *l, short *h, int i32, unsigned u32, long long i64, int pitch)
{
    int t = threadIdx.x, b = blockIdx.y * gridDim.x + blockIdx.x;
    long long g = (long long)b * blockDim.x + t;
    unsigned ug = b * blockDim.x + t;
    o[g] = in[g + i64];
    o[ug + u32].a[1] = in[i32 - t].a[2];
    bytes[g * pitch + t] = bytes[(long long)i32 * pitch - t];
    l[t * 17 + i32] = l[ug] + l[(g << 3) + i64];
    h[(t ^ 1) + (b & ~7)] = h[(t >> 2) + (ug >> 5)] + h[-t];
    for (long long k = g; k < i64; k += (long long)gridDim.x * blockDim.x) l[k] += k;
    for (unsigned k = ug; k < u32; k += gridDim.x * blockDim.x) h[k] *= 2;
    *(int *)(bytes + (((size_t)t * pitch + 15) & ~(size_t)15)) = i32;
}

__global__ void uniform(int *o, int n, int m, unsigned u, long long w, bool flag)
{
    int s = 0;
    for (int k = 0; k < n; k++) { s += k * m + (k >> 2) - (k << u) + (k & m) + (flag ? k : m) + (k > m) + min(k, m) + abs(k - m); u = __brev(u) + __popc(k) + __clz(u + k); w = w * k + (w >> 3) + n; if (w > m && k < 99) s ^= (int)w; }
    o[threadIdx.x] = s + (int)w + u;
    int z = blockIdx.x / (unsigned)n, y = blockIdx.x % (unsigned)n;
    o[z * m + y] = blockIdx.x * n + (blockIdx.y ^ m);
}

// Saturated sums (by the signs of registers), conversions to small types, with a rounding, the sign
// of a product.
__global__ void clamped(int *o, const int *a, const float *f)
{
    int t = threadIdx.x, x = a[t], y = a[t + 32], r;
    asm volatile("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[t] = r;
    asm volatile("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[t + 32] = r;
    asm volatile("cvt.sat.u8.s32 %0, %1;" : "=r"(r) : "r"(x)); o[t + 64] = r;
    asm volatile("cvt.sat.s8.s32 %0, %1;" : "=r"(r) : "r"(y)); o[t + 96] = r;
    asm volatile("{ .reg .b16 h; cvt.sat.u16.s32 h, %1; cvt.u32.u16 %0, h; }" : "=r"(r) : "r"(x)); o[t + 128] = r;
    asm volatile("{ .reg .b16 h; cvt.sat.s16.s32 h, %1; cvt.s32.s16 %0, h; }" : "=r"(r) : "r"(y)); o[t + 160] = r;
    asm volatile("cvt.rzi.u8.f32 %0, %1;" : "=r"(r) : "f"(f[t])); o[t + 192] = r;
    asm volatile("cvt.rni.u8.f32 %0, %1;" : "=r"(r) : "f"(f[t + 32])); o[t + 224] = r;
    asm volatile("sad.s32 %0, %1, %2, 7;" : "=r"(r) : "r"(x), "r"(y)); o[t + 256] = r;
    o[t + 288] = __float_as_int(__int2float_rz(x)) + __float_as_int(__uint2float_rz(y));
#if __CUDA_ARCH__ >= 860
    float s;
    asm volatile("min.xorsign.abs.f32 %0, %1, %2;" : "=f"(s) : "f"(f[t]), "f"(f[t + 32])); o[t + 320] = __float_as_int(s);
    asm volatile("max.ftz.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(s) : "f"(f[t]), "f"(f[t + 32])); o[t + 352] = __float_as_int(s);
#endif
}
