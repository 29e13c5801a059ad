// What stands in for PyTorch's C++ interface where a project's own file launches its kernels: a
// tensor is memory with a shape, and there is a current stream. An operator of PyTorch's runs on
// the current stream. Nothing else of PyTorch is here.
#pragma once
#include <cassert>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <initializer_list>
#include <iostream>
#include <stdexcept>
#include <vector>

#define TORCH_CHECK(condition, ...) \
    do { \
        if (!(condition)) throw std::runtime_error(#condition); \
    } while (false)

#define C10_CUDA_KERNEL_LAUNCH_CHECK() TORCH_CHECK(cudaGetLastError() == cudaSuccess)

namespace stand_in {
inline cudaStream_t &current() {
    static cudaStream_t stream = nullptr;
    return stream;
}

// A reduction, as simple as can be.
static __global__ void sum_of_parts(const __half *parts, __half *sum, int64_t parts_count, int64_t size) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i >= size) return;
    float total = 0;
    for (int64_t part = 0; part < parts_count; part++) total += __half2float(parts[part * size + i]);
    sum[i] = __float2half(total);
}
}  // namespace stand_in

namespace at {
using Half = __half;
using BFloat16 = __nv_bfloat16;

enum class ScalarType { Byte, Int, Float, Half, BFloat16 };

constexpr auto kHalf = ScalarType::Half;
constexpr auto kFloat = ScalarType::Float;
constexpr auto kInt = ScalarType::Int;
constexpr auto kByte = ScalarType::Byte;
constexpr auto kBFloat16 = ScalarType::BFloat16;

inline std::ostream &operator<<(std::ostream &out, ScalarType type) { return out << static_cast<int>(type); }

inline size_t bytes_of(ScalarType type) {
    return type == ScalarType::Byte ? 1 : type == ScalarType::Int || type == ScalarType::Float ? 4 : 2;
}

struct Device {
    bool is_meta() const { return false; }
    bool is_cuda() const { return true; }
    int index() const { return 0; }
    bool operator==(const Device &) const { return true; }
};

struct TensorOptions {
    ScalarType type = ScalarType::Float;
    TensorOptions dtype(ScalarType wanted) const { return TensorOptions{wanted}; }
    TensorOptions device(Device) const { return *this; }
};

class Tensor {
  public:
    Tensor() = default;
    Tensor(std::vector<int64_t> shape, ScalarType type) : shape_(std::move(shape)), type_(type) {
        cudaMalloc(&data_, nbytes());
    }
    int64_t dim() const { return shape_.size(); }
    bool is_cuda() const { return true; }
    bool is_contiguous() const { return true; }
    int64_t size(int64_t i) const { return shape_.at(i < 0 ? shape_.size() + i : i); }
    int64_t numel() const { return nbytes() / bytes_of(type_); }
    Tensor to(ScalarType) const { throw std::runtime_error("no conversion here"); }
    size_t nbytes() const {
        size_t bytes = bytes_of(type_);
        for (int64_t length : shape_) bytes *= length;
        return bytes;
    }
    ScalarType dtype() const { return type_; }
    ScalarType scalar_type() const { return type_; }
    Device device() const { return {}; }
    int get_device() const { return 0; }
    void *data_ptr() const { return data_; }
    template <class T> T *data_ptr() const { return static_cast<T *>(data_); }
    template <class T> T *data() const { return static_cast<T *>(data_); }
    // On the current stream, as all of PyTorch's operators.
    Tensor sum(int64_t dimension) const {
        assert(dimension == 0 && type_ == ScalarType::Half);
        Tensor result({shape_.begin() + 1, shape_.end()}, type_);
        const int64_t size = result.nbytes() / bytes_of(type_);
        stand_in::sum_of_parts<<<(size + 255) / 256, 256, 0, stand_in::current()>>>(
            data<__half>(), result.data<__half>(), shape_[0], size);
        return result;
    }

  private:
    std::vector<int64_t> shape_;
    ScalarType type_ = ScalarType::Float;
    void *data_ = nullptr;
};

inline Tensor empty(std::vector<int64_t> shape, TensorOptions options) { return {std::move(shape), options.type}; }
inline Device device_of(const Tensor &) { return {}; }

namespace cuda {
inline cudaStream_t getCurrentCUDAStream(int = -1) { return stand_in::current(); }
inline cudaStream_t getStreamFromPool(bool, int) {
    static cudaStream_t stream = [] {
        cudaStream_t made;
        cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
        return made;
    }();
    return stream;
}
struct OptionalCUDAGuard {
    explicit OptionalCUDAGuard(Device) {}
};
struct CUDAGuard {
    explicit CUDAGuard(int) {}
};
}  // namespace cuda
}  // namespace at

namespace c10 {
namespace cuda = at::cuda;
}

namespace torch {
using at::Device;
using at::empty;
using at::kBFloat16;
using at::kByte;
using at::kFloat;
using at::kHalf;
using at::kInt;
using at::Tensor;
using at::TensorOptions;
constexpr auto kFloat32 = kFloat;
}  // namespace torch

using at::device_of;
