// Open addressing: a key is claimed by compare-and-swap, and the first comer writes its value behind it.
#include "twins.h"
struct Entry { int key, value; };
__global__ void upsert(Entry* table, const int* keys, int* seen, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  int k = keys[i] % 97 + 1; unsigned h = (k * 2654435761u) % 256;
#ifdef MENDED
  // key and value in one word
  unsigned long long* t = (unsigned long long*)table, mine = (unsigned)k | (unsigned long long)(k * k + 1) << 32;
  for (;; h = (h + 1) % 256) {
    unsigned long long old = atomicCAS(&t[h], 0ull, mine);
    if (old == 0 || (int)old == k) { seen[i] = old ? (int)(old >> 32) : k * k + 1; return; }
  }
#else
  for (;; h = (h + 1) % 256) {
    int old = atomicCAS(&table[h].key, 0, k);
    if (old == 0) { table[h].value = k * k + 1; seen[i] = k * k + 1; return; }  // race: A
    if (old == k) { seen[i] = table[h].value; return; }  // race: A
  }
#endif
}
int main() { int* x = numbers(512); auto t = device<Entry>(256); int* seen = device<int>(512); upsert<<<4, 128>>>(t, x, seen, 512); CHECK(cudaDeviceSynchronize()); }
