/* Loads, a `memcpy` and an atomic operation of the host on memory that a stream still fills, or, with
 * `fixed`, that the host has waited for. For any compiler of C with -fsanitize=thread. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const int fixed = argc > 1 && !strcmp(argv[1], "fixed");
    struct { int a[64]; } part = {{1}};
    cudaStream_t stream;
    long total = 0;
    int *x;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMallocManaged((void **)&x, 4096 * sizeof *x, cudaMemAttachGlobal);
    cudaMemsetAsync(x, 1, 4096 * sizeof *x, stream);
    if (fixed) cudaStreamSynchronize(stream);
    for (int i = 0; i < 4096; ++i) total += x[i];
    cudaStreamSynchronize(stream);
    cudaMemsetAsync(x, 2, 4096 * sizeof *x, stream);
    if (fixed) cudaStreamSynchronize(stream);
    memcpy(x, &part, sizeof part);
    cudaStreamSynchronize(stream);
    cudaMemsetAsync(x, 3, 4096 * sizeof *x, stream);
    if (fixed) cudaStreamSynchronize(stream);
    __atomic_fetch_add(&x[7], 1, __ATOMIC_SEQ_CST);
    cudaStreamSynchronize(stream);
    printf("done %d\n", total != 0);
    return 0;
}
