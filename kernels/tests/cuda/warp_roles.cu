// Stores of one thread of a warp, behind waits and divisions, as persistent kernels make them.

__device__ bool elected() {
    int is;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(is));
    return is;
}

__device__ void wait(unsigned barrier) {
    asm volatile("{ .reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@p bra done;\nbra again;\ndone: }"
                 :: "r"(barrier) : "memory");
}

// Warps take tiles in turn; one thread of each stores for them, where the others may be apart.
extern "C" __global__ void k_elected(int *y, int tiles, int lanes) {
    __shared__ unsigned long long barriers[4];
    unsigned barrier = __cvta_generic_to_shared(barriers);
    int warp = threadIdx.x / 32;
    int end = tiles + (threadIdx.x & lanes);
    if (warp == 1) {
        for (int tile = blockIdx.x; tile < end; tile += gridDim.x) {
            if (elected()) {
                for (int k = 0; k < 3; k++) {
                    wait(barrier + 8 * k);
                    y[(tile * tile + k) * 4 + warp] = threadIdx.x;
                }
            }
        }
    } else if (warp == 2) {
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) y[4 * tile * tile + 2] = 1;
    }
}

// What was chosen before a wait of unknown length is the same behind it.
extern "C" __global__ void k_waits(int *y, const volatile int *flag, int n) {
    int at = n;
    if (blockIdx.x != 2) {
        at = blockIdx.x * blockIdx.x;
        y[4096 + at] = 1;
    }
    while (!*flag) __nanosleep(20);
    y[at * 64 + threadIdx.x] = 1;
}

// What changes while a thread waits is not known.
extern "C" __global__ void k_counts(int *y, const volatile int *flag, int n) {
    int at = blockIdx.x * blockIdx.x;
    while (!*flag) at += n;
    y[at * 64 + threadIdx.x] = 1;
}

// A division by a divisor that the host has prepared.
extern "C" __global__ void k_divides(int *y, unsigned long long factor, unsigned shift, unsigned long long first) {
    unsigned long long number = first + blockIdx.x * 3;
    unsigned long long quotient = __umul64hi(number, factor) >> shift;
    y[quotient * 32 + threadIdx.x] = 1;
}
