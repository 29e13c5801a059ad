// Device code that programs of this folder are linked with.

__device__ float factor = 2.0f;
static __device__ float hidden = 0.25f;

// Each source that uses it has its own, of which the linker keeps one.
__device__ inline float shifted(float v) {
    return v + hidden;
}

__device__ float scaled(float v) {
    return factor * shifted(v);
}
