// A square matrix is transposed in place, a pair of tiles for each block. Only one of the two blocks of a pair may do it.
#include "twins.h"
__global__ void turn(int* a, int n) {
  __shared__ int one[8][9], two[8][9];
  int x = threadIdx.x % 8, y = threadIdx.x / 8, bx = blockIdx.x, by = blockIdx.y;
  if (MENDED_ONLY(bx > by) RACY_ONLY(bx == by + 1)) return;
  int* first = &a[(by * 8 + y) * n + bx * 8 + x];
  int* second = &a[(bx * 8 + y) * n + by * 8 + x];
  one[y][x] = *first;  // race: A
  two[y][x] = *second;  // race: B
  __syncthreads();
  *first = two[x][y];  // race: B, C
  if (bx != by) *second = one[x][y];  // race: A, C
}
int main() { int* a = numbers(32 * 32); turn<<<dim3(4, 4), 64>>>(a, 32); CHECK(cudaDeviceSynchronize()); }
