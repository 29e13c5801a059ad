// Asynchronous copies, barriers, clusters, bulk and tensor copies, matrices, dependent launch.
#include <cstdint>
#include <cuda_fp16.h>
#if __CUDA_ARCH__ >= 750
__global__ void matrices(unsigned *o, int n)
{
    __shared__ __align__(16) unsigned s[1024]; unsigned a = (unsigned)__cvta_generic_to_shared(s + threadIdx.x * 4), r[4]; s[threadIdx.x] = n; __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(a)); o[0] = r[0];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2+64];" : "=r"(r[0]), "=r"(r[1]) : "r"(a)); o[1] = r[0] + r[1];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a + n)); o[2] = r[0] + r[1] + r[2] + r[3];
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0,%1,%2,%3};" :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(a) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%1+32], {%0};" :: "r"(r[0]), "r"(a + n) : "memory");
#endif
}
#endif
#if __CUDA_ARCH__ >= 800
__global__ void copies(float *o, const char *g, int n, long long pol)
{
    __shared__ __align__(16) float s[2048]; unsigned a = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 16;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(a), "l"(g + threadIdx.x * 4)); asm volatile("cp.async.ca.shared.global [%0+8], [%1+16], 8;" :: "r"(a), "l"(g + n * 8)); asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a + 4096), "l"(g + threadIdx.x * 16));
    asm volatile("cp.async.cg.shared.global [%0+1024], [%1+32], 16, %2;" :: "r"(a), "l"(g + threadIdx.x * 16), "r"(n)); asm volatile("{ .reg .pred p; setp.gt.s32 p, %2, 3; @p cp.async.ca.shared.global [%0], [%1], 4; cp.async.ca.shared.global [%0], [%1+-128], 4, p; }" :: "r"(a), "l"(g + threadIdx.x), "r"(n));
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(a), "l"(g));
    asm volatile("cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;"); __syncthreads(); o[threadIdx.x] = s[threadIdx.x ^ 3];
}
__global__ void barriers(uint64_t *o, int n)
{
    __shared__ uint64_t b[4]; unsigned a = (unsigned)__cvta_generic_to_shared(b) + 8 * (threadIdx.x & 1); uint64_t st; int w;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(a), "r"(n)); asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(st) : "r"(a)); asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], %2;" : "=l"(st) : "r"(a), "r"(n)); asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }" : "=r"(w) : "r"(a), "l"(st)); asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(a)); asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(a)); o[0] = st + w;
}
#endif
#if __CUDA_ARCH__ >= 900
__global__ void bulk(char *g, const void *map, int n, int x, uint64_t pol)
{
    __shared__ __align__(128) char s[4096]; __shared__ uint64_t bar; unsigned a = (unsigned)__cvta_generic_to_shared(s), b = (unsigned)__cvta_generic_to_shared(&bar); int w;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;" :: "r"(b)); asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(b), "r"(n));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(a), "l"(g), "r"(n), "r"(b) : "memory"); asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g + 4096), "r"(a), "r"(n) : "memory"); asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(a + 16), "r"(a), "r"(n), "r"(b) : "memory"); asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" :: "l"(g), "r"(a), "r"(n) : "memory"); asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" :: "l"(g), "r"(a), "r"(n) : "memory"); asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(g), "r"(n)); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" :: "r"(a), "l"(g), "r"(n), "r"(b), "h"((short)3) : "memory"); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" :: "r"(a), "l"(g), "r"(n), "r"(b), "l"(pol) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" :: "r"(a), "l"(map), "r"(x), "r"(b) : "memory"); asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %4}], [%3];" :: "r"(a), "l"(map), "r"(x), "r"(b), "r"(n) : "memory"); asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2,%2,%4,%4,%4}], [%3], %5;" :: "r"(a), "l"(map), "r"(x), "r"(b), "r"(n), "h"((short)5) : "memory"); asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %2}], [%3];" :: "l"(map), "r"(x), "r"(n), "r"(a) : "memory"); asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" :: "l"(map), "r"(x), "r"(n), "r"(a) : "memory"); asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" :: "l"(map), "r"(x), "r"(n)); asm volatile("prefetch.tensormap [%0];" :: "l"(map)); asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(map) : "memory"); asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; cp.async.bulk.wait_group.read 1;");
    }
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }" : "=r"(w) : "r"(b), "r"(n)); g[threadIdx.x] = s[threadIdx.x] + w;
}
__global__ void __cluster_dims__(2, 1, 1) cluster(int *o, int n)
{
    __shared__ int s[64]; __shared__ uint64_t bar; s[threadIdx.x] = n; unsigned a = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 4, r, b = (unsigned)__cvta_generic_to_shared(&bar), rb; int v;
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"); asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(n & 1)); asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(rb) : "r"(b)); asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(r)); asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(r), "r"(v)); asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" :: "r"(r), "r"(v), "r"(rb)); asm volatile("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.u32 [%0], %1, [%2];" :: "r"(r), "r"(v), "r"(rb)); asm volatile("atom.shared::cluster.add.u32 %0, [%1], 3;" : "=r"(v) : "r"(r)); asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(rb)); o[threadIdx.x] = v; int p; asm volatile("{ .reg .pred p; elect.sync _|p, -1; selp.s32 %0, 1, 0, p; }" : "=r"(p)); if (p) o[99] = 1; unsigned e; asm volatile("{ .reg .pred p; elect.sync %0|p, %1; }" : "=r"(e) : "r"(n)); o[98] = e;
}
__global__ void dependent(int *o) { asm volatile("griddepcontrol.wait;" ::: "memory"); o[threadIdx.x] = 1; asm volatile("griddepcontrol.launch_dependents;"); }
__global__ void multimem(float *o, const float *m) { float v; asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(v) : "l"(m + threadIdx.x)); float a, b, c, d; asm volatile("multimem.ld_reduce.weak.global.add.v4.f32 {%0,%1,%2,%3}, [%4+16];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(m)); asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" :: "l"(m), "f"(v)); asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], %1;" :: "l"(m + 1), "f"(v)); o[0] = v + a + b + c + d; }
#endif
