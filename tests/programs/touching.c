/* Turns of a loop in which two kernels use one buffer on two streams that nothing orders: `touching FROM LEN [TURNS [code]]` lets the second touch
 * LEN bytes from FROM on, the first touches bytes 0 to 99. A third kernel of another module has nothing to do with it. Between the turns
 * it sleeps, so that the analyzer can keep up. With `code`, which goes with a LEN of 4, there is code of the second kernel; with `graph` the
 * second and the third are nodes of a graph, and so is another launch of the second, 2048 bytes behind; with `late` that begins half way. */
#include "common.h"

#define HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
static const char *code = HEAD ".visible .entry touch_8_4_4_second(.param .u64 p, .param .u32 from, .param .u32 len)\n{\n"
    ".reg .b32 %r<2>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\nld.param.u32 %r1, [from];\ncvt.u64.u32 %rd2, %r1;\n"
    "add.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1;\nret;\n}\n";

static void touch(CUfunction f, CUstream s, CUdeviceptr p, unsigned from, unsigned len) {
    void *params[] = {&p, &from, &len};
    CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, 0));
}

static void add(CUgraph graph, CUfunction f, CUdeviceptr p, unsigned from, unsigned len) {
    void *params[] = {&p, &from, &len};
    CUkernelNode kernel = {.f = f, .gx = 1, .gy = 1, .gz = 1, .bx = 32, .by = 1, .bz = 1, .params = params};
    CUgraphNode node;
    CHECK(cuGraphAddKernelNode_v2(&node, graph, 0, 0, &kernel));
}

int main(int argc, char **argv) {
    unsigned from = strtoul(argv[1], 0, 10), len = strtoul(argv[2], 0, 10), turns = argc > 3 ? strtoul(argv[3], 0, 10) : 40;
    CUfunction first = begin("touch_8_4_4"), second, other;
    CUmodule module, apart;
    CUstream a, b;
    CUdeviceptr buffer, elsewhere;
    CHECK(cuModuleLoadData(&module, argc > 4 && !strcmp(argv[4], "code") ? code : HEAD));
    CHECK(cuModuleGetFunction(&second, module, "touch_8_4_4_second"));
    CHECK(cuModuleLoadData(&apart, HEAD));
    CHECK(cuModuleGetFunction(&other, apart, "touch_8_4_4_other"));
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuMemAlloc_v2(&buffer, 4096));
    CHECK(cuMemAlloc_v2(&elsewhere, 4096));
    CUgraphExec exec = 0;
    int late = argc > 4 && !strcmp(argv[4], "late");
    for (unsigned i = 0; i < turns; i++) {
        if (argc > 4 && !exec && (!strcmp(argv[4], "graph") || (late && i == turns / 2))) {
            CUgraph graph;
            CHECK(cuGraphCreate(&graph, 0));
            add(graph, second, buffer + 2048, from, len);
            add(graph, other, elsewhere, 0, 64);
            add(graph, second, buffer, from, len);
            CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        }
        touch(first, a, buffer, 0, 100);
        if (exec) {
            CHECK(cuGraphLaunch(exec, b));
        } else {
            touch(other, a, elsewhere, 0, 64);
            touch(second, b, buffer, from, len);
        }
        CHECK(cuCtxSynchronize());
        usleep(20000);
    }
    puts("done");
    return 0;
}
