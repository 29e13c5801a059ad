// A lock-free stack whose head carries a counter against ABA: blocks take nodes, change them and put them back. Whoever
// puts a node back must release what it wrote there.
#include "twins.h"
#include <cuda/atomic>
using Head = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
using Link = cuda::atomic_ref<int, cuda::thread_scope_device>;
struct Node { int value, next; };
__device__ void push(unsigned long long* head, Node* nodes, int node) {
  Head h(*head);
  unsigned long long seen = h.load(cuda::memory_order_relaxed), mine;
  do {
    Link(nodes[node - 1].next).store((int)seen, cuda::memory_order_relaxed);
    mine = (seen >> 32) + 1 << 32 | node;
  } while (!h.compare_exchange_weak(seen, mine, PICK(cuda::memory_order_relaxed, cuda::memory_order_release), cuda::memory_order_relaxed));
}
__device__ int pop(unsigned long long* head, Node* nodes) {
  Head h(*head);
  unsigned long long seen = h.load(cuda::memory_order_acquire), next;
  do {
    int top = (int)seen;
    if (top == 0) return 0;
    // Another block may have taken the node; the counter tells.
    next = (seen >> 32) + 1 << 32 | Link(nodes[top - 1].next).load(cuda::memory_order_relaxed);
  } while (!h.compare_exchange_weak(seen, next, cuda::memory_order_acquire, cuda::memory_order_acquire));
  return (int)seen;
}
__global__ void shuffle(unsigned long long* head, Node* nodes, const int* x, int rounds) {
  if (threadIdx.x) return;
  for (int i = 0; i < rounds; i++) {
    int node = pop(head, nodes);
    if (node == 0) continue;
    int value = nodes[node - 1].value;  // race: A
    nodes[node - 1].value = value * 3 + x[blockIdx.x * rounds + i];  // race: A, B
    push(head, nodes, node);
  }
}
__global__ void fill(unsigned long long* head, Node* nodes, int n) {
  for (int i = 0; i < n; i++) { nodes[i].value = i * 5 + 1; nodes[i].next = i; }
  *head = n;
}
int main() {
  int* x = numbers(6 * 8); auto* head = device<unsigned long long>(1); Node* nodes = device<Node>(4);
  fill<<<1, 1>>>(head, nodes, 4); shuffle<<<6, 32>>>(head, nodes, x, 8); CHECK(cudaDeviceSynchronize());
}
