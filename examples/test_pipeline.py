"""The program as a test of pytest. Without a GPU:

    nvcc -O2 -g -arch=sm_80 -shared -Xcompiler -fPIC pipeline.cu -o libpipeline.so
    pytest --streamsan-sim
"""

import ctypes
import pathlib

library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libpipeline.so")))


def test_pipeline():
    assert library.run_pipeline() == 0
