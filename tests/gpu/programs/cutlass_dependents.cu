// CUTLASS's products for 9.0, launched as dependents of a kernel that triggers before it writes.
//
// cutlass_dependents grouped|product operands|shapes
//
// `grouped` is the product of two groups, whose shapes and operands lie behind pointers in device
// memory; `product` is one product. The kernel before it writes the first operand again, or the
// shapes of the groups, with the values that are there already, so that the results are the same
// whichever comes first. Where the product waits before it reads them, nothing races. Needs
// CUTLASS's headers, -arch=sm_90a and -DCUTLASS_ENABLE_GDC_FOR_SM90.
#include <cstdio>
#include <cstring>
#include <vector>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/fusion/operations.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/group_array_problem_shape.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

using cute::_1;
using cute::_64;
using cute::_128;
using cute::Shape;

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t got = (call);                                                            \
        if (got != cudaSuccess) {                                                            \
            std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(got));                 \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Tile = Shape<_128, _128, _64>;
using Cluster = Shape<_1, _1, _1>;
constexpr int kAlign = 8, M = 256, N = 256, K = 128, GROUPS = 2;

template <class LayoutA, class LayoutB, class LayoutD, class Schedule, class Store, class Problem>
struct Product {
    using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
        cutlass::epilogue::collective::EpilogueTileAuto, float, float, Half, LayoutD, kAlign, Half,
        LayoutD, kAlign, Store,
        cutlass::epilogue::fusion::LinearCombination<Half, float>>::CollectiveOp;
    using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, LayoutA, kAlign, Half, LayoutB,
        kAlign, float, Tile, Cluster,
        cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
            sizeof(typename Epilogue::SharedStorage))>,
        Schedule>::CollectiveOp;
    using Kernel = cutlass::gemm::kernel::GemmUniversal<Problem, Mainloop, Epilogue>;
    using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};

using Groups = cutlass::gemm::GroupProblemShape<Shape<int, int, int>>;
using Grouped =
    Product<Row *, Column *, Row *, cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative,
            cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative, Groups>::Gemm;
using Plain = Product<Row, Column, Row, cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                      cutlass::epilogue::TmaWarpSpecializedCooperative, Shape<int, int, int, int>>::Gemm;

// Lets its dependents start, and writes afterwards.
__global__ void feed(unsigned *words, const unsigned *from, int count) {
    asm volatile("griddepcontrol.launch_dependents;");
    for (int i = 0; i < 100; i++) __nanosleep(1000);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        words[i] = from[i];
}

template <class T> T *device(const std::vector<T> &values) {
    T *at = nullptr;
    CHECK(cudaMalloc(&at, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return at;
}

// Writes `bytes` at `at` again, on the stream, and returns before they are written.
void again(void *at, size_t bytes, cudaStream_t stream) {
    unsigned *copy = nullptr;
    CHECK(cudaMalloc(&copy, bytes));
    CHECK(cudaMemcpy(copy, at, bytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
    feed<<<8, 128, 0, stream>>>(static_cast<unsigned *>(at), copy, static_cast<int>(bytes / 4));
    CHECK(cudaGetLastError());
}

template <class Gemm> void launch(Gemm &gemm, cudaStream_t stream) {
    if (gemm.run(stream, nullptr, true) != cutlass::Status::kSuccess) {
        std::printf("no launch\n");
        std::exit(1);
    }
    CHECK(cudaDeviceSynchronize());
}

template <class Gemm> void prepare(Gemm &gemm, const typename Gemm::Arguments &arguments) {
    void *workspace = nullptr;
    CHECK(cudaMalloc(&workspace, Gemm::get_workspace_size(arguments) + 256));
    if (gemm.can_implement(arguments) != cutlass::Status::kSuccess ||
        gemm.initialize(arguments, workspace) != cutlass::Status::kSuccess) {
        std::printf("not implemented\n");
        std::exit(1);
    }
    CHECK(cudaDeviceSynchronize());
}

std::vector<Half> values(int count, int seed) {
    std::vector<Half> made(count);
    for (int i = 0; i < count; i++) made[i] = Half(float((i * 7 + seed) % 5 - 2));
    return made;
}

unsigned digest(const Half *at, int count) {
    std::vector<Half> left(count);
    CHECK(cudaMemcpy(left.data(), at, count * sizeof(Half), cudaMemcpyDeviceToHost));
    unsigned total = 0;
    for (Half value : left) total = total * 31 + value.raw();
    return total;
}

int grouped(bool shapes, cudaStream_t stream) {
    using Kernel = Grouped::GemmKernel;
    std::vector<Groups::UnderlyingProblemShape> problem(GROUPS, {M, N, K});
    std::vector<const Half *> a, b;
    std::vector<Half *> d;
    for (int i = 0; i < GROUPS; i++) {
        a.push_back(device(values(M * K, i)));
        b.push_back(device(values(N * K, i + 3)));
        d.push_back(device(values(M * N, 1)));
    }
    std::vector<const Half *> c(d.begin(), d.end());
    std::vector<typename Kernel::InternalStrideA> lda(
        GROUPS, cutlass::make_cute_packed_stride(typename Kernel::InternalStrideA{}, {M, K, 1}));
    std::vector<typename Kernel::InternalStrideB> ldb(
        GROUPS, cutlass::make_cute_packed_stride(typename Kernel::InternalStrideB{}, {N, K, 1}));
    std::vector<typename Kernel::InternalStrideD> ldd(
        GROUPS, cutlass::make_cute_packed_stride(typename Kernel::InternalStrideD{}, {M, N, 1}));
    auto *on_device = device(problem);
    auto *strides = device(ldd);
    typename Grouped::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGrouped,
        {GROUPS, on_device, nullptr},
        {device(a), device(lda), device(b), device(ldb)},
        {{}, device(c), strides, device(d), strides},
        cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(0)};
    arguments.epilogue.thread.alpha = 1.f;
    arguments.epilogue.thread.beta = 0.f;
    Grouped gemm;
    prepare(gemm, arguments);
    if (shapes) {
        again(on_device, GROUPS * sizeof(problem[0]), stream);
    } else {
        again(const_cast<Half *>(a[0]), M * K * sizeof(Half), stream);
    }
    launch(gemm, stream);
    std::printf("%08x %08x\n", digest(d[0], M * N), digest(d[1], M * N));
    return 0;
}

int product(cudaStream_t stream) {
    using Kernel = Plain::GemmKernel;
    Half *a = device(values(M * K, 0)), *b = device(values(N * K, 3)), *d = device(values(M * N, 1));
    typename Plain::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {M, N, K, 1},
        {a, cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {M, K, 1}), b,
         cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {N, K, 1})},
        {{},
         d,
         cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {M, N, 1}),
         d,
         cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {M, N, 1})},
        cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(0)};
    arguments.epilogue.thread.alpha = 1.f;
    arguments.epilogue.thread.beta = 0.f;
    Plain gemm;
    prepare(gemm, arguments);
    again(a, M * K * sizeof(Half), stream);
    launch(gemm, stream);
    std::printf("%08x\n", digest(d, M * N));
    return 0;
}

int main(int argc, char **argv) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const char *form = argc > 1 ? argv[1] : "", *what = argc > 2 ? argv[2] : "operands";
    if (!std::strcmp(form, "grouped")) return grouped(!std::strcmp(what, "shapes"), stream);
    if (!std::strcmp(form, "product")) return product(stream);
    std::printf("grouped or product?\n");
    return 2;
}
