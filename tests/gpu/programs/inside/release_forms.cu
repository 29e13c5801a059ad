// Every way in which CUDA's headers release and acquire between two blocks, each with each. The racy form has first
// writers that do not release, then readers that do not acquire; what they do to the flag is the same.
#include "twins.h"
#include <cuda/atomic>
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Wide = cuda::atomic_ref<int, cuda::thread_scope_system>;
constexpr auto relaxed = cuda::memory_order_relaxed, acquire = cuda::memory_order_acquire, release = cuda::memory_order_release, both = cuda::memory_order_acq_rel, sequential = cuda::memory_order_seq_cst;
enum { WRITERS = 13, READERS = 8 };
template <int WAY> __device__ void give(int* data, int* flag, int x) {
  int old = 0;
  // One way each, so that the compiler joins no lines.
  switch (WAY) {
    case 0: *data = x; Word(*flag).store(1, PICK(relaxed, release)); break;  // race: A
    case 1: *data = x; MENDED_ONLY(__threadfence();) *(volatile int*)flag = 1; break;  // race: B
    case 2: *data = x; MENDED_ONLY(__threadfence();) atomicExch(flag, 1); break;  // race: C
    case 3: *data = x; MENDED_ONLY(cuda::atomic_thread_fence(release, cuda::thread_scope_device);) Word(*flag).store(1, relaxed); break;  // race: D
    case 4: *data = x; Word(*flag).fetch_add(1, PICK(relaxed, both)); break;  // race: E
    case 5: *data = x; Word(*flag).exchange(1, PICK(relaxed, sequential)); break;  // race: F
    case 6: *data = x; Word(*flag).store(1, PICK(relaxed, sequential)); break;  // race: G
    case 7: *data = x; Word(*flag).compare_exchange_strong(old, 1, PICK(relaxed, release), relaxed); break;  // race: H
    case 8: *data = x; MENDED_ONLY(__threadfence_system();) atomicAdd(flag, 1); break;  // race: I
    case 9: *data = x; asm volatile(PICK("red.relaxed.gpu.global.add.s32 [%0], 1;", "red.release.gpu.global.add.s32 [%0], 1;") ::"l"(flag) : "memory"); break;  // race: J
    case 10: *data = x; MENDED_ONLY(cuda::atomic_thread_fence(sequential, cuda::thread_scope_device);) Word(*flag).fetch_or(1, relaxed); break;  // race: K
    case 11: *data = x; Wide(*flag).store(1, PICK(relaxed, release)); break;  // race: L
    // With an acquire in front, which releases nothing.
    case 12: *data = x; Word(*flag).load(acquire); Word(*flag).store(1, PICK(relaxed, release)); break;  // race: M
    default: *data = x; Word(*flag).store(1, release); break;  // race: N, O, P, Q, R, S, T
  }
}
__device__ int take(int way, int* data, int* flag) {
  int one = 1;
  switch (way) {
    case 0: while (!Word(*flag).load(acquire)) {} break;
    case 1: while (!*(volatile int*)flag) {} __threadfence(); break;
    case 2: while (!Word(*flag).load(relaxed)) {} cuda::atomic_thread_fence(acquire, cuda::thread_scope_device); break;
    case 3: while (!Word(*flag).fetch_add(0, acquire)) {} break;
    case 4: while (!Word(*flag).load(sequential)) {} break;
    case 5: while (!Word(*flag).compare_exchange_weak(one, 1, both)) one = 1; break;
    case 6: while (!atomicAdd(flag, 0)) {} __threadfence(); break;
    case 7: while (!Wide(*flag).load(acquire)) {} break;
  }
  return *data;  // race: A, B, C, D, E, F, G, H, I, J, K, L, M
}
template <int WAY> __device__ int peek(int* data, int* flag) {
  int one = 1;
  switch (WAY) {
    case 0: while (!Word(*flag).load(PICK(relaxed, acquire))) {} return *data;  // race: N
    case 1: while (!*(volatile int*)flag) {} MENDED_ONLY(__threadfence();) return *data;  // race: O
    case 2: while (!Word(*flag).fetch_add(0, PICK(relaxed, acquire))) {} return *data;  // race: P
    case 3: while (!Word(*flag).compare_exchange_weak(one, 1, PICK(relaxed, sequential))) one = 1; return *data;  // race: Q
    case 4: while (!atomicAdd(flag, 0)) {} MENDED_ONLY(__threadfence();) return *data;  // race: R
    case 5: while (!Wide(*flag).load(PICK(relaxed, sequential))) {} return *data;  // race: S
    default: while (!Word(*flag).exchange(1, PICK(relaxed, both))) {} return *data;  // race: T
  }
}
template <int WRITER> __global__ void hand_over(int reader, int* data, int* flag, int* out, const int* x) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) give<WRITER>(data, flag, x[WRITER]); else *out = take(reader, data, flag);
}
template <int READER> __global__ void look(int* data, int* flag, int* out, const int* x) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) give<WRITERS>(data, flag, x[WRITERS]); else *out = peek<READER>(data, flag);
}
template <int WRITER = 0> void all_writers(int*& room, const int* x) {
  for (int reader = 0; reader < READERS; reader++, room += 4) hand_over<WRITER><<<2, 32>>>(reader, room, room + 1, room + 2, x);
  if constexpr (WRITER + 1 < WRITERS) all_writers<WRITER + 1>(room, x);
}
template <int READER = 0> void all_lookers(int*& room, const int* x) {
  look<READER><<<2, 32>>>(room, room + 1, room + 2, x);
  room += 4;
  if constexpr (READER < 6) all_lookers<READER + 1>(room, x);
}
int main() {
  int *x = numbers(16), *room = device<int>(1024);
  all_writers(room, x);
  all_lookers(room, x);
  CHECK(cudaDeviceSynchronize());
}
