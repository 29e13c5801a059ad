// A lock-free list: blocks push nodes, one block takes the whole list until it has met them all. A node must be
// released before the head shows it.
#include "twins.h"
struct Node { int value, next; };
__global__ void list(Node* nodes, int* head, const int* x, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x) {
    int me = blockIdx.x - 1, first = atomicAdd(head, 0);
    nodes[me].value = x[me];  // race: A
    while (true) {
      nodes[me].next = first;  // race: B
      MENDED_ONLY(__threadfence();)
      int seen = atomicCAS(head, first, me + 1);
      if (seen == first) break;
      first = seen;
    }
    return;
  }
  int sum = 0;
  for (int met = 0; met < gridDim.x - 1;) {
    int at = atomicExch(head, 0);
    __threadfence();
    for (; at; at = nodes[at - 1].next) { sum += nodes[at - 1].value * 3; met++; }  // race: A, B
  }
  *out = sum;
}
int main() { int* x = numbers(16); int* head = device<int>(1); int* out = device<int>(1); Node* n = device<Node>(16); list<<<13, 32>>>(n, head, x, out); CHECK(cudaDeviceSynchronize()); }
