"""random_kernels.py KERNELS CODE MADE SEED...: launches kernels, and leaves what they made in MADE/SEED.device.

Owns which files belong to a seed: KERNELS has text and input of each, CODE its machine code. Compares nothing.
"""
import pathlib
import re
import sys

import driver_launch

kernels, codes, to = map(pathlib.Path, sys.argv[1:4])
driver_launch.start()
for seed in sys.argv[4:]:
    kept = lambda kind: kernels / f"native-fuzz-{seed}.{kind}"
    print(seed, flush=True)
    text = kept("ptx").read_text()
    grid, block = ([int(word) for word in re.search(rf"{name} (\d+ \d+ \d+)", text)[1].split()] for name in ("grid", "block"))
    module = driver_launch.loaded((codes / f"{seed}.cubin").read_bytes())
    made = driver_launch.made(module, "k", grid, block, kept("input").read_bytes(), kept("output").stat().st_size)
    (to / f"{seed}.device").write_bytes(made)
