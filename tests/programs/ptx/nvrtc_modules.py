"""Writes the PTX that NVRTC makes of every `.cu` under some folders that has kernels and needs no host headers; no GPU needed.

  nvrtc_modules.py OUT CAPABILITY[,CAPABILITY...] FILE.cu...

Of programs with host code only the kernels are compiled: host functions are left to NVRTC's `-default-device`, includes of the host's
headers and `main` are cut out.
"""
import pathlib
import re
import sys

from nvrtc import Failed, Nvrtc


def device_part(text):
    """The text without host functions: from each `__global__` or `__device__` (or template) on to its closing brace."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    kept, at = [], 0
    start = re.compile(r"^(?:template\s*<[^>]*>\s*)?(?:extern\s+\"C\"\s+)?(?:static\s+|inline\s+|constexpr\s+|const\s+)*"
                       r"(?:__global__|__device__|__constant__|struct\s+\w+\s*\{|constexpr\b|typedef\b|using\s+\w+\s*=|enum\b|#define\b|#include <(?:cuda/|cuda_|cooperative)(?!.*runtime)|namespace\s+cg\b)", re.M)
    while True:
        found = start.search(text, at)
        if not found:
            return "\n".join(kept)
        end = found.start()
        if text[found.start()] == "#":
            end = text.index("\n", end)
            while text[end - 1] == "\\":
                end = text.index("\n", end + 1)
        else:
            depth = 0
            while True:
                c = text[end]
                depth += (c == "{") - (c == "}")
                end += 1
                if depth == 0 and (c == ";" or (c == "}" and not text[found.start():end].startswith(("struct", "__constant__", "static", "constexpr", "enum")))):
                    break
        kept.append(text[found.start():end])
        at = end


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    nvrtc = Nvrtc()
    made = failed = 0
    for path in map(pathlib.Path, sys.argv[3:]):
        text = path.read_text()
        if "__global__" not in text:
            continue
        for capability in sys.argv[2].split(","):
            options = [f"--gpu-architecture=compute_{capability}", "-default-device", "-device-int128", "-std=c++17", "-lineinfo", "-w"]
            error = None
            for source in (text, "#include <cstdint>\n" + device_part(text)):
                try:
                    ptx = nvrtc.ptx(source, path.name, options + [f"-I{p}" for p in INCLUDES])
                except Failed as why:
                    error = why
                    continue
                (out / f"{path.stem}-{capability}.ptx").write_text(ptx)
                made, error = made + 1, None
                break
            if error:
                failed += 1
                print(error, file=sys.stderr)
                break
    print(f"NVRTC {nvrtc.version}: {made} modules, {failed} files that it could not compile")


INCLUDES = []
if __name__ == "__main__":
    while len(sys.argv) > 1 and sys.argv[1].startswith("-I"):
        INCLUDES.append(sys.argv.pop(1)[2:])
    main()
