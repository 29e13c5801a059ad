// Matrix products of every shape and type of sm_80, and packed arithmetic, written in PTX: no headers to compile.
#if __CUDA_ARCH__ >= 800
#define D4 "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
#define A(n) "r"(a[n])
#define IN4 A(0), A(1), A(2), A(3), A(4), A(5), A(6), A(7), A(8), A(9)
#define M442(n, name) asm volatile("mma.sync.aligned." name " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" : D4 : IN4); o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define M421(n, name) asm volatile("mma.sync.aligned." name " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" : D4 : IN4); o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define M242(n, name) asm volatile("mma.sync.aligned." name " {%0,%1}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11};" : D4 : IN4); o[n] = d[0] ^ d[1];
#define M221(n, name) asm volatile("mma.sync.aligned." name " {%0,%1}, {%4,%5}, {%6}, {%7,%8};" : D4 : IN4); o[n] = d[0] ^ d[1];
#define M211(n, name) asm volatile("mma.sync.aligned." name " {%0,%1}, {%4}, {%5}, {%6,%7};" : D4 : IN4); o[n] = d[0] ^ d[1];
#define F442(n, name) asm volatile("{ .reg .f32 %%f<8>; mov.b32 %%f4, %10; mov.b32 %%f5, %11; mov.b32 %%f6, %12; mov.b32 %%f7, %13;\n\tmma.sync.aligned." name " {%%f0,%%f1,%%f2,%%f3}, {%4,%5,%6,%7}, {%8,%9}, {%%f4,%%f5,%%f6,%%f7}; mov.b32 %0, %%f0; mov.b32 %1, %%f1; mov.b32 %2, %%f2; mov.b32 %3, %%f3; }" : D4 : IN4); o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define F421(n, name) asm volatile("{ .reg .f32 %%f<8>; mov.b32 %%f4, %7; mov.b32 %%f5, %8; mov.b32 %%f6, %9; mov.b32 %%f7, %10;\n\tmma.sync.aligned." name " {%%f0,%%f1,%%f2,%%f3}, {%4,%5}, {%6}, {%%f4,%%f5,%%f6,%%f7}; mov.b32 %0, %%f0; mov.b32 %1, %%f1; mov.b32 %2, %%f2; mov.b32 %3, %%f3; }" : D4 : IN4); o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define INTS(n, sat, s, t) M211(n, "m8n8k16.row.col" sat ".s32." s "8." t "8.s32") M421(n + 1, "m16n8k16.row.col" sat ".s32." s "8." t "8.s32") M442(n + 2, "m16n8k32.row.col" sat ".s32." s "8." t "8.s32")
#define NIBBLES(n, sat, s, t) M211(n, "m8n8k32.row.col" sat ".s32." s "4." t "4.s32") M421(n + 1, "m16n8k32.row.col" sat ".s32." s "4." t "4.s32") M442(n + 2, "m16n8k64.row.col" sat ".s32." s "4." t "4.s32")
extern "C" __global__ void matrices(unsigned *o, const unsigned *in) {
    unsigned d[4], a[10];
    for (int i = 0; i < 10; i++) a[i] = in[threadIdx.x + 32 * i];
    M221(0, "m16n8k8.row.col.f16.f16.f16.f16") M242(1, "m16n8k16.row.col.f16.f16.f16.f16")
    F421(2, "m16n8k8.row.col.f32.f16.f16.f32") F442(3, "m16n8k16.row.col.f32.f16.f16.f32")
    F421(4, "m16n8k8.row.col.f32.bf16.bf16.f32") F442(5, "m16n8k16.row.col.f32.bf16.bf16.f32")
    F421(6, "m16n8k4.row.col.f32.tf32.tf32.f32") F442(7, "m16n8k8.row.col.f32.tf32.tf32.f32")
    INTS(8, "", "s", "s") INTS(11, "", "u", "s") INTS(14, ".satfinite", "s", "u") INTS(17, ".satfinite", "u", "u")
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d[0]) : "r"(a[0])); o[20] = d[0];
#if __CUDA_ARCH__ < 900
    NIBBLES(21, "", "s", "s") NIBBLES(24, "", "u", "s") NIBBLES(27, ".satfinite", "s", "u")
    M211(30, "m8n8k128.row.col.s32.b1.b1.s32.xor.popc") M421(31, "m16n8k128.row.col.s32.b1.b1.s32.and.popc") M442(32, "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")
#endif
}
#define SPARSE "mma.sp::ordered_metadata.sync.aligned.m16n8"
#define S22(n, name, sel) asm volatile(SPARSE name " {%0,%1}, {%4,%5}, {%6,%7}, {%8,%9}, %10, " #sel ";" : D4 : IN4); o[n] = d[0] ^ d[1];
#define S24(n, name, sel) asm volatile(SPARSE name " {%0,%1}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%13}, %4, " #sel ";" : D4 : IN4); o[n] = d[0] ^ d[1];
#define S42(n, name, sel) asm volatile(SPARSE name " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11}, %12, " #sel ";" : D4 : IN4); o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define S44(n, name, sel) asm volatile(SPARSE name " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%4,%5,%6,%7}, %12, " #sel ";" : D4 : IN4); o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define T(regs, name, sel) asm volatile("{ .reg .f32 %%f<8>; mov.b32 %%f4, %4; mov.b32 %%f5, %5; mov.b32 %%f6, %6; mov.b32 %%f7, %7;\n\t" SPARSE name " {%%f0,%%f1,%%f2,%%f3}, " regs ", {%%f4,%%f5,%%f6,%%f7}, %12, " #sel "; mov.b32 %0, %%f0; mov.b32 %1, %%f1; mov.b32 %2, %%f2; mov.b32 %3, %%f3; }" : D4 : IN4);
#define T42(n, name, sel) T("{%4,%5}, {%6,%7}", name, sel) o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define T44(n, name, sel) T("{%4,%5,%6,%7}, {%8,%9,%10,%11}", name, sel) o[n] = d[0] ^ d[1] ^ d[2] ^ d[3];
#define SPARSE_INTS(n, sat, s, t) S42(n, "k32.row.col" sat ".s32." s "8." t "8.s32", 1) S44(n + 1, "k64.row.col" sat ".s32." s "8." t "8.s32", 0)
#define SPARSE_NIBBLES(n, sat, s, t) S42(n, "k64.row.col" sat ".s32." s "4." t "4.s32", 1) S44(n + 1, "k128.row.col" sat ".s32." s "4." t "4.s32", 0)
extern "C" __global__ void sparse(unsigned *o, const unsigned *in) {
    unsigned d[4], a[10];
    for (int i = 0; i < 10; i++) a[i] = in[threadIdx.x + 32 * i];
    S22(0, "k16.row.col.f16.f16.f16.f16", 3) S24(1, "k32.row.col.f16.f16.f16.f16", 1)
    T42(2, "k16.row.col.f32.f16.f16.f32", 2) T44(3, "k32.row.col.f32.f16.f16.f32", 0)
    T42(4, "k16.row.col.f32.bf16.bf16.f32", 1) T44(5, "k32.row.col.f32.bf16.bf16.f32", 1)
    T42(6, "k8.row.col.f32.tf32.tf32.f32", 3) T44(7, "k16.row.col.f32.tf32.tf32.f32", 1)
    SPARSE_INTS(8, "", "s", "s") SPARSE_INTS(10, "", "u", "s") SPARSE_INTS(12, ".satfinite", "s", "u")
#if __CUDA_ARCH__ < 900
    SPARSE_NIBBLES(14, "", "s", "s") SPARSE_NIBBLES(16, "", "u", "s") SPARSE_NIBBLES(18, ".satfinite", "s", "u")
#endif
}
#define P(n, text) asm volatile(text : "=r"(d) : "r"(a), "r"(b), "r"(c)); o[n] = d;
extern "C" __global__ void packed(unsigned *o, const unsigned *in, unsigned k) {
    unsigned a = in[threadIdx.x], b = in[threadIdx.x + 32], c = in[threadIdx.x + 64], d;
    P(0, "fma.rn.relu.f16x2 %0, %1, %2, %3;") P(1, "fma.rn.ftz.sat.f16x2 %0, %1, %2, %3;") P(2, "fma.rn.relu.bf16x2 %0, %1, %2, %3;")
    P(3, "min.NaN.f16x2 %0, %1, %2;") P(4, "max.ftz.f16x2 %0, %1, %2;") P(5, "max.NaN.bf16x2 %0, %1, %2;") P(6, "add.ftz.sat.f16x2 %0, %1, %2;")
    P(7, "mul.ftz.f16x2 %0, %1, %2;") P(8, "neg.f16x2 %0, %1;") P(9, "abs.bf16x2 %0, %1;") P(10, "ex2.approx.f16x2 %0, %1;") P(11, "tanh.approx.f16x2 %0, %1;")
    P(12, "set.gt.f16x2.f16x2 %0, %1, %2;") P(13, "set.neu.ftz.f16x2.f16x2 %0, %1, %2;")
    P(14, "{ .reg .pred p, q; setp.lt.f16x2 p|q, %1, %2; selp.b32 %0, %1, %3, p; @q add.u32 %0, %0, 1; }")
    P(15, "{ .reg .b16 h, l, g; mov.b32 {l, h}, %1; mov.b32 {g, l}, %2; fma.rn.f16 h, h, l, g; mov.b32 %0, {h, l}; }")
    P(16, "{ .reg .b16 h, l; .reg .f32 f; mov.b32 {l, h}, %1; cvt.f32.f16 f, h; mov.b32 %0, f; }")
    P(17, "{ .reg .b16 h, l; .reg .f64 f; mov.b32 {l, h}, %1; cvt.f64.f16 f, h; cvt.rz.f16.f64 h, f; mov.b32 %0, {h, l}; }")
    P(18, "{ .reg .f32 f, g; mov.b32 f, %1; mov.b32 g, %2; cvt.rz.relu.bf16x2.f32 %0, f, g; }")
    P(19, "{ .reg .b16 h; .reg .f32 f; mov.b32 f, %1; cvt.rn.bf16.f32 h, f; cvt.u32.u16 %0, h; }")
    P(20, "{ .reg .b16 h; .reg .f32 f; mov.b32 f, %1; cvt.rn.relu.bf16.f32 h, f; cvt.u32.u16 %0, h; }")
    P(21, "cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;") P(22, "cvt.pack.sat.s16.s32 %0, %1, %2;") P(23, "cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;")
    P(24, "dp2a.hi.s32.u32 %0, %1, %2, %3;") P(25, "dp4a.u32.s32 %0, %1, %2, %3;") P(26, "vabsdiff4.u32.s32.s32.add %0, %1, %2, %3;") P(27, "sad.u32 %0, %1, %2, %3;")
    P(28, "{ .reg .f32 f; .reg .b16 h, l; mov.b32 {l, h}, %1; cvt.rmi.f16.f16 h, h; cvt.rpi.s16.f16 l, h; mov.b32 %0, {l, h}; }")
    P(29, "{ .reg .f32 f, g; mov.b32 f, %1; mov.b32 g, %2; fma.rp.ftz.sat.f32 f, f, f, g; mul.rm.ftz.f32 f, f, g; add.rz.sat.f32 f, f, g; mov.b32 %0, f; }")
    P(30, "{ .reg .f32 f, g; mov.b32 f, %1; mov.b32 g, %2; max.NaN.ftz.f32 f, f, g; set.ge.ftz.f32.f32 f, f, g; cvt.rpi.ftz.f32.f32 g, g; add.f32 f, f, g; mov.b32 %0, f; }")
    P(31, "{ .reg .f32 f; mov.b32 f, %1; mul.f32 f, f, f; mul.f32 f, f, 0f3f000000; mov.b32 %0, f; }")
    P(32, "cvt.pack.sat.u4.s32.b32 %0, %1, %2, %3;") P(33, "cvt.pack.sat.s2.s32.b32 %0, %1, %2, %3;") P(34, "cvt.pack.sat.u16.s32 %0, %1, %2;")
}
#endif
