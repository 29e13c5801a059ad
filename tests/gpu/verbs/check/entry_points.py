"""cudaGetDriverEntryPoint of both runtimes must answer with StreamSan's functions, and with nothing
for names that do not exist."""

from harness.places import SHARED


def entry_points(session, check, arch, env):
    for runtime in ("static", "shared"):
        row = {
            "case": "entry_point",
            "variant": runtime,
            "group": "hook",
            "expect": "clean",
            "needs": "",
            "problems": [],
        }
        built = session.compiler.compile(
            SHARED / "entry_point.cu", f"-arch={arch}", "-cudart", runtime, "-ldl", limit=120
        )
        if built.path is None:
            row["problems"].append("does not compile")
        else:
            bare = session.run([built.path], env=env)
            ran = session.run([*session.streamsan("run", "--"), built.path], env=env)
            for name in ("cuLaunchKernel", "cuMemcpyAsync", "cuStreamSynchronize"):
                found = [line for line in ran.text.splitlines() if line.startswith(name + " ")]
                if len(found) != 2 or not all(line.endswith("in libstreamsan.so") for line in found):
                    row["problems"].append(f"{name} is not StreamSan's: {found}")
            if ran.code or ran.code != bare.code:
                row["problems"].append(f"exit {ran.code} instead of {bare.code}")
            if ran.text.replace("libstreamsan.so", "libcuda.so.1") != bare.text:
                row["problems"].append("stdout differs")
        row["verdict"] = "none" if row["problems"] else "clean"
        check.add(row)
