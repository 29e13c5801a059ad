// Two operators of ggml's CUDA backend, one behind the other: `llama_dependents fwht|attention`.
//
// Both are launched by ggml's own helper, as dependents. The first scales a tensor, and lets its
// dependents start before it writes. The second transforms the result (fast Walsh-Hadamard), or
// takes it as the queries of flash attention. Whether it waits before it reads them depends on
// the commit: before llama.cpp#23690 the transformation never waits, and where attention is
// launched as a dependent, its machine code loads the queries above the wait that its source has in
// front. Needs ggml's include, src and src/ggml-cuda, cuBLAS's header, and -arch=sm_90. What these
// files ask of the rest of ggml is below: one device, one stream, a pool that never returns memory.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fattn-vec.cuh"
#include "fwht.cu"
#include "scale.cu"

DECL_FATTN_VEC_CASE(64, GGML_TYPE_F16, GGML_TYPE_F16);

// ---- what ggml's other files would give

const ggml_cuda_device_info &ggml_cuda_info() {
    static ggml_cuda_device_info info = [] {
        ggml_cuda_device_info made{};
        cudaDeviceProp device;
        CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
        made.device_count = 1;
        made.devices[0].cc = 100 * device.major + 10 * device.minor;
        made.devices[0].nsm = device.multiProcessorCount;
        made.devices[0].smpb = device.sharedMemPerBlock;
        made.devices[0].smpbo = device.sharedMemPerBlockOptin;
        made.devices[0].warp_size = device.warpSize;
        return made;
    }();
    return info;
}

int ggml_cuda_get_device() { return 0; }
void ggml_cuda_set_device(int) {}

void ggml_cuda_error(const char *call, const char *, const char *, int line, const char *said) {
    std::printf("line %d: %s: %s\n", line, call, said);
    std::exit(1);
}

struct Keeping : ggml_cuda_pool {
    void *alloc(size_t size, size_t *actual) override {
        void *at = nullptr;
        CUDA_CHECK(cudaMalloc(&at, size));
        *actual = size;
        return at;
    }
    void free(void *, size_t) override {}
};

std::unique_ptr<ggml_cuda_pool> ggml_backend_cuda_context::new_pool_for_device(int, int) {
    return std::make_unique<Keeping>();
}
ggml_backend_cuda_context::~ggml_backend_cuda_context() {}

to_fp16_cuda_t ggml_get_to_fp16_cuda(ggml_type) { std::abort(); }
to_fp16_nc_cuda_t ggml_get_to_fp16_nc_cuda(ggml_type) { std::abort(); }

extern "C" {
void ggml_abort(const char *file, int line, const char *form, ...) {
    std::va_list rest;
    va_start(rest, form);
    std::printf("%s:%d: ", file, line);
    std::vprintf(form, rest);
    std::printf("\n");
    std::exit(1);
}
size_t ggml_type_size(ggml_type type) { return type == GGML_TYPE_F16 ? 2 : 4; }
size_t ggml_element_size(const ggml_tensor *t) { return ggml_type_size(t->type); }
int64_t ggml_blck_size(ggml_type) { return 1; }
int64_t ggml_nrows(const ggml_tensor *t) { return t->ne[1] * t->ne[2] * t->ne[3]; }
int64_t ggml_nelements(const ggml_tensor *t) { return t->ne[0] * ggml_nrows(t); }
bool ggml_is_contiguous(const ggml_tensor *) { return true; }
bool ggml_is_contiguously_allocated(const ggml_tensor *) { return true; }
bool ggml_are_same_shape(const ggml_tensor *a, const ggml_tensor *b) {
    return !std::memcmp(a->ne, b->ne, sizeof a->ne);
}
int64_t ggml_time_us() { return 0; }
size_t ggml_nbytes(const ggml_tensor *t) { return ggml_nelements(t) * ggml_type_size(t->type); }
void ggml_log_internal(ggml_log_level, const char *, ...) {}
}

// ---- the program

ggml_tensor *tensor(ggml_type type, int64_t a, int64_t b, int64_t c = 1, int64_t d = 1) {
    auto *made = new ggml_tensor{};
    made->type = type;
    int64_t shape[] = {a, b, c, d};
    size_t stride = ggml_type_size(type);
    for (int i = 0; i < 4; i++) {
        made->ne[i] = shape[i];
        made->nb[i] = stride;
        stride *= shape[i];
    }
    CUDA_CHECK(cudaMalloc(&made->data, stride));
    std::vector<char> values(stride);
    for (int64_t i = 0; i < ggml_nelements(made); i++) {
        float value = float((i * 7 + a) % 13 - 6) / 8;
        if (type == GGML_TYPE_F16)
            reinterpret_cast<half *>(values.data())[i] = __float2half(value);
        else
            reinterpret_cast<float *>(values.data())[i] = value;
    }
    CUDA_CHECK(cudaMemcpy(made->data, values.data(), stride, cudaMemcpyHostToDevice));
    return made;
}

void set(ggml_tensor *t, int at, float value) {
    std::memcpy(t->op_params + at, &value, sizeof value);
}

int main(int argc, char **argv) {
    bool attention = argc > 1 && !std::strcmp(argv[1], "attention");
    constexpr int HEAD = 64, QUERIES = 1, HEADS = 8, KEYS = 256;
    ggml_backend_cuda_context context(0);
    ggml_tensor *from = tensor(GGML_TYPE_F32, HEAD, QUERIES, HEADS);
    ggml_tensor *scaled = tensor(GGML_TYPE_F32, HEAD, QUERIES, HEADS);
    ggml_tensor *out = attention ? tensor(GGML_TYPE_F32, HEAD, HEADS, QUERIES)
                                 : tensor(GGML_TYPE_F32, HEAD, QUERIES, HEADS);
    scaled->src[0] = from;
    out->op = attention ? GGML_OP_FLASH_ATTN_EXT : GGML_OP_MUL_MAT;
    out->src[0] = scaled;
    if (attention) {
        out->src[1] = tensor(GGML_TYPE_F16, HEAD, KEYS, HEADS);
        out->src[2] = tensor(GGML_TYPE_F16, HEAD, KEYS, HEADS);
        out->src[3] = tensor(GGML_TYPE_F16, KEYS, QUERIES);
        set(out, 0, 0.125f);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int round = 0; round < 3; round++) {
        set(scaled, 0, 2.f + round);
        ggml_cuda_op_scale(context, scaled);
        if (attention)
            ggml_cuda_flash_attn_ext_vec_case<HEAD, GGML_TYPE_F16, GGML_TYPE_F16>(context, out);
        else
            ggml_cuda_op_fwht(context, scaled, out);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<float> left(ggml_nelements(out));
    CUDA_CHECK(cudaMemcpy(left.data(), out->data, left.size() * 4, cudaMemcpyDeviceToHost));
    unsigned digest = 0;
    for (float value : left) {
        unsigned bits;
        std::memcpy(&bits, &value, 4);
        digest = (digest ^ bits) * 16777619u;
        digest ^= digest >> 15;
    }
    std::printf("%08x\n", digest);
    return 0;
}
