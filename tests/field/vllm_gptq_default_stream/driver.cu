// vLLM's product of 4-bit weights (GPTQ) under another current stream than the default one, which
// reads the result.
#include <torch/extension.h>

// The file calls cuBLAS for big batches. This one is small.
using cublasHandle_t = void *;
constexpr int CUBLAS_OP_N = 0;
template <class... Arguments> void cublasHgemm(Arguments...) { throw std::runtime_error("no cuBLAS"); }
namespace at::cuda {
cublasHandle_t getCurrentCUDABlasHandle() { return nullptr; }
}  // namespace at::cuda

#include <quantization/gptq/q_gemm.cu>

int main() {
    const int rows = 1, in = 128, out = 512, groups = 1;
    torch::Tensor features({rows, in}, torch::kHalf), weights({in / 8, out}, torch::kInt);
    torch::Tensor zeros({groups, out / 8}, torch::kInt), scales({groups, out}, torch::kHalf);
    torch::Tensor order({in}, torch::kInt), copied({rows, out}, torch::kHalf);
    for (const torch::Tensor &input : {features, weights, zeros, scales, order}) {
        cudaMemset(input.data_ptr(), 0, input.nbytes());
    }
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(&stand_in::current(), cudaStreamNonBlocking);
    torch::Tensor result = gptq_gemm(features, weights, zeros, scales, order, true);
    cudaMemcpyAsync(copied.data_ptr(), result.data_ptr(), result.nbytes(), cudaMemcpyDeviceToDevice,
                    stand_in::current());
    return cudaDeviceSynchronize();
}
