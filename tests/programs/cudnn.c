/* A library that does not order what it does with memory of its own (inside), and a program that makes the same mistake with its own
 * memory (outside), or with a library's that it was lent (lent). */
#include "common.h"

int cudnnCreate(void);
CUdeviceptr cudnnScratch(void);
int cudnnBatchNormalizationForwardTraining(CUstream stream);

int main(int argc, char **argv) {
    CUstream own, stream;
    CUdeviceptr x, y;
    begin("kernel_8");
    REQUIRE(argc == 2);
    CHECK(cuStreamCreate(&own, 1));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemAlloc_v2(&x, 25344));
    CHECK(cuMemAlloc_v2(&y, 25344));
    REQUIRE(cudnnCreate() == 0);
    if (!strcmp(argv[1], "inside")) REQUIRE(cudnnBatchNormalizationForwardTraining(stream) == 0);
    if (!strcmp(argv[1], "lent")) CHECK(cuMemcpyDtoDAsync_v2(y, cudnnScratch(), 25344, stream));
    if (!strcmp(argv[1], "outside")) {
        CHECK(cuMemsetD8Async(x, 0, 25344, own));
        CHECK(cuMemcpyDtoDAsync_v2(y, x, 25344, stream));
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
