// vLLM's product of 4-bit weights (AWQ) under another current stream than the default one.
#include <quantization/awq/gemm_kernels.cu>

int main() {
    const int rows = 16, in = 128, out = 128, group = 128;
    torch::Tensor features({rows, in}, torch::kHalf), weights({in, out / 8}, torch::kInt);
    torch::Tensor scales({in / group, out}, torch::kHalf), zeros({in / group, out / 8}, torch::kInt);
    for (const torch::Tensor &input : {features, weights, scales, zeros}) {
        cudaMemset(input.data_ptr(), 0, input.nbytes());
    }
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(&stand_in::current(), cudaStreamNonBlocking);
    awq_gemm(features, weights, scales, zeros, 4);
    return cudaDeviceSynchronize();
}
