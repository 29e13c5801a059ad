"""A buffer of cuda.core's virtual memory is closed in the order of a stream that still copies to it.
With `waits` the host waits for the stream before."""
import sys

from cuda.core import Device, StreamOptions, VirtualMemoryResource

size = 1 << 21
device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=True))
data = device.memory_resource.allocate(size, stream=stream)
mapped = VirtualMemoryResource(device).allocate(size, stream=stream)
data.copy_from(mapped, stream=stream)
data.copy_to(mapped, stream=stream)
if "waits" in sys.argv:
    stream.sync()
mapped.close(stream)
data.close(stream)
stream.sync()
