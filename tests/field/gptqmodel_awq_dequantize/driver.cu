// GPTQModel unpacks 4-bit weights (AWQ) under another current stream than the default one, which
// reads them. With `waits` it first waits for the default stream.
#include <quantization/gemm_cuda_gen.cu>

int main(int count, char **) {
    const bool waits = count > 1;
    const int in = 128, out = 128, group = 128;
    torch::Tensor packed({in, out / 8}, torch::kInt), zeros({in / group, out / 8}, torch::kInt);
    torch::Tensor scales({in / group, out}, torch::kHalf), copied({in, out}, torch::kHalf);
    for (const torch::Tensor &input : {packed, zeros, scales}) cudaMemset(input.data_ptr(), 0, input.nbytes());
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(&stand_in::current(), cudaStreamNonBlocking);
    torch::Tensor weights = dequantize_weights_cuda(packed, scales, zeros, 0, 0, 0, false);
    if (waits) {
        cudaEvent_t unpacked;
        cudaEventCreateWithFlags(&unpacked, cudaEventDisableTiming);
        cudaEventRecord(unpacked, cudaStreamLegacy);
        cudaStreamWaitEvent(stand_in::current(), unpacked);
    }
    cudaMemcpyAsync(copied.data_ptr(), weights.data_ptr(), weights.nbytes(), cudaMemcpyDeviceToDevice,
                    stand_in::current());
    return cudaDeviceSynchronize();
}
