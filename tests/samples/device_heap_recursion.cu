// expect: clean
// pair: kernel build / kernel count
// needs: none
// why: One stream. malloc and free on the device, trees linked by pointers, recursion, virtual functions.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

struct Node {
    int key;
    Node *left, *right;
};

struct Shape {
    __device__ virtual int area() const = 0;
    __device__ virtual ~Shape() {}
};

struct Square : Shape {
    int side;
    __device__ Square(int s) : side(s) {}
    __device__ int area() const override { return side * side; }
};

struct Oblong : Shape {
    int a, b;
    __device__ Oblong(int a, int b) : a(a), b(b) {}
    __device__ int area() const override { return a * b; }
};

__device__ Node *grow(int low, int high) {
    if (low > high) return nullptr;
    Node *node = (Node *)malloc(sizeof(Node));
    int middle = (low + high) / 2;
    node->key = middle;
    node->left = grow(low, middle - 1);
    node->right = grow(middle + 1, high);
    return node;
}

__device__ int total(const Node *node) { return node ? node->key + total(node->left) + total(node->right) : 0; }

__device__ void fell(Node *node) {
    if (!node) return;
    fell(node->left);
    fell(node->right);
    free(node);
}

__global__ void build(Node **roots) { roots[threadIdx.x] = grow(0, 10 + threadIdx.x); }

__global__ void count(Node **roots, int *sums, int *areas) {
    sums[threadIdx.x] = total(roots[threadIdx.x]);
    fell(roots[threadIdx.x]);
    Shape *shape = threadIdx.x % 2 ? (Shape *)new Square(threadIdx.x) : (Shape *)new Oblong(threadIdx.x, 3);
    areas[threadIdx.x] = shape->area();
    delete shape;
}

int main() {
    const int n = 48;
    Node **roots;
    int *sums, *areas, got[n], area[n], wrong = 0, all = 0;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8 << 20));
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8 << 10));
    CHECK(cudaMalloc(&roots, n * sizeof *roots));
    CHECK(cudaMalloc(&sums, n * 4));
    CHECK(cudaMalloc(&areas, n * 4));
    build<<<1, n>>>(roots);
    count<<<1, n>>>(roots, sums, areas);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(area, areas, sizeof area, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        wrong += got[i] != (10 + i) * (11 + i) / 2 || area[i] != (i % 2 ? i * i : 3 * i);
        all += got[i] + area[i];
    }
    printf("sum %d, %d wrong\n", all, wrong);
    CHECK(cudaFree(roots));
    CHECK(cudaFree(sums));
    CHECK(cudaFree(areas));
    return 0;
}
