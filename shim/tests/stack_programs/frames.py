"""Scenarios by name: prints captures at known places. Lines are looked up by the marks in comments."""
import ctypes
import sys
import threading

probe = ctypes.CDLL(sys.argv[1])  # CDLL releases the GIL around calls
held = ctypes.PyDLL(sys.argv[1])  # PyDLL does not
probe.probe_python_bench.restype = ctypes.c_double


def inner(call):
    call(
    )  # a call over two lines
    return 1


class Model:
    def forward(self, call):
        return [inner(call) for _ in range(1)]

    @property
    def value(self):
        inner(probe.probe_print)
        return 2

    # Globals may be gone by then.
    def __del__(self, scenario=sys.argv[2], inner=inner, call=probe.probe_print):
        if scenario == "finalizing":
            inner(call)


def produce(call):
    x = 0
    while x < 1:
        x += 1
        yield Model().forward(call)


def through_c(call):
    return sorted([2, 1], key=lambda item: next(produce(call)) and item)


def recursive(n, call):
    if n:
        recursive(n - 1, call)
    else:
        call()


def thread(target, *args):
    t = threading.Thread(target=target, args=args)
    t.start()
    t.join()


scenario = sys.argv[2]
found = probe.probe_python()
if scenario == "detect":
    print(found)
elif scenario == "nested":
    through_c(probe.probe_print)
elif scenario == "held":
    through_c(held.probe_print)
elif scenario == "thread":
    thread(through_c, probe.probe_print)
elif scenario == "property":
    Model().value
elif scenario == "deep":
    recursive(300, probe.probe_print)
elif scenario == "callback":
    back = ctypes.CFUNCTYPE(None)(lambda: inner(probe.probe_print))
    inner(back)
elif scenario == "busy":
    # Other threads run Python and make garbage of code objects all the time.
    stop = False

    def churn():
        while not stop:
            scope = {}
            exec("def f(x):\n    return x + 1\nf(1)", scope)

    churners = [threading.Thread(target=churn) for _ in range(3)]
    for t in churners:
        t.start()
    for _ in range(200):
        inner(probe.probe_print)
    stop = True
    for t in churners:
        t.join()
elif scenario == "reused":
    # Code objects that come and go, often at the same address.
    for i in range(60):
        scope = {"call": probe.probe_print}
        exec("\n" * i + "def made%d():\n    call()\nmade%d()" % (i, i), scope)
        del scope
elif scenario == "again":
    # Call sites, depths and code objects that take turns: known walks must be what a walk finds.
    class Layer:
        def __init__(self, *inner):
            self.inner = inner

        def __call__(self, call):
            for layer in self.inner:
                layer(call)
            if not self.inner:
                call()

    def lazily(call):
        for _ in range(2):
            yield call()
        yield from (call() for _ in range(2))

    layers = Layer(Layer(Layer(), Layer()), Layer(Layer(Layer(Layer()))), Layer())

    def turns(call):
        for i in range(40):
            layers(call); layers(call)
            list(lazily(call))
            recursive(i % 7 * 13, call)
            through_c(call)
            scope = {"call": call}
            exec("\n" * (i % 5) + "def made():\n    call()\nmade()", scope)
            exec("def other():\n    call()\nother()", scope)

    frames = (ctypes.c_uint64 * 96)()
    capture = lambda: probe.probe_capture(frames, 96)
    turns(capture)
    several = [threading.Thread(target=turns, args=(capture,)) for _ in range(3)]
    for t in several:
        t.start()
    turns(capture)
    for t in several:
        t.join()
    print(probe.probe_known())
elif scenario == "many":
    # More stacks than are kept.
    frames = (ctypes.c_uint64 * 96)()
    capture = lambda: probe.probe_capture(frames, 96)
    for i in range(3000):
        exec("\n" * i + "recursive(%d, capture)" % (i % 20))
    print(probe.probe_known())
elif scenario == "finalizing":
    keep = Model()
    sys.keep = keep
elif scenario == "bench":
    frames = ctypes.c_size_t()
    bench = lambda keep: probe.probe_python_bench(100000, ctypes.c_bool(keep), ctypes.byref(frames))
    recursive(10, lambda: print(bench(False), bench(True), frames.value))
sys.stdout.flush()
