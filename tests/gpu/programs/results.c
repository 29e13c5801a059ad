// Writes digests of what a CUDA program computed on a device, in the form of --sim-results.
//
// Preloaded into a program that uses the shared runtime. One line for each allocation, `KIND BYTES
// DIGEST`, when it is freed or when the program ends, appended to the file that RESULTS names.
// Memory starts as it does on the simulated GPU, so bytes that nobody writes count, too. Owns the
// calls below; copies, arrays, module variables and memory nodes of graphs are not its business.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

// The runtime's own function of that name.
#define REAL(name) ((__typeof__(&name))next(#name))

enum kind { DEVICE, POOL, MANAGED, PINNED };
static const char *const NAMES[] = {"device", "pool", "managed", "pinned"};

struct allocation {
    void *at;
    size_t bytes;
    enum kind kind;
    int device;
};

static struct allocation *live;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "results: no %s behind this one\n", name);
        abort();
    }
    return found;
}

// FNV-1a of words of 64 bits, as sim/src/memory/result_digests.rs has it.
static uint64_t digest(const unsigned char *bytes, size_t length) {
    const uint64_t prime = 0x100000001b3;
    uint64_t digest = 0xcbf29ce484222325;
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        digest = (digest ^ word) * prime;
        digest ^= digest >> 29;
    }
    for (; length; bytes++, length--)
        digest = (digest ^ *bytes) * prime;
    return digest;
}

// The content will not change any more: work that writes it is waited for.
static void write_line(const struct allocation *ended) {
    const char *path = getenv("RESULTS");
    unsigned char *copy = malloc(ended->bytes ? ended->bytes : 1);
    FILE *file = path ? fopen(path, "a") : NULL;
    int device = 0;
    cudaGetDevice(&device);
    cudaSetDevice(ended->device);
    cudaError_t error = cudaDeviceSynchronize();
    if (!error)
        error = REAL(cudaMemcpy)(copy, ended->at, ended->bytes, cudaMemcpyDefault);
    if (file && copy && !error)
        fprintf(file, "%s %zu %016" PRIx64 "\n", NAMES[ended->kind], ended->bytes, digest(copy, ended->bytes));
    else if (file)
        fprintf(file, "unread %zu %d\n", ended->bytes, (int)error);
    if (file)
        fclose(file);
    free(copy);
    cudaSetDevice(device);
}

static void at_exit(void) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        write_line(&live[i]);
    count = 0;
    pthread_mutex_unlock(&lock);
}

static void begin(void *at, size_t bytes, enum kind kind) {
    pthread_mutex_lock(&lock);
    if (!room)
        atexit(at_exit);
    if (count == room) {
        room = room ? 2 * room : 64;
        live = realloc(live, room * sizeof *live);
        if (!live)
            abort();
    }
    int device = 0;
    cudaGetDevice(&device);
    live[count++] = (struct allocation){at, bytes, kind, device};
    pthread_mutex_unlock(&lock);
}

static void end(void *at) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; at && i < count; i++)
        if (live[i].at == at) {
            write_line(&live[i]);
            live[i] = live[--count];
            break;
        }
    pthread_mutex_unlock(&lock);
}

cudaError_t cudaMalloc(void **at, size_t bytes) {
    cudaError_t error = REAL(cudaMalloc)(at, bytes);
    if (!error && bytes) {
        cudaMemset(*at, 0, bytes);
        cudaDeviceSynchronize();
        begin(*at, bytes, DEVICE);
    }
    return error;
}

cudaError_t cudaMallocPitch(void **at, size_t *pitch, size_t width, size_t height) {
    cudaError_t error = REAL(cudaMallocPitch)(at, pitch, width, height);
    if (!error && width && height) {
        cudaMemset(*at, 0, *pitch * height);
        cudaDeviceSynchronize();
        begin(*at, *pitch * height, DEVICE);
    }
    return error;
}

cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags) {
    cudaError_t error = REAL(cudaMallocManaged)(at, bytes, flags);
    if (!error) {
        memset(*at, 0, bytes);
        begin(*at, bytes, MANAGED);
    }
    return error;
}

cudaError_t cudaMallocHost(void **at, size_t bytes) {
    cudaError_t error = REAL(cudaMallocHost)(at, bytes);
    if (!error && bytes) {
        memset(*at, 0, bytes);
        begin(*at, bytes, PINNED);
    }
    return error;
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags) {
    cudaError_t error = REAL(cudaHostAlloc)(at, bytes, flags);
    if (!error && bytes) {
        memset(*at, 0, bytes);
        begin(*at, bytes, PINNED);
    }
    return error;
}

// In a capture the call makes a node of a graph, which is left alone.
static int captures(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) || status != cudaStreamCaptureStatusNone;
}

cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream) {
    cudaError_t error = REAL(cudaMallocAsync)(at, bytes, stream);
    if (!error && bytes && !captures(stream)) {
        cudaMemsetAsync(*at, 0, bytes, stream);
        begin(*at, bytes, POOL);
    }
    return error;
}

cudaError_t cudaMallocFromPoolAsync(void **at, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    cudaError_t error = REAL(cudaMallocFromPoolAsync)(at, bytes, pool, stream);
    if (!error && bytes && !captures(stream)) {
        cudaMemsetAsync(*at, 0, bytes, stream);
        begin(*at, bytes, POOL);
    }
    return error;
}

cudaError_t cudaFree(void *at) {
    end(at);
    return REAL(cudaFree)(at);
}

cudaError_t cudaFreeHost(void *at) {
    end(at);
    return REAL(cudaFreeHost)(at);
}

cudaError_t cudaFreeAsync(void *at, cudaStream_t stream) {
    if (!captures(stream))
        end(at);
    return REAL(cudaFreeAsync)(at, stream);
}

cudaError_t cudaDeviceReset(void) {
    at_exit();
    return REAL(cudaDeviceReset)();
}
