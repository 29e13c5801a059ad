"""instructions.py CODE IN OUT: launches the kernels k0, k1 and so on of CODE, one for each list of IN, and writes their results to OUT.

Owns what goes in and comes out. IN and OUT are JSON: of each kernel the values of each thread, and a number for each.
"""
import json
import struct
import sys

import driver_launch


def results(module, name, threads):
    """What each thread of a kernel leaves in the first 8 of its 32 bytes."""
    read = b"".join(struct.pack("<QQQ", *(list(values) + [0, 0])[:3]) for values in threads)
    made = driver_launch.made(module, name, [1, 1, 1], [len(threads), 1, 1], read, 32 * len(threads))
    return [row[0] for row in struct.iter_unpack("<QQQQ", made)]


driver_launch.start()
with open(sys.argv[1], "rb") as file:
    module = driver_launch.loaded(file.read())
with open(sys.argv[2]) as file:
    asked = json.load(file)
answers = [results(module, f"k{at}", threads) for at, threads in enumerate(asked)]
with open(sys.argv[3], "w") as file:
    json.dump(answers, file)
