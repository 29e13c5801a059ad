// cub::DeviceTransform is given a stream in a class of its own that converts to cudaStream_t, as
// many libraries wrap it.
#include <cub/device/device_transform.cuh>

struct Stream {
    cudaStream_t handle;
    operator cudaStream_t() const { return handle; }
};

struct Twice {
    __device__ int operator()(int value) const { return 2 * value; }
};

int main() {
    const int n = 1 << 18;
    int *in, *out;
    cudaMalloc(&in, n * sizeof(int));
    cudaMalloc(&out, n * sizeof(int));
    Stream stream;
    cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking);
    cudaMemsetAsync(in, 1, n * sizeof(int), stream);
    cudaError_t error = cub::DeviceTransform::Transform(in, out, n, Twice{}, stream);
    if (error != cudaSuccess) return error;
    return cudaDeviceSynchronize();
}
