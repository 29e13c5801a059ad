"""A buffer of cuda.core is allocated in the order of a stream, used there, and goes out of scope.
Its memory is freed in the order of another stream."""
from cuda.core.experimental import Device, StreamOptions

size = 1 << 20
device = Device()
device.set_current()
stream = device.create_stream(options=StreamOptions(nonblocking=True))
data = device.memory_resource.allocate(size, stream=stream)


def there_and_back():
    buffer = device.memory_resource.allocate(size, stream=stream)
    data.copy_to(buffer, stream=stream)
    data.copy_from(buffer, stream=stream)


there_and_back()
data.close(stream)
stream.sync()
