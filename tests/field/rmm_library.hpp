// What librmm.so holds of the parts that the drivers use: accessors and synchronize() of a stream,
// alignment, exceptions. All that hands out memory is in RMM's headers.
#pragma once
#include <rmm/aligned.hpp>
#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/error.hpp>
#include <rmm/logger.hpp>

// Releases from 26.8 on keep everything in a namespace of their version.
#ifndef RMM_NAMESPACE
#define RMM_NAMESPACE rmm
#endif

namespace RMM_NAMESPACE {
cuda_stream_view::cuda_stream_view(cudaStream_t stream) noexcept : stream_{stream} {}
cuda_stream_view::cuda_stream_view(cuda::stream_ref stream) noexcept : stream_{stream.get()} {}
cudaStream_t cuda_stream_view::value() const noexcept { return stream_; }
cuda_stream_view::operator cuda::stream_ref() const noexcept { return value(); }
bool cuda_stream_view::is_default() const noexcept { return stream_ == nullptr || stream_ == cudaStreamLegacy; }
bool cuda_stream_view::is_per_thread_default() const noexcept { return stream_ == cudaStreamPerThread; }
void cuda_stream_view::synchronize() const { cudaStreamSynchronize(stream_); }

cuda_device_id get_current_cuda_device() {
    int device = 0;
    cudaGetDevice(&device);
    return cuda_device_id{device};
}
int get_num_cuda_devices() { return 1; }
std::pair<std::size_t, std::size_t> available_device_memory() {
    std::size_t free, total;
    cudaMemGetInfo(&free, &total);
    return {free, total};
}

bool is_supported_alignment(std::size_t alignment) noexcept { return (alignment & (alignment - 1)) == 0; }
bool is_aligned(std::size_t value, std::size_t alignment) noexcept { return value % alignment == 0; }
std::size_t align_up(std::size_t value, std::size_t alignment) noexcept {
    return (value + alignment - 1) / alignment * alignment;
}

bad_alloc::bad_alloc(std::string const &message) : _what{message} {}
char const *bad_alloc::what() const noexcept { return _what.c_str(); }
out_of_memory::out_of_memory(std::string const &message) : bad_alloc{message} {}
}  // namespace RMM_NAMESPACE
