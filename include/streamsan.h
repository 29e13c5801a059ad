/* What a program can say to StreamSan. No library is needed: the functions are those of the preloaded
 * shim, and without it the macros do nothing.
 *
 *   STREAMSAN_STOP();            work that follows is not checked (its order still counts) ...
 *   STREAMSAN_START();           ... until here
 *   STREAMSAN_PUSH("forward");   reports name the part of the program that a call of this thread is in ...
 *   STREAMSAN_POP();             ... until here
 *   STREAMSAN_NAME_STREAM(stream, "copies");   reports name the stream so; --forbid unnamed-stream asks for it
 *   STREAMSAN_SAVE("loss is nan");   with --keep-last: what was recorded last is kept
 *   STREAMSAN_ACTIVE()           whether the shim is there
 *
 * And what a pool of the program hands out (streams are cudaStream_t or CUstream, a null one is the
 * default stream):
 *
 *   STREAMSAN_ALLOCATED("arena", p, bytes, stream);   a block, which may be used on this stream at once
 *   STREAMSAN_FREED(p, stream);                       it is back, and may be handed out again to this
 *                                                     stream at once
 *
 * Reports then name the block with its own stack, and report one that was freed while another stream
 * may still use it. A pool that synchronises before it hands out says STREAMSAN_ANY_STREAM in both
 * places; then only real overlaps are reported.
 *
 * And what an engine that CUDA does not see (a network card, a disk, a video decoder) does to memory:
 *
 *   STREAMSAN_EXTERNAL_BEGIN(read, p, bytes, key);    from here on it reads these bytes; or write, or read_write ...
 *   STREAMSAN_EXTERNAL_END(key);                      ... until the program has seen here that it is done
 *
 * The key is any number or pointer of the program's, a request for example. Several accesses may have
 * one key; they end together.
 *
 * NVTX ranges (nvtxRangePush and nvtxRangePop) are parts too: programs that have them need not change.
 *
 * The program must be linked dynamically, as programs that are preloaded into are anyway.
 * More: docs/reference/streamsan-h.md.
 */
#ifndef STREAMSAN_H
#define STREAMSAN_H

#ifdef __cplusplus
extern "C" {
#endif

extern void streamsan_start(void) __attribute__((weak));
extern void streamsan_stop(void) __attribute__((weak));
extern void streamsan_push(const char *name) __attribute__((weak));
extern void streamsan_pop(void) __attribute__((weak));
extern void streamsan_save(const char *reason) __attribute__((weak));
extern void streamsan_name_stream(const void *stream, const char *name) __attribute__((weak));
extern void streamsan_allocated(const char *pool, const void *block, unsigned long bytes, const void *stream) __attribute__((weak));
extern void streamsan_freed(const void *block, const void *stream) __attribute__((weak));
extern void streamsan_external_begin(unsigned access, const void *bytes, unsigned long size, unsigned long key) __attribute__((weak));
extern void streamsan_external_end(unsigned long key) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#define STREAMSAN_ACTIVE() (streamsan_start != 0)
#define STREAMSAN_START() do { if (streamsan_start) streamsan_start(); } while (0)
#define STREAMSAN_STOP() do { if (streamsan_stop) streamsan_stop(); } while (0)
#define STREAMSAN_PUSH(name) do { if (streamsan_push) streamsan_push(name); } while (0)
#define STREAMSAN_POP() do { if (streamsan_pop) streamsan_pop(); } while (0)
#define STREAMSAN_SAVE(reason) do { if (streamsan_save) streamsan_save(reason); } while (0)
#define STREAMSAN_NAME_STREAM(stream, name) \
    do { if (streamsan_name_stream) streamsan_name_stream((const void *)(stream), (name)); } while (0)
#define STREAMSAN_ANY_STREAM ((const void *)-1L)
#define STREAMSAN_ALLOCATED(pool, block, bytes, stream) \
    do { if (streamsan_allocated) streamsan_allocated((pool), (const void *)(block), (bytes), (const void *)(stream)); } while (0)
#define STREAMSAN_FREED(block, stream) do { if (streamsan_freed) streamsan_freed((const void *)(block), (const void *)(stream)); } while (0)
#define STREAMSAN_EXTERNAL_ACCESS_read 1u
#define STREAMSAN_EXTERNAL_ACCESS_write 2u
#define STREAMSAN_EXTERNAL_ACCESS_read_write 3u
#define STREAMSAN_EXTERNAL_BEGIN(access, ptr, bytes, key)                                                              \
    do {                                                                                                               \
        if (streamsan_external_begin)                                                                                  \
            streamsan_external_begin(STREAMSAN_EXTERNAL_ACCESS_##access, (const void *)(ptr), (bytes), (unsigned long)(key)); \
    } while (0)
#define STREAMSAN_EXTERNAL_END(key) do { if (streamsan_external_end) streamsan_external_end((unsigned long)(key)); } while (0)

#endif
