// Bulk copies: how many bytes is in a register, in machine code as units of 16 bytes.
#include <cstdint>

__device__ unsigned shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void k_bulk(const char *from, char *to, char *sums, unsigned bytes) {
    __shared__ alignas(128) char tile[4096];
    __shared__ uint64_t bar;
    const char *source = from + blockIdx.x * 4096;
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                 ::"r"(shared(tile)), "l"(source), "r"(shared(&bar)) : "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(to), "r"(shared(tile)), "r"(bytes) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;"
                 ::"l"(sums), "r"(shared(tile)), "r"(bytes) : "memory");
}
