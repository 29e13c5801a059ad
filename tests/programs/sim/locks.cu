// Two kernels on two streams that nothing orders, each of which adds to one counter in a critical
// section: by each kind of lock, with both sides locked, one side, or neither.
//
//   locks LOCK both|one|other|late    `other`: the second kernel takes no lock
//                                     `late`: the second kernel adds after it has given the lock back
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <cuda/semaphore>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

struct Shared {
    int swap, exchange, retry;
    unsigned ticket, serving;
    cuda::atomic<int, cuda::thread_scope_device> object;
    cuda::binary_semaphore<cuda::thread_scope_device> semaphore;
};
enum Lock { SWAP, EXCHANGE, RETRY, TICKET, OBJECT, SEMAPHORE, LOCKS };
static const char *const names[] = {"swap", "exchange", "retry", "ticket", "object", "semaphore"};
enum Section { LOCKED, PLAIN, LATE };

__global__ void init(Shared *s) { new (&s->semaphore) cuda::binary_semaphore<cuda::thread_scope_device>(1); }

template <int L> __device__ void take(Shared *s, unsigned &mine) {
    if (L == SWAP) while (atomicCAS(&s->swap, 0, 1) != 0) {}
    if (L == EXCHANGE) while (atomicExch(&s->exchange, 1) != 0) {}
    if (L == TICKET) { mine = atomicAdd(&s->ticket, 1); while (atomicAdd(&s->serving, 0) != mine) {} }
    if (L == OBJECT) for (int free = 0; !s->object.compare_exchange_weak(free, 1, cuda::memory_order_acquire); free = 0) {}
    if (L == SEMAPHORE) s->semaphore.acquire();
    __threadfence();
}

template <int L> __device__ void give(Shared *s) {
    __threadfence();
    if (L == SWAP) atomicExch(&s->swap, 0);
    if (L == EXCHANGE) atomicExch(&s->exchange, 0);
    if (L == TICKET) atomicAdd(&s->serving, 1);
    if (L == OBJECT) s->object.store(0, cuda::memory_order_release);
    if (L == SEMAPHORE) s->semaphore.release();
}

template <int L, int S> __global__ void add(Shared *s, int *counter) {
    if (threadIdx.x != 0) return;
    unsigned mine = 0;
    if (S == PLAIN) { *counter += 1; return; }
    if (L == RETRY) {
        for (bool done = false; !done;)
            if (atomicCAS(&s->retry, 0, 1) == 0) {
                __threadfence();
                if (S == LOCKED) *counter += 1;
                __threadfence();
                atomicExch(&s->retry, 0);
                done = true;
            }
        if (S == LATE) *counter += 1;
        return;
    }
    take<L>(s, mine);
    if (S == LOCKED) *counter += 1;
    give<L>(s);
    if (S == LATE) *counter += 1;
}

template <int L> void run(const char *how, Shared *s, int *counter, cudaStream_t a, cudaStream_t b) {
    if (!strcmp(how, "one")) add<L, PLAIN><<<1, 32, 0, a>>>(s, counter); else add<L, LOCKED><<<1, 32, 0, a>>>(s, counter);
    if (!strcmp(how, "other")) add<L, PLAIN><<<1, 32, 0, b>>>(s, counter);
    else if (!strcmp(how, "late")) add<L, LATE><<<1, 32, 0, b>>>(s, counter);
    else add<L, LOCKED><<<1, 32, 0, b>>>(s, counter);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    Shared *s;
    int *counter;
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&s, sizeof *s));
    CHECK(cudaMalloc(&counter, sizeof(int)));
    CHECK(cudaMemset(counter, 0, sizeof(int)));
    CHECK(cudaMemset(s, 0, sizeof *s));
    init<<<1, 1>>>(s);
    CHECK(cudaDeviceSynchronize());
    if (!strcmp(argv[1], names[SWAP])) run<SWAP>(argv[2], s, counter, a, b);
    if (!strcmp(argv[1], names[EXCHANGE])) run<EXCHANGE>(argv[2], s, counter, a, b);
    if (!strcmp(argv[1], names[RETRY])) run<RETRY>(argv[2], s, counter, a, b);
    if (!strcmp(argv[1], names[TICKET])) run<TICKET>(argv[2], s, counter, a, b);
    if (!strcmp(argv[1], names[OBJECT])) run<OBJECT>(argv[2], s, counter, a, b);
    if (!strcmp(argv[1], names[SEMAPHORE])) run<SEMAPHORE>(argv[2], s, counter, a, b);
    CHECK(cudaDeviceSynchronize());
    puts("done");
    return 0;
}
