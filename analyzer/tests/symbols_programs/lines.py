"""Prints line tables and what Python says they mean: `first table name offset:line ...`, for code of the library."""
import dis
import sys
import types

kind = sys.argv[1]


def encode_310(code):
    """The table that Python 3.10 would have: (bytes, lines) pairs, -128 for no line."""
    out, line = bytearray(), code.co_firstlineno
    for start, end, at in code.co_lines():
        delta = -128 if at is None else at - line
        if at is not None:
            line = at
            while delta > 127:
                out += bytes([0, 127])
                delta -= 127
            while delta < -127:
                out += bytes([0, 256 - 127])
                delta += 127
        length = end - start
        while length > 254:
            out += bytes([254, delta % 256])
            delta = -128 if at is None else 0
            length -= 254
        out += bytes([length, delta % 256])
    return bytes(out)


def show(code):
    if kind == "311":
        table, pairs = code.co_linetable, [(s, l) for s, e, l in code.co_lines() if l]
    elif kind == "310":
        table, pairs = encode_310(code), [(s, l) for s, e, l in code.co_lines() if l]
    else:
        table, pairs = code.co_lnotab, [(s, l) for s, l in dis.findlinestarts(code) if l]
    print(code.co_firstlineno, table.hex() or "-", code.co_name, *("%d:%d" % p for p in pairs))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            show(const)


for name in ["argparse", "ast", "asyncio.base_events", "dataclasses", "decimal", "enum", "inspect", "typing", "ctypes"]:
    spec = __import__("importlib.util").util.find_spec(name)
    show(compile(open(spec.origin, encoding="utf8").read(), spec.origin, "exec"))
