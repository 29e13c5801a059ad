// Whether the host functions inside a child graph of an executable graph can be replaced without a
// change of what the program sees. Prints one line a question.
#include <cuda.h>
#include <cstdio>

static int called[3];
static void CUDA_CB first(void *) { called[0]++; }
static void CUDA_CB second(void *) { called[1]++; }
static void CUDA_CB third(void *) { called[2]++; }

static CUgraph child_with(CUhostFn function, CUgraphNode *node) {
    CUgraph graph;
    cuGraphCreate(&graph, 0);
    CUDA_HOST_NODE_PARAMS params = {function, nullptr};
    cuGraphAddHostNode(node, graph, nullptr, 0, &params);
    return graph;
}

static void launch(CUgraphExec exec, const char *what) {
    called[0] = called[1] = called[2] = 0;
    CUresult launched = cuGraphLaunch(exec, nullptr), done = cuCtxSynchronize();
    printf("%s: launch %d, %d, called %d %d %d\n", what, launched, done, called[0], called[1], called[2]);
}

int main() {
    CUdevice device;
    CUcontext context;
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    CUgraphNode inner, node, embedded, middle_node, deep;
    CUgraph child = child_with(first, &inner), graph, held;
    cuGraphCreate(&graph, 0);
    cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child);
    cuGraphChildGraphNodeGetGraph(node, &held);
    size_t count = 1;
    cuGraphGetNodes(held, &embedded, &count);
    CUgraphExec exec;
    printf("instantiate %d\n", cuGraphInstantiate(&exec, graph, 0));
    CUDA_HOST_NODE_PARAMS to = {second, nullptr}, got;
    printf("set by the embedded node %d\n", cuGraphExecHostNodeSetParams(exec, embedded, &to));
    launch(exec, "after that");
    printf("set by the node of the child %d\n", cuGraphExecHostNodeSetParams(exec, inner, &to));
    CUgraph clone;
    CUgraphNode cloned;
    printf("clone %d\n", cuGraphClone(&clone, held));
    printf("find %d\n", cuGraphNodeFindInClone(&cloned, embedded, clone));
    to.fn = third;
    printf("set in the clone %d\n", cuGraphHostNodeSetParams(cloned, &to));
    printf("set the child %d\n", cuGraphExecChildGraphNodeSetParams(exec, node, clone));
    cuGraphDestroy(clone);
    launch(exec, "after that");
    cuGraphHostNodeGetParams(embedded, &got);
    printf("the getter of the embedded node gives %s\n", got.fn == first ? "its own" : "another");
    cuGraphHostNodeGetParams(inner, &got);
    printf("the getter of the child's node gives %s\n", got.fn == first ? "its own" : "another");

    // A child inside a child: of it the node inside the embedded graph is named.
    CUgraph middle, outer, held_middle;
    cuGraphCreate(&middle, 0);
    cuGraphAddChildGraphNode(&middle_node, middle, nullptr, 0, child);
    cuGraphCreate(&outer, 0);
    cuGraphAddChildGraphNode(&node, outer, nullptr, 0, middle);
    cuGraphChildGraphNodeGetGraph(node, &held_middle);
    count = 1;
    cuGraphGetNodes(held_middle, &deep, &count);
    cuGraphInstantiate(&exec, outer, 0);
    CUgraph held_inner;
    cuGraphChildGraphNodeGetGraph(deep, &held_inner);
    count = 1;
    cuGraphGetNodes(held_inner, &embedded, &count);
    to.fn = second;
    printf("two deep: set by the embedded node %d\n", cuGraphExecHostNodeSetParams(exec, embedded, &to));
    launch(exec, "after that");
    cuGraphClone(&clone, held_middle);
    CUgraphNode in_clone;
    CUresult found = cuGraphNodeFindInClone(&in_clone, deep, clone);
    CUgraph clone_inner = nullptr;
    CUresult inside = cuGraphChildGraphNodeGetGraph(in_clone, &clone_inner);
    CUgraphNode clone_host = nullptr;
    count = 1;
    CUresult listed = cuGraphGetNodes(clone_inner, &clone_host, &count);
    to.fn = third;
    CUresult set = cuGraphHostNodeSetParams(clone_host, &to);
    printf("two deep: find %d, child of it %d, nodes %d, set in the clone %d\n", found, inside, listed, set);
    printf("two deep: set the child %d\n", cuGraphExecChildGraphNodeSetParams(exec, node, clone));
    launch(exec, "after that");
    return 0;
}
