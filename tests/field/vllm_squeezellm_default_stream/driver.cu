// vLLM's product of 4-bit weights in look-up tables (SqueezeLLM) under another current stream than
// the default one, which clears the result first.
#include <quantization/squeezellm/quant_cuda_kernel.cu>

int main() {
    const int in = 128, out = 128;
    torch::Tensor features({1, in}, torch::kHalf), weights({in / 8, out}, torch::kInt);
    torch::Tensor tables({out, 16}, torch::kHalf), result({1, out}, torch::kHalf);
    for (const torch::Tensor &input : {features, weights, tables}) {
        cudaMemset(input.data_ptr(), 0, input.nbytes());
    }
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(&stand_in::current(), cudaStreamNonBlocking);
    cudaMemsetAsync(result.data_ptr(), 0, result.nbytes(), stand_in::current());
    squeezellm_gemm(features, weights, result, tables);
    return cudaDeviceSynchronize();
}
