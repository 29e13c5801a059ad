// GPTQModel's product of 4-bit weights (AWQ, second layout) under another current stream than the
// default one.
#include <quantization/gemm_cuda_gen.cu>

int main() {
    const int rows = 8, in = 128, out = 128, group = 64;
    torch::Tensor features({rows, in}, torch::kHalf), weights({out, in / 8}, torch::kInt);
    torch::Tensor scales({out, 16}, torch::kHalf), zeros({out, 2}, torch::kInt);
    for (const torch::Tensor &input : {features, weights, scales, zeros}) {
        cudaMemset(input.data_ptr(), 0, input.nbytes());
    }
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(&stand_in::current(), cudaStreamNonBlocking);
    gemmv2_forward_cuda(features, weights, scales, zeros, group, 2);
    return cudaDeviceSynchronize();
}
