// Three streams free and allocate parts of one pool. RMM's own pool is compiled into librmm.so; the
// class that keeps the lists of free blocks and orders their users is a header, here around a pool
// that never grows.
#include "../rmm_library.hpp"
#include <rmm/mr/detail/coalescing_free_list.hpp>
#include <rmm/mr/detail/stream_ordered_memory_resource.hpp>
#include <map>

using namespace rmm::mr::detail;

namespace RMM_NAMESPACE {
bool process_is_exiting() noexcept { return false; }
}  // namespace RMM_NAMESPACE

class Pool : public stream_ordered_memory_resource<Pool, coalescing_free_list> {
    friend class stream_ordered_memory_resource<Pool, coalescing_free_list>;
    std::map<void *, block> allocated;
    std::size_t get_maximum_allocation_size() const { return size_t(1) << 40; }
    block expand_pool(std::size_t, coalescing_free_list &, rmm::cuda_stream_view) { throw std::bad_alloc{}; }
    split_block allocate_from_block(block const &from, std::size_t size) {
        block taken{from.pointer(), size, from.is_head()};
        allocated[taken.pointer()] = taken;
        if (from.size() == size) return {taken, {}};
        return {taken, {from.pointer() + size, from.size() - size, false}};
    }
    block free_block(void *memory, std::size_t) noexcept {
        block freed = allocated[memory];
        allocated.erase(memory);
        return freed;
    }

   public:
    Pool(void *memory, std::size_t size) { insert_block({static_cast<char *>(memory), size, true}, {}); }
};

int main() {
    const size_t half = 1 << 20;
    void *memory;
    cudaMalloc(&memory, 2 * half);
    cudaStream_t first, second, third, fourth;
    for (auto *stream : {&first, &second, &third, &fourth}) cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    Pool pool{memory, 2 * half};
    void *a = pool.allocate(first, half, 256), *b = pool.allocate(second, half, 256);
    cudaMemsetAsync(b, 1, half, second);
    pool.deallocate(first, a, half, 256);
    pool.deallocate(second, b, half, 256);
    // Only both lists together have as much: the third stream takes them over and leaves the end.
    pool.allocate(third, half + half / 2, 256);
    void *rest = pool.allocate(fourth, half / 2, 256);
    cudaMemsetAsync(rest, 2, half / 2, fourth);
    return cudaDeviceSynchronize();
}
