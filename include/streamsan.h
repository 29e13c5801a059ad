/* What a program may tell StreamSan. Needs no library: the functions are those of the preloaded shim, and nothing happens without it.
 *
 *   STREAMSAN_STOP();            work that follows is not checked (its order still counts) ...
 *   STREAMSAN_START();           ... until here
 *   STREAMSAN_PUSH("forward");   reports name the part of the program that a call of this thread is in ...
 *   STREAMSAN_POP();             ... until here
 *   STREAMSAN_ACTIVE()           whether the shim is there
 *
 * NVTX ranges (nvtxRangePush and nvtxRangePop) are parts too: programs that have them need not change.
 *
 * The program must be linked dynamically, as programs that are preloaded into are anyway.
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

#ifdef __cplusplus
}
#endif

#define STREAMSAN_ACTIVE() (streamsan_start != 0)
#define STREAMSAN_START() do { if (streamsan_start) streamsan_start(); } while (0)
#define STREAMSAN_STOP() do { if (streamsan_stop) streamsan_stop(); } while (0)
#define STREAMSAN_PUSH(name) do { if (streamsan_push) streamsan_push(name); } while (0)
#define STREAMSAN_POP() do { if (streamsan_pop) streamsan_pop(); } while (0)

#endif
