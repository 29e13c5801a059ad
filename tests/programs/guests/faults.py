"""Python's faulthandler and pages that are taken away: loads and stores through a memoryview on memory that a copy still writes, also in
threads and in a signal handler. With a second argument it dies of a fault of its own, which faulthandler tells."""
import ctypes
import faulthandler
import os
import signal
import sys
import threading

faulthandler.enable()
library = ctypes.CDLL(sys.argv[1])
library.landing_open.restype = ctypes.c_void_p
BYTES = 1 << 16
landing = memoryview((ctypes.c_ubyte * BYTES).from_address(library.landing_open())).cast("B")


def reads_all():
    return sum(landing)


def handles(number, frame):
    print("a signal:", landing[77])


signal.signal(signal.SIGUSR1, handles)
library.landing_start()
print("loads:", reads_all())
library.landing_finish()
library.landing_start()
landing[9:99] = bytes([7]) * 90
library.landing_finish()
sums = [0] * 4


def part(i):
    sums[i] = sum(landing[i * BYTES // 4:(i + 1) * BYTES // 4])


library.landing_start()
threads = [threading.Thread(target=part, args=(i,)) for i in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
library.landing_finish()
print("threads:", sums)
library.landing_start()
os.kill(os.getpid(), signal.SIGUSR1)
library.landing_finish()
print("enabled:", faulthandler.is_enabled(), flush=True)
if len(sys.argv) > 2:
    library.landing_start()
    ctypes.string_at(16)
