// Uses the runtime API broadly; exits with 0 when every call did what CUDA's documentation says.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)
#define EXPECT(what) do { if (!(what)) { fprintf(stderr, "line %d: %s\n", __LINE__, #what); exit(1); } } while (0)

__constant__ float coefficients[4];
__managed__ int managed_counter = 5;
__device__ int total;

__global__ void reduce(const int *x, int n) {
    __shared__ int s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int k = 128; k; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (!threadIdx.x) atomicAdd(&total, s[0]);
}

__global__ void polynomial(float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = coefficients[0] + coefficients[1] * i;
}

__global__ void bump() {
    atomicAdd(&managed_counter, 1);
    printf("hello from thread %d\n", threadIdx.x);
}

__global__ void reverse(int *out) {
    extern __shared__ int buffer[];
    buffer[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

__global__ void sample(cudaTextureObject_t t, float *out) {
    out[threadIdx.y * 8 + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}

__global__ void draw(cudaSurfaceObject_t s) {
    surf2Dwrite((float)(threadIdx.x * 10 + threadIdx.y), s, threadIdx.x * 4, threadIdx.y);
}

__global__ void out_of_bounds(int *p) { p[1ull << 38] = 1; }

static void CUDART_CB count(void *p) { *(int *)p += 1; }

static void kernels_and_variables() {
    const int n = 1000;
    std::vector<int> h(n);
    for (int i = 0; i < n; i++) h[i] = i;
    int *d, t;
    CHECK(cudaMalloc(&d, n * 4));
    CHECK(cudaMemcpy(d, h.data(), n * 4, cudaMemcpyHostToDevice));
    reduce<<<4, 256>>>(d, n);
    CHECK(cudaMemcpyFromSymbol(&t, total, 4));
    EXPECT(t == 499500);
    float c[4] = {1, 2, 0, 0}, *y;
    CHECK(cudaMemcpyToSymbol(coefficients, c, 16));
    CHECK(cudaMallocManaged(&y, n * 4));
    polynomial<<<4, 256>>>(y, n);
    CHECK(cudaDeviceSynchronize());
    EXPECT(y[10] == 21.f);
    printf("before\n");
    bump<<<1, 3>>>();
    CHECK(cudaDeviceSynchronize());
    printf("after\n");
    EXPECT(managed_counter == 8);
    int *o;
    CHECK(cudaMalloc(&o, 1024));
    reverse<<<1, 256, 1024>>>(o);
    CHECK(cudaMemcpy(h.data(), o, 1024, cudaMemcpyDeviceToHost));
    EXPECT(h[0] == 255 && h[255] == 0);
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, reduce));
    EXPECT(attributes.sharedSizeBytes == 1024);
    cudaPointerAttributes pointer;
    CHECK(cudaPointerGetAttributes(&pointer, d));
    EXPECT(pointer.type == cudaMemoryTypeDevice);
    CHECK(cudaPointerGetAttributes(&pointer, h.data()));
    EXPECT(pointer.type == cudaMemoryTypeUnregistered);
    CHECK(cudaPointerGetAttributes(&pointer, y));
    EXPECT(pointer.type == cudaMemoryTypeManaged);
    CHECK(cudaFree(d));
    CHECK(cudaFree(y));
    CHECK(cudaFree(o));
}

static void arrays() {
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, 8, 8, cudaArraySurfaceLoadStore));
    float image[64], back[64], *d;
    for (int i = 0; i < 64; i++) image[i] = i;
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image, 32, 32, 8, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description = {};
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    CHECK(cudaMalloc(&d, 256));
    sample<<<1, dim3(8, 8)>>>(texture, d);
    CHECK(cudaMemcpy(back, d, 256, cudaMemcpyDeviceToHost));
    EXPECT(!memcmp(back, image, 256));
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    draw<<<1, dim3(8, 8)>>>(surface);
    CHECK(cudaMemcpy2DFromArray(back, 32, array, 0, 0, 32, 8, cudaMemcpyDeviceToHost));
    EXPECT(back[3 * 8 + 2] == 23.f);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(array));

    cudaPitchedPtr pitched;
    CHECK(cudaMalloc3D(&pitched, make_cudaExtent(64, 4, 3)));
    char source[768], target[768] = {};
    for (int i = 0; i < 768; i++) source[i] = i;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(source, 64, 64, 4);
    copy.dstPtr = pitched;
    copy.extent = make_cudaExtent(64, 4, 3);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    copy.srcPtr = pitched;
    copy.dstPtr = make_cudaPitchedPtr(target, 64, 64, 4);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    EXPECT(!memcmp(source, target, 768));
}

static void graphs() {
    int *d, hits = 0;
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *block;
    size_t nodes;
    CHECK(cudaMalloc(&d, 4000));
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(d, 0, 4000, s));
    CHECK(cudaLaunchHostFunc(s, count, &hits));
    CHECK(cudaMallocAsync(&block, 256, s));
    CHECK(cudaMemsetAsync(block, 1, 256, s));
    CHECK(cudaFreeAsync(block, s));
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(hits == 3);
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 5);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

static void errors() {
    int *d, h[4] = {};
    CHECK(cudaMalloc(&d, 16));
    reduce<<<1, 2048>>>(d, 4);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue); // cudaErrorInvalidConfiguration up to CUDA 12
    EXPECT(cudaMemcpy(d, h, 1 << 20, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaSuccess);
    out_of_bounds<<<1, 1>>>(d);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaMalloc(&d, 4) == cudaErrorIllegalAddress);
}

int main() {
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    EXPECT(prop.maxThreadsPerBlock == 1024 && prop.maxGridSize[1] == 65535 && prop.warpSize == 32);
    kernels_and_variables();
    arrays();
    graphs();
    errors();
    return 0;
}
