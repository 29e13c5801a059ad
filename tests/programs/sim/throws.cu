// A host function throws a C++ exception: `throws WAY [race] [caught]`. `function` is from
// cudaLaunchHostFunc, `callback` from cudaStreamAddCallback, `node` from a graph. `race`: before
// that, two streams write the same buffer. `caught`: the function catches its exception itself.

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

static bool caught;

static void fail() { throw std::runtime_error("no room in the queue"); }

static void CUDART_CB function(void *) {
    if (!caught) fail();
    try {
        fail();
    } catch (const std::exception &error) {
        printf("caught: %s\n", error.what());
    }
}

static void CUDART_CB callback(cudaStream_t, cudaError_t, void *data) { function(data); }

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    bool race = false;
    for (int i = 2; i < argc; ++i) {
        race |= !strcmp(argv[i], "race");
        caught |= !strcmp(argv[i], "caught");
    }
    // The program's own handler is asked, on the thread that threw, and knows the exception.
    static std::terminate_handler before = std::get_terminate();
    std::set_terminate([] {
        fputs(std::current_exception() ? "terminating: an exception\n" : "terminating\n", stderr);
        before();
    });
    constexpr int BYTES = 4096;
    cudaStream_t one, two;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    char *buffer;
    cudaMalloc(&buffer, BYTES);
    cudaMemsetAsync(buffer, 1, BYTES, one);
    if (!race) cudaStreamSynchronize(one);
    cudaMemsetAsync(buffer, 2, BYTES, two);
    cudaStreamSynchronize(two);
    if (!strcmp(way, "node")) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
        cudaLaunchHostFunc(one, function, nullptr);
        cudaStreamEndCapture(one, &graph);
        cudaGraphInstantiate(&exec, graph, 0);
        cudaGraphLaunch(exec, one);
    } else if (!strcmp(way, "callback")) {
        cudaStreamAddCallback(one, callback, nullptr, 0);
    } else {
        cudaLaunchHostFunc(one, function, nullptr);
    }
    cudaDeviceSynchronize();
    puts("done");
    return 0;
}
