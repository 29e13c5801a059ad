/* What cuDNN 9 does (seen under PyTorch 2.11): a handle clears its scratch memory on a stream of its own when it is made, and uses it on the
 * caller's stream later; nothing orders the two. */
#include "cuda_mini.h"

static CUdeviceptr scratch, out;

int cudnnCreate(void) {
    CUstream own;
    return cuStreamCreate(&own, 1) || cuMemAlloc_v2(&scratch, 25344) || cuMemAlloc_v2(&out, 25344) || cuMemsetD8Async(scratch, 0, 25344, own);
}
/* The library's memory, lent to the caller. */
CUdeviceptr cudnnScratch(void) { return scratch; }
int cudnnBatchNormalizationForwardTraining(CUstream stream) { return cuMemcpyDtoDAsync_v2(out, scratch, 25344, stream); }
