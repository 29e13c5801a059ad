// Atomics on 16 bytes, and bulk reductions out of shared memory, in PTX for compute capability 9.0.
// The first argument is the kernel, the second what another stream does: "atomic" (the same kernel,
// which is no race), "racy" (a fill), or "event" (the fill, ordered). Prints whether the results are
// right.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <string>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int code_ = (int)(call);                                                                                      \
        if (code_ != 0) {                                                                                             \
            printf("line %d: %d\n", __LINE__, code_);                                                                 \
            exit(3);                                                                                                  \
        }                                                                                                             \
    } while (0)
#define REQUIRE(condition)                                                                                            \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            printf("line %d: wrong\n", __LINE__);                                                                     \
            exit(4);                                                                                                  \
        }                                                                                                             \
    } while (0)

static const char *head = ".version 8.6\n.target sm_90\n.address_size 64\n";

// Every thread adds 1 to the low and 3 to the high word of one number of 16 bytes.
static std::string swap() {
    return std::string(head) + R"(
.visible .entry k(.param .u64 to) {
    .reg .b64 %rd<9>;
    .reg .b128 %q<5>;
    .reg .pred %p<3>;
    ld.param.u64 %rd1, [to];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u64 %rd2, 0;
    mov.b128 %q1, {%rd2, %rd2};
    atom.relaxed.gpu.global.cas.b128 %q1, [%rd1], %q1, %q1;
again:
    mov.b128 {%rd2, %rd3}, %q1;
    add.u64 %rd4, %rd2, 1;
    add.u64 %rd5, %rd3, 3;
    mov.b128 %q2, {%rd4, %rd5};
    atom.relaxed.gpu.global.cas.b128 %q3, [%rd1], %q1, %q2;
    mov.b128 {%rd6, %rd7}, %q3;
    setp.ne.u64 %p1, %rd6, %rd2;
    setp.ne.or.u64 %p1, %rd7, %rd3, %p1;
    mov.b128 %q1, %q3;
    @%p1 bra again;
    ret;
})";
}

// 16 bytes are loaded and stored beside.
static std::string move() {
    return std::string(head) + R"(
.visible .entry k(.param .u64 to) {
    .reg .b64 %rd<9>;
    .reg .b128 %q<5>;
    ld.param.u64 %rd1, [to];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.b128 %q1, [%rd2];
    mov.b128 {%rd3, %rd4}, %q1;
    mov.b128 %q2, {%rd4, %rd3};
    st.b128 [%rd1+16], %q2;
    ret;
})";
}

// Threads put their numbers into one place in turn, and add what they find there to sums.
static std::string exchange() {
    return std::string(head) + R"(
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<5>;
    .reg .b64 %rd<9>;
    .reg .b128 %q<5>;
    ld.param.u64 %rd1, [to];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %rd2, %r4;
    not.b64 %rd3, %rd2;
    mov.b128 %q1, {%rd2, %rd3};
    atom.relaxed.gpu.global.exch.b128 %q2, [%rd1], %q1;
    mov.b128 {%rd4, %rd5}, %q2;
    red.relaxed.gpu.global.add.u64 [%rd1+16], %rd4;
    red.relaxed.gpu.global.add.u64 [%rd1+24], %rd5;
    ret;
})";
}

// Each block of 32 threads reduces 32 elements of a type, each of value 1 (bits `one`), twice.
static std::string reduce(const char *operation, const char *type, int bytes, const char *one) {
    char text[2000];
    snprintf(text, sizeof text, R"(
.visible .entry k(.param .u64 to) {
    .reg .b16 %%h<3>;
    .reg .b32 %%r<9>;
    .reg .b64 %%rd<5>;
    .reg .pred %%p<3>;
    .shared .align 16 .b8 part[256];
    ld.param.u64 %%rd1, [to];
    cvta.to.global.u64 %%rd1, %%rd1;
    mov.u32 %%r1, part;
    mov.u32 %%r2, %%tid.x;
    mad.lo.u32 %%r3, %%r2, %d, %%r1;
    %s
    bar.sync 0;
    fence.proxy.async;
    setp.ne.u32 %%p1, %%r2, 0;
    @%%p1 bra done;
    mov.u32 %%r5, %d;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.%s.%s [%%rd1], [%%r1], %%r5;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.%s.%s [%%rd1], [%%r1], %%r5;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
done:
    ret;
})", bytes, one, 32 * bytes, operation, type, operation, type);
    return std::string(head) + text;
}

static cudaStream_t streams[2];

static cudaKernel_t loaded(const std::string &text) {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    CHECK(cudaLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cudaLibraryGetKernel(&kernel, library, "k"));
    return kernel;
}

static void launch(cudaKernel_t kernel, void *to, int blocks, int threads, cudaStream_t stream) {
    void *args[] = {&to};
    CHECK(cudaLaunchKernel((void *)kernel, dim3(blocks), dim3(threads), args, 0, stream));
}

// The kernel in one stream; then the other one does what `how` says. Answers how often it ran.
static int play(const std::string &text, void *to, int blocks, int threads, const char *how) {
    cudaKernel_t kernel = loaded(text);
    CHECK(cudaDeviceSynchronize());
    launch(kernel, to, blocks, threads, streams[0]);
    if (!strcmp(how, "atomic")) {
        launch(kernel, to, blocks, threads, streams[1]);
        CHECK(cudaDeviceSynchronize());
        return 2;
    }
    if (!strcmp(how, "event")) {
        cudaEvent_t event;
        CHECK(cudaEventCreate(&event));
        CHECK(cudaEventRecord(event, streams[0]));
        CHECK(cudaStreamWaitEvent(streams[1], event, 0));
    }
    CHECK(cudaMemsetAsync((char *)to + 8, 0, 8, streams[1]));
    CHECK(cudaDeviceSynchronize());
    return 0;
}

template <class T> static void sums(const char *operation, const char *type, const char *one, T expected, T first, const char *how) {
    T *to, host[32];
    for (T &value : host) value = first;
    CHECK(cudaMalloc(&to, sizeof host));
    CHECK(cudaMemcpy(to, host, sizeof host, cudaMemcpyHostToDevice));
    if (play(reduce(operation, type, sizeof(T), one), to, 3, 32, how) == 2) {
        CHECK(cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost));
        for (const T &value : host) REQUIRE(!memcmp(&value, &expected, sizeof value));
    }
}

int main(int, char **argv) {
    std::string what = argv[1];
    const char *how = argv[2];
    const int blocks = 5, threads = 64, n = blocks * threads;
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (what == "swap" || what == "exchange") {
        unsigned long long *to, host[4];
        CHECK(cudaMalloc(&to, sizeof host));
        CHECK(cudaMemset(to, 0, sizeof host));
        const bool swaps = what == "swap";
        int times = play(swaps ? swap() : exchange(), to, blocks, threads, how);
        CHECK(cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost));
        if (times && swaps) REQUIRE(host[0] == times * n && host[1] == times * 3 * n);
        // All numbers but the one that is there now were found; the first found zeros.
        unsigned long long all = times * (n * (n - 1ull) / 2);
        if (times && !swaps) REQUIRE(host[0] + host[2] == all && host[1] + host[3] == 0 - all - times * n);
    }
    if (what == "move") {
        unsigned long long *to, host[4] = {5, 6, 0, 0};
        CHECK(cudaMalloc(&to, sizeof host));
        CHECK(cudaMemcpy(to, host, sizeof host, cudaMemcpyHostToDevice));
        play(move(), to, 1, 1, how);
        CHECK(cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost));
        REQUIRE(host[0] == 5 && host[1] == 0 && host[3] == 5);
        REQUIRE(host[2] == 6 || !strcmp(how, "racy"));
    }
    const char *word = "mov.u32 %r4, 1; st.shared.u32 [%r3], %r4;", *wide = "mov.u64 %rd2, 1; st.shared.u64 [%r3], %rd2;";
    const char *real = "mov.b32 %r4, 0f3F800000; st.shared.b32 [%r3], %r4;";
    const char *reals = "mov.b64 %rd2, 0d3FF0000000000000; st.shared.b64 [%r3], %rd2;";
    // Twelve times: two streams, three blocks, two reductions each.
    if (what == "add.u32") sums<unsigned>("add", "u32", word, 12 + 7, 7, how);
    if (what == "add.s32") sums<int>("add", "s32", word, 12 - 20, -20, how);
    if (what == "add.u64") sums<unsigned long long>("add", "u64", wide, 12 + (1ull << 40), 1ull << 40, how);
    if (what == "add.f32") sums<float>("add", "f32", real, 12.5f, 0.5f, how);
    if (what == "add.f64") sums<double>("add", "f64", reals, 12.25, 0.25, how);
    if (what == "min.u32") sums<unsigned>("min", "u32", word, 1, 9, how);
    if (what == "max.s32") sums<int>("max", "s32", word, 1, -9, how);
    if (what == "min.s64") sums<long long>("min", "s64", wide, -4, -4, how);
    if (what == "max.u64") sums<unsigned long long>("max", "u64", wide, 1, 0, how);
    if (what == "inc.u32") sums<unsigned>("inc", "u32", word, 0, 0, how);
    if (what == "and.b32") sums<unsigned>("and", "b32", word, 1, 3, how);
    if (what == "or.b64") sums<unsigned long long>("or", "b64", wide, 7, 6, how);
    if (what == "xor.b32") sums<unsigned>("xor", "b32", word, 6, 6, how);
    const char *half = "mov.b16 %h1, 0x3C00; st.shared.b16 [%r3], %h1;";
    if (what == "add.noftz.f16") sums<unsigned short>("add.noftz", "f16", half, 0x4A00, 0, how);
    puts("done");
    return 0;
}
