// Parts of arrays: layers, slices, rows and columns, written by surfaces, read by textures, and copied beside that. Each way
// with texels of each size. With `race` the two parts meet in one row or column. The program prints the sizes of the arrays.
// Usage: unasked_arrays race|clean
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

const int W = 32, H = 16, D = 4;

enum Way { Columns, Rows, Layers, Slices, Line, Filtered, UploadColumns, UploadRows, Download, WAYS };

// Bytes for surfaces; the rectangle from (x, y, z) on.
template <int WAY, class T> __global__ void store(cudaSurfaceObject_t surface, int x, int y, int z) {
    x += threadIdx.x, y += threadIdx.y;
    T value = {};
    if (WAY == Layers) surf2DLayeredwrite(value, surface, x * int(sizeof(T)), y, z);
    else if (WAY == Slices) surf3Dwrite(value, surface, x * int(sizeof(T)), y, z);
    else if (WAY == Line) surf1Dwrite(value, surface, x * int(sizeof(T)));
    else surf2Dwrite(value, surface, x * int(sizeof(T)), y);
}

template <int WAY, class T> __global__ void load(cudaTextureObject_t texture, T *to, int x, int y) {
    x += threadIdx.x, y += threadIdx.y;
    to[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<T>(texture, x + 0.5f, y + 0.5f);
}

static cudaStream_t s, t;
static int cases;

template <int WAY, class T> void run(bool race, bool real) {
    int width = W + 4 * ++cases, height = WAY == Line ? 0 : H, depth = WAY == Layers || WAY == Slices ? D : 0;
    if (WAY == Filtered && !real) return;
    size_t pitch = width * sizeof(T);
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
    unsigned flags = cudaArraySurfaceLoadStore | (WAY == Layers ? cudaArrayLayered : 0);
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth), flags));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    cudaTextureDesc how = {};
    how.filterMode = WAY == Filtered ? cudaFilterModeLinear : cudaFilterModePoint;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    T *pinned, *device;
    CHECK(cudaMallocHost(&pinned, pitch * H));
    CHECK(cudaMalloc(&device, pitch * H));
    CHECK(cudaDeviceSynchronize());
    // The first half on one stream; the second half, or one more row or column, on the other.
    int half = W / 2, first = half - race, rows = H / 2 - race;
    size_t bytes = half * sizeof(T), from = first * sizeof(T);
    switch (WAY) {
    case Columns:
        store<WAY, T><<<1, dim3(half, H), 0, s>>>(surface, 0, 0, 0);
        store<WAY, T><<<1, dim3(half, H), 0, t>>>(surface, first, 0, 0);
        break;
    case Rows:
        store<WAY, T><<<1, dim3(W, H / 2), 0, s>>>(surface, 0, 0, 0);
        store<WAY, T><<<1, dim3(W, H / 2), 0, t>>>(surface, 0, rows, 0);
        break;
    case Layers:
    case Slices:
        store<WAY, T><<<1, dim3(W, H), 0, s>>>(surface, 0, 0, 1);
        store<WAY, T><<<1, dim3(W, H), 0, t>>>(surface, 0, 0, race ? 1 : 2);
        break;
    case Line:
        store<WAY, T><<<1, half, 0, s>>>(surface, 0, 0, 0);
        store<WAY, T><<<1, half, 0, t>>>(surface, first, 0, 0);
        break;
    case Filtered:
    case UploadColumns:
        load<WAY, T><<<1, dim3(half, H), 0, s>>>(texture, device, 0, 0);
        CHECK(cudaMemcpy2DToArrayAsync(array, from, 0, pinned, pitch, bytes, H, cudaMemcpyHostToDevice, t));
        break;
    case UploadRows:
        load<WAY, T><<<1, dim3(W, H / 2), 0, s>>>(texture, device, 0, 0);
        CHECK(cudaMemcpy2DToArrayAsync(array, 0, rows, pinned, pitch, W * sizeof(T), H / 2, cudaMemcpyHostToDevice, t));
        break;
    case Download:
        store<WAY, T><<<1, dim3(half, H), 0, s>>>(surface, 0, 0, 0);
        CHECK(cudaMemcpy2DFromArrayAsync(pinned, pitch, array, from, 0, bytes, H, cudaMemcpyDeviceToHost, t));
        break;
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    printf("%zu\n", pitch * (height ? height : 1) * (depth ? depth : 1));
}

template <int WAY> void types(bool race) {
    run<WAY, unsigned char>(race, false);
    run<WAY, ushort2>(race, false);
    run<WAY, float>(race, true);
    run<WAY, float4>(race, true);
    if constexpr (WAY + 1 < WAYS) types<WAY + 1>(race);
}

int main(int count, char **words) {
    bool race = count > 1 && !strcmp(words[1], "race");
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    types<0>(race);
    return 0;
}
