/* One call and all that it touches, for the programs beside this file: a call on one stream, and
   copies on another that write each operand, in order or not. A copy writes what is there already, so
   a race changes nothing that is computed. */
#include "matrices.h"

int cudaMemcpyAsync(void *, const void *, size_t, int, stream_t);

enum { MOST = 12, APART = 64 };
static stream_t first, second;
/* Read, written, used as it likes. */
static struct {
    void *at, *copy;
    size_t bytes;
    char kind;
} operands[MOST];
static struct {
    char *at, *copy;
    size_t bytes;
} apart[APART];
static int operand_count, apart_count;

/* An operand of the call that comes next. */
static inline void operand(void *at, size_t bytes, char kind) {
    if (operand_count == MOST) abort();
    operands[operand_count].at = at, operands[operand_count].bytes = bytes, operands[operand_count++].kind = kind;
}
/* What the call leaves alone, though it lies beside its operands. */
static inline void leaves(void *at, size_t bytes) {
    if (apart_count == APART) abort();
    if (bytes) apart[apart_count].at = at, apart[apart_count++].bytes = bytes;
}
static inline void *copied(const void *at, size_t bytes) {
    void *copy;
    cudaMalloc(&copy, bytes);
    cudaMemcpy(copy, at, bytes, 3);
    return copy;
}
/* Gives the library's handle a stream. What prepares a call runs on the default one. */
static void on(stream_t);
/* Behind the last operand, before the call. */
static inline void ready(void) {
    for (int k = 0; k < operand_count; k++) operands[k].copy = copied(operands[k].at, operands[k].bytes);
    for (int k = 0; k < apart_count; k++) apart[k].copy = copied(apart[k].at, apart[k].bytes);
    cudaDeviceSynchronize();
    on(first);
}
static inline void order(void) {
    event_t event;
    cudaEventCreate(&event);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
}

/* Behind the call. `which`: the operand that is written without order, if the call has so many; -1:
   all are, in order, and what the call leaves alone without. Answers the operand's kind. */
static inline char meet(int which) {
    char kind = 0;
    if (which < 0) {
        for (int k = 0; k < apart_count; k++) cudaMemcpyAsync(apart[k].at, apart[k].copy, apart[k].bytes, 3, second);
        order();
        for (int k = 0; k < operand_count; k++)
            cudaMemcpyAsync(operands[k].at, operands[k].copy, operands[k].bytes, 3, second);
    } else if (which < operand_count) {
        cudaMemcpyAsync(operands[which].at, operands[which].copy, operands[which].bytes, 3, second);
        kind = operands[which].kind;
    }
    cudaDeviceSynchronize();
    operand_count = apart_count = 0;
    on(0);
    return kind;
}

/* Memory with numbers in it. */
static inline void *filled(const void *from, size_t bytes) {
    void *at;
    cudaMalloc(&at, bytes ? bytes : 1);
    if (bytes) cudaMemcpy(at, from, bytes, 1);
    return at;
}
static inline void *room(size_t bytes) {
    void *at;
    cudaMalloc(&at, bytes ? bytes : 1);
    cudaMemset(at, 0, bytes ? bytes : 1);
    return at;
}

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int code_ = (call);                                                                                           \
        if (code_) {                                                                                                  \
            printf("line %d: %d\n", __LINE__, code_);                                                                 \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)
