"""Runs recorded launches, each by itself over fresh zeroed memory: `replay.py FOLDER`.

FOLDER is what `tests/src/replay` wrote. A launch that fails leaves no context to go on with, so the
rest follows in a new process. Prints a line of JSON for each launch: its number, what it ended with,
and how long it took.
"""
import ctypes
import json
import os
import subprocess
import sys
import time

MAX_DYNAMIC_SHARED = 8
CLUSTER_DIMENSION = 4
COOPERATIVE = 2
cuda = ctypes.CDLL("libcuda.so.1")
pointer, number = ctypes.c_void_p, ctypes.c_uint


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", number * 16)]


class Config(ctypes.Structure):
    _fields_ = [
        ("dims", number * 6),
        ("shared", number),
        ("stream", pointer),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", number),
    ]


class Failed(Exception):
    pass


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(result, ctypes.byref(text))
        raise Failed(f"{name}: {(text.value or b'?').decode()}")


def attributes(launch):
    found = []
    if any(launch["cluster"]):
        found.append(Attribute(CLUSTER_DIMENSION, 0, (number * 16)(*launch["cluster"])))
    if launch["cooperative"]:
        found.append(Attribute(COOPERATIVE, 0, (number * 16)(1)))
    return (Attribute * len(found))(*found), len(found)


def run(launch, function):
    memory = []
    for size in launch["memory"]:
        memory.append(ctypes.c_uint64())
        call("cuMemAlloc_v2", ctypes.byref(memory[-1]), ctypes.c_size_t(max(size, 1)))
        call("cuMemsetD8_v2", memory[-1], 0, ctypes.c_size_t(size))
    params = bytearray.fromhex(launch["params"])
    for at, into, offset in launch["pointers"]:
        params[at : at + 8] = (memory[into].value + offset).to_bytes(8, "little")
    # Slots may be wider than what the caller gave.
    room = max([len(params), *(offset + size for offset, size in launch["slots"])])
    params = (ctypes.c_ubyte * max(room, 1))(*params)
    slots = launch["slots"]
    starts = (pointer * max(len(slots), 1))(*(ctypes.addressof(params) + offset for offset, _ in slots))
    if launch["shared"]:
        call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, launch["shared"])
    values, count = attributes(launch)
    config = Config((number * 6)(*launch["grid"], *launch["block"]), launch["shared"], None, values, count)
    call("cuLaunchKernelEx", ctypes.byref(config), function, starts, None)
    call("cuCtxSynchronize")
    for one in memory:
        call("cuMemFree_v2", one)


def replay(folder, launches, first):
    """Runs launches until one fails; returns the number of the next, or None after the last."""
    call("cuInit", 0)
    context = pointer()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    modules = {}
    for n in range(first, len(launches)):
        launch, began = launches[n], time.monotonic()
        try:
            if launch["image"] not in modules:
                module = pointer()
                with open(os.path.join(folder, launch["image"]), "rb") as file:
                    call("cuModuleLoadData", ctypes.byref(module), file.read())
                modules[launch["image"]] = module
            function = pointer()
            call("cuModuleGetFunction", ctypes.byref(function), modules[launch["image"]], launch["kernel"].encode())
            run(launch, function)
            failure = None
        except Failed as why:
            failure = str(why)
        took = round(time.monotonic() - began, 3)
        print(json.dumps({"launch": n, "kernel": launch["kernel"], "failure": failure, "seconds": took}), flush=True)
        if failure:
            return n + 1
    return None


def explained(failure, said):
    """A failure with the simulator's own words for it, where it has any."""
    refused = [line.split(" was refused: ")[1] for line in said.splitlines() if " was refused: " in line]
    if refused:
        # Of an instruction its name, without predicate and operands.
        words = refused[-1].split(" in `")[0].removeprefix("Unsupported(").removesuffix(")").split()
        named = [word for word in words if not word.startswith("@")]
        return f"not executed: {named[0]}" if refused[-1].startswith("Unsupported(") else " ".join(words)
    return "an access outside of its memory" if "out-of-bounds" in said else failure


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "launches.json")) as file:
        launches = json.load(file)
    if len(sys.argv) > 2:
        following = replay(folder, launches, int(sys.argv[2]))
        print(json.dumps({"next": following}), flush=True)
        return
    following = 0
    while following is not None and following < len(launches):
        command = [sys.executable, __file__, folder, str(following)]
        child = subprocess.run(command, capture_output=True, text=True, errors="replace")
        sys.stderr.write(child.stderr)
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        for line in lines:
            if "launch" in line:
                if line["failure"]:
                    line["failure"] = explained(line["failure"], child.stderr)
                print(json.dumps(line), flush=True)
        if not lines or "next" not in lines[-1]:
            # It died. What it was at is the one after the last that it told of.
            died = max([following - 1, *(line["launch"] for line in lines if "launch" in line)]) + 1
            failure = f"the process ended with {child.returncode}"
            print(json.dumps({"launch": died, "kernel": launches[died]["kernel"], "failure": failure}), flush=True)
            following = died + 1
        else:
            following = lines[-1]["next"]


main()
