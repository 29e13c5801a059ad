/* Makes the calls that a script on standard input asks for, one a line, numbers separated by spaces:
 *   S n flags   create stream n        (stream 0 is the legacy default stream, there from the start)
 *   E n         create event n         B n bytes   allocate buffer n       A n bytes s   allocate it in the order of stream s
 *   f s b at len          fill a part of a buffer         c s to at from at len   copy between buffers
 *   r e s   record        w s e   wait       q s / p e   query stream, event (they answer: finished)
 *   y s / v e / d         synchronise with stream, event, context           F b s   free in stream order
 *   x s                   destroy a stream */
#include "common.h"

static CUstream streams[64];
static CUevent events[64];
static CUdeviceptr buffers[64];

int main(void) {
    begin("f_4_4");
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        unsigned a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
        sscanf(line + 1, "%u %u %u %u %u %u", &a, &b, &c, &d, &e, &f);
        switch (line[0]) {
        case 'S': CHECK(cuStreamCreate(&streams[a], b)); break;
        case 'E': CHECK(cuEventCreate(&events[a], 2)); break;
        case 'B': CHECK(cuMemAlloc_v2(&buffers[a], b)); break;
        case 'A': CHECK(cuMemAllocAsync(&buffers[a], b, streams[c])); break;
        case 'f': CHECK(cuMemsetD8Async(buffers[b] + c, 1, d, streams[a])); break;
        case 'c': CHECK(cuMemcpyDtoDAsync_v2(buffers[b] + c, buffers[d] + e, f, streams[a])); break;
        case 'r': CHECK(cuEventRecord(events[a], streams[b])); break;
        case 'w': CHECK(cuStreamWaitEvent(streams[a], events[b], 0)); break;
        case 'q': CHECK(cuStreamQuery(streams[a])); break;
        case 'p': CHECK(cuEventQuery(events[a])); break;
        case 'y': CHECK(cuStreamSynchronize(streams[a])); break;
        case 'v': CHECK(cuEventSynchronize(events[a])); break;
        case 'd': CHECK(cuCtxSynchronize()); break;
        case 'F': CHECK(cuMemFreeAsync(buffers[a], streams[b])); break;
        case 'x': CHECK(cuStreamDestroy_v2(streams[a])); break;
        default: return 97;
        }
    }
    return 0;
}
