// Kernels on the simulated GPU, and the same loops for one thread of the CPU: microseconds of
// processor time (all threads of the process), the median of some runs behind others, as JSON.
// Each kernel's result is compared with the loop's; one that differs is named and ends the program.
// scripts/bench --sim runs it interpreted and compiled.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_fp16.h>
#include <mma.h>
#include <time.h>
#include <vector>

static int runs = 5;

static double now() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "sim_kernels: %s\n", cudaGetErrorString(error));
        exit(1);
    }
}

template <class F> static double median(F f) {
    // So that everything is compiled that ever will be: see OFTEN in sim/src/interp/native/mod.rs.
    for (int run = 0; run < 24; run++) f();
    std::vector<double> all;
    for (int run = 0; run < runs; run++) {
        double start = now();
        f();
        all.push_back(now() - start);
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

template <class T> struct Both {
    std::vector<T> host;
    T *device;
    Both(size_t n, T (*value)(size_t)) : host(n) {
        for (size_t i = 0; i < n; i++) host[i] = value(i);
        check(cudaMalloc(&device, n * sizeof(T)));
        push();
    }
    void push() { check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice)); }
    std::vector<T> pull() {
        std::vector<T> out(host.size());
        check(cudaMemcpy(out.data(), device, out.size() * sizeof(T), cudaMemcpyDeviceToHost));
        return out;
    }
};

static bool first = true;
template <class T> static void report(const char *name, double sim, double c, const std::vector<T> &got, const std::vector<T> &want,
                                      double slack) {
    for (size_t i = 0; i < want.size(); i++) {
        double difference = std::fabs((double)got[i] - (double)want[i]);
        if (!(difference <= slack * std::max(1.0, std::fabs((double)want[i])))) {
            fprintf(stderr, "sim_kernels: %s[%zu] is %g, not %g\n", name, i, (double)got[i], (double)want[i]);
            exit(1);
        }
    }
    printf("%s\"%s\": {\"sim\": %.1f, \"c\": %.1f}", first ? "{" : ",\n ", name, sim, c);
    first = false;
    fflush(stdout);
}

static float small(size_t i) { return (float)((i * 2654435761u >> 8) % 1000) * 0.001f; }
static unsigned word(size_t i) { return (unsigned)(i * 2654435761u); }
static void synced() { check(cudaDeviceSynchronize()); }

const int N = 192;
__global__ void product(const float *a, const float *b, float *c) {
    __shared__ float ta[16][16], tb[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int tile = 0; tile < N; tile += 16) {
        ta[threadIdx.y][threadIdx.x] = a[y * N + tile + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * N + x];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
        __syncthreads();
    }
    c[y * N + x] = sum;
}
static void product_c(const float *a, const float *b, float *c) {
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < N; x++) c[y * N + x] = 0;
        for (int k = 0; k < N; k++)
            for (int x = 0; x < N; x++) c[y * N + x] = fmaf(a[y * N + k], b[k * N + x], c[y * N + x]);
    }
}

const int M = 1 << 18;
__global__ void reduction(const float *in, float *out) {
    __shared__ float part[256];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * 256 + t; i < M; i += gridDim.x * 256) sum += in[i];
    part[t] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step >>= 1) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, part[0]);
}

__global__ void scan(const unsigned *in, unsigned *out) {
    __shared__ unsigned sums[8];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, lane = t & 31;
    unsigned value = in[i];
    for (int step = 1; step < 32; step *= 2) {
        unsigned other = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += other;
    }
    if (lane == 31) sums[t / 32] = value;
    __syncthreads();
    for (int w = 0; w < t / 32; w++) value += sums[w];
    out[i] = value;
}

__global__ void histogram(const unsigned *in, unsigned *out) {
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < M; i += gridDim.x * 256) atomicAdd(&bins[in[i] >> 24], 1);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

const int W = 512;
__global__ void stencil(const float *in, float *out) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x == 0 || y == 0 || x == W - 1 || y == W - 1) return;
    const float *p = in + y * W + x;
    out[y * W + x] = 0.5f * p[0] + 0.125f * (p[-1] + p[1] + p[-W] + p[W]);
}

const int B = 1024;
__global__ void bodies(const float4 *in, float4 *out) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 me = in[i], sum = {0, 0, 0, 0};
    for (int start = 0; start < B; start += 128) {
        tile[threadIdx.x] = in[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; j++) {
            float x = tile[j].x - me.x, y = tile[j].y - me.y, z = tile[j].z - me.z;
            float d = x * x + y * y + z * z + 0.01f;
            float s = tile[j].w / (d * sqrtf(d));
            sum.x += s * x, sum.y += s * y, sum.z += s * z;
        }
        __syncthreads();
    }
    out[i] = sum;
}

__global__ void bitonic(unsigned *data) {
    __shared__ unsigned s[512];
    int t = threadIdx.x;
    s[t] = data[blockIdx.x * 512 + t];
    s[t + 256] = data[blockIdx.x * 512 + t + 256];
    for (int size = 2; size <= 512; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int at = 2 * t - (t & (stride - 1));
            unsigned a = s[at], b = s[at + stride];
            bool up = (at & size) == 0;
            if ((a > b) == up) s[at] = b, s[at + stride] = a;
        }
    __syncthreads();
    data[blockIdx.x * 512 + t] = s[t];
    data[blockIdx.x * 512 + t + 256] = s[t + 256];
}

const int ROUNDS = 256;
__host__ __device__ static unsigned hashed(unsigned x) {
    for (int round = 0; round < ROUNDS; round++) {
        x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b, x ^= x >> 16, x += round;
    }
    return x;
}
__global__ void hashes(const unsigned *in, unsigned *out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = hashed(in[i]);
}

const int T = 256;
__global__ void filtered(cudaTextureObject_t texture, float *out) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[y * T + x] = tex2D<float>(texture, x * 0.7f + 0.3f, y * 0.6f + 0.2f);
}
static float filtered_c(const float *in, float x, float y) {
    x -= 0.5f, y -= 0.5f;
    float fx = floorf(x), fy = floorf(y), a = rintf((x - fx) * 256) / 256, b = rintf((y - fy) * 256) / 256;
    auto at = [&](int u, int v) { return in[std::clamp(v, 0, T - 1) * T + std::clamp(u, 0, T - 1)]; };
    int u = (int)fx, v = (int)fy;
    return (1 - a) * (1 - b) * at(u, v) + a * (1 - b) * at(u + 1, v) + (1 - a) * b * at(u, v + 1) + a * b * at(u + 1, v + 1);
}

const int H = 128;
__global__ void tensor(const half *a, const half *b, float *c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, row_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 0);
    int x = blockIdx.x * 16, y = blockIdx.y * 16;
    for (int k = 0; k < H; k += 16) {
        load_matrix_sync(fa, a + y * H + k, H);
        load_matrix_sync(fb, b + k * H + x, H);
        mma_sync(fc, fa, fb, fc);
    }
    store_matrix_sync(c + y * H + x, fc, H, mem_row_major);
}

__global__ void nothing() {}

int main(int argc, char **argv) {
    if (argc > 1) runs = atoi(argv[1]);
    const char *only = argc > 2 ? argv[2] : "";
    auto wanted = [&](const char *name) { return !*only || !strcmp(only, name); };
    auto zero = [](size_t) { return 0.0f; };
    auto none = [](size_t) { return 0u; };
    if (wanted("matrix product")) {
        Both<float> a(N * N, small), b(N * N, small), c(N * N, zero);
        double sim = median([&] { product<<<dim3(N / 16, N / 16), dim3(16, 16)>>>(a.device, b.device, c.device), synced(); });
        double cpu = median([&] { product_c(a.host.data(), b.host.data(), c.host.data()); });
        report("matrix product", sim, cpu, c.pull(), c.host, 1e-4);
    }
    if (wanted("reduction")) {
        Both<float> in(M, small), out(1, zero);
        double sim = median([&] { check(cudaMemset(out.device, 0, 4)), reduction<<<64, 256>>>(in.device, out.device), synced(); });
        double cpu = median([&] { double sum = 0; for (float v : in.host) sum += v; out.host[0] = (float)sum; });
        report("reduction", sim, cpu, out.pull(), out.host, 1e-3);
    }
    if (wanted("scan")) {
        Both<unsigned> in(M, word), out(M, none);
        double sim = median([&] { scan<<<M / 256, 256>>>(in.device, out.device), synced(); });
        double cpu = median([&] {
            for (int block = 0; block < M; block += 256) { unsigned sum = 0; for (int i = 0; i < 256; i++) out.host[block + i] = sum += in.host[block + i]; }
        });
        report("scan", sim, cpu, out.pull(), out.host, 0);
    }
    if (wanted("histogram")) {
        Both<unsigned> in(M, word), out(256, none);
        double sim = median([&] { check(cudaMemset(out.device, 0, 1024)), histogram<<<64, 256>>>(in.device, out.device), synced(); });
        double cpu = median([&] { std::fill(out.host.begin(), out.host.end(), 0u); for (unsigned v : in.host) out.host[v >> 24]++; });
        report("histogram", sim, cpu, out.pull(), out.host, 0);
    }
    if (wanted("stencil")) {
        Both<float> in(W * W, small), out(W * W, zero);
        double sim = median([&] { stencil<<<dim3(W / 32, W / 8), dim3(32, 8)>>>(in.device, out.device), synced(); });
        double cpu = median([&] {
            for (int y = 1; y < W - 1; y++) for (int x = 1; x < W - 1; x++) {
                const float *p = in.host.data() + y * W + x;
                out.host[y * W + x] = 0.5f * p[0] + 0.125f * (p[-1] + p[1] + p[-W] + p[W]);
            }
        });
        report("stencil", sim, cpu, out.pull(), out.host, 1e-5);
    }
    if (wanted("n-body")) {
        Both<float> in(B * 4, small), out(B * 4, zero);
        double sim = median([&] { bodies<<<B / 128, 128>>>((float4 *)in.device, (float4 *)out.device), synced(); });
        double cpu = median([&] {
            const float *p = in.host.data();
            for (int i = 0; i < B; i++) {
                float ax = 0, ay = 0, az = 0;
                for (int j = 0; j < B; j++) {
                    float x = p[4 * j] - p[4 * i], y = p[4 * j + 1] - p[4 * i + 1], z = p[4 * j + 2] - p[4 * i + 2];
                    float d = x * x + y * y + z * z + 0.01f, s = p[4 * j + 3] / (d * sqrtf(d));
                    ax += s * x, ay += s * y, az += s * z;
                }
                out.host[4 * i] = ax, out.host[4 * i + 1] = ay, out.host[4 * i + 2] = az;
            }
        });
        report("n-body", sim, cpu, out.pull(), out.host, 1e-2);
    }
    if (wanted("sort")) {
        Both<unsigned> data(M / 4, word);
        std::vector<unsigned> original = data.host, sorted;
        double sim = median([&] { data.host = original, data.push(), bitonic<<<M / 4 / 512, 256>>>(data.device), synced(); });
        double cpu = median([&] { sorted = original; for (int at = 0; at < M / 4; at += 512) std::sort(sorted.begin() + at, sorted.begin() + at + 512); });
        report("sort", sim, cpu, data.pull(), sorted, 0);
    }
    if (wanted("hash")) {
        Both<unsigned> in(1 << 15, word), out(1 << 15, none);
        double sim = median([&] { hashes<<<(1 << 15) / 256, 256>>>(in.device, out.device), synced(); });
        double cpu = median([&] { for (int i = 0; i < 1 << 15; i++) out.host[i] = hashed(in.host[i]); });
        report("hash", sim, cpu, out.pull(), out.host, 0);
    }
    if (wanted("filtered texture")) {
        Both<float> in(T * T, small), out(T * T, zero);
        cudaArray_t array;
        cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        check(cudaMallocArray(&array, &format, T, T));
        check(cudaMemcpy2DToArray(array, 0, 0, in.host.data(), T * 4, T * 4, T, cudaMemcpyHostToDevice));
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
        cudaTextureDesc how = {};
        how.filterMode = cudaFilterModeLinear, how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
        cudaTextureObject_t texture;
        check(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
        double sim = median([&] { filtered<<<dim3(T / 32, T / 8), dim3(32, 8)>>>(texture, out.device), synced(); });
        double cpu = median([&] { for (int y = 0; y < T; y++) for (int x = 0; x < T; x++) out.host[y * T + x] = filtered_c(in.host.data(), x * 0.7f + 0.3f, y * 0.6f + 0.2f); });
        report("filtered texture", sim, cpu, out.pull(), out.host, 1e-2);
    }
    if (wanted("HMMA product")) {
        Both<half> a(H * H, [](size_t i) { return __float2half(small(i)); }), b(H * H, [](size_t i) { return __float2half(small(i + 7)); });
        Both<float> c(H * H, zero);
        std::vector<float> fa(H * H), fb(H * H);
        for (int i = 0; i < H * H; i++) fa[i] = __half2float(a.host[i]), fb[i] = __half2float(b.host[i]);
        double sim = median([&] { tensor<<<dim3(H / 16, H / 16), 32>>>(a.device, b.device, c.device), synced(); });
        double cpu = median([&] {
            for (int y = 0; y < H; y++) {
                for (int x = 0; x < H; x++) c.host[y * H + x] = 0;
                for (int k = 0; k < H; k++) for (int x = 0; x < H; x++) c.host[y * H + x] += fa[y * H + k] * fb[k * H + x];
            }
        });
        report("HMMA product", sim, cpu, c.pull(), c.host, 1e-3);
    }
    if (wanted("10,000 empty launches")) {
        double sim = median([&] { for (int i = 0; i < 10000; i++) nothing<<<1, 32>>>(); synced(); });
        void (*volatile call)() = [] {};
        double cpu = median([&] { for (int i = 0; i < 10000; i++) call(); });
        report<float>("10,000 empty launches", sim, cpu, {}, {}, 0);
    }
    printf("}\n");
}
