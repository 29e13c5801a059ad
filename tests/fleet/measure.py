#!/usr/bin/env python3
"""Measures `streamsan fleet check` on a Ray cluster of this machine against the same work with --engine local, in pairs.

Owns the traces (links to eight that differ, of 100,000 ops each), the cluster (started and ended here) and the table. Prints the
seconds of each round, their ratio, and the most memory that the driver had at the end of each quarter of its run.

With --kill instead: one of the traces is none, one is torn, 40 racy ones are added, and three times in the run a worker of Ray is
killed with SIGKILL in the middle of a task. Every row of work that is left alone must be there, once.

  cargo build --release -p analyzer --bin streamsan --example long_trace
  $(target/debug/xtask fleet)/venv/bin/python tests/fleet/measure.py [--traces N] [--rounds N | --kill]

STREAMSAN_BIN names the folder of `streamsan` and `examples/long_trace` (default: target/release).
"""
import argparse, os, pathlib, secrets, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("STREAMSAN_BIN", ROOT / "target/release")).resolve()


def traces(folder, count, kinds=("mixed", "train")):
    """So many names, each on a host of its own: a task each."""
    made = []
    for number in range(8 // len(kinds)):
        for kind in kinds:
            made.append(folder / f".{kind}{number}".replace(" ", ""))
            subprocess.run([BIN / "examples/long_trace", str(100_000 + number), made[-1], *kind.split()], check=True, stdout=subprocess.DEVNULL)
    for number in range(count):
        to = folder / "in/job" / f"host{number}"
        to.mkdir(parents=True, exist_ok=True)
        os.link(made[number % len(made)], to / "rank0.trace")
    return folder / "in"


def resident(pid):
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


def run(engine, source, out, environment, expected=0, meanwhile=lambda driver: None):
    """Seconds, and MiB of the driver in each quarter of the run."""
    began, seen = time.monotonic(), []
    words = [sys.executable, "-m", "streamsan.fleet", "check", source, "--out", out, "--engine", engine, "--quiet"]
    driver = subprocess.Popen(words, env=environment)
    done = threading.Event()

    def watch():
        while not done.wait(0.2):
            seen.append(resident(driver.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    meanwhile(driver)
    code = driver.wait()
    seconds = time.monotonic() - began
    done.set()
    watcher.join()
    if code != expected:
        sys.exit(f"{engine} ended with {code}")
    seen = [value for value in seen if value]
    quarters = [max(seen[len(seen) * n // 4: max(len(seen) * (n + 1) // 4, len(seen) * n // 4 + 1)], default=0) for n in range(4)]
    return seconds, quarters


def children(pid):
    """Processes below this one."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children(int(child))]
    return found


def is_at_work(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::call") and bool(children(pid))
    except OSError:
        return False


def killer(cluster, out, count):
    """Kills a worker of the cluster that has an analyzer at work, at a quarter, half and three quarters of the rows."""

    def kill(driver):
        for quarter in (1, 2, 3):
            while driver.poll() is None and len(list(out.glob("traces/*/*/*.parquet"))) < count * quarter // 4:
                time.sleep(0.02)
            at_work = []
            while driver.poll() is None and not at_work:
                at_work = [pid for pid in children(cluster.pid) if is_at_work(pid)]
            if not at_work:
                sys.exit("the run ended before a worker could be killed")
            os.kill(at_work[0], signal.SIGKILL)
            print(f"killed worker {at_work[0]} at {len(list(out.glob('traces/*/*/*.parquet')))} rows", flush=True)

    return kill


def rows(out):
    """All rows of a dataset by host, without what differs from run to run, and how many rows of traces there are by tries."""
    sys.path.insert(0, str(ROOT / "python"))
    from streamsan.fleet import report

    with report.opened(str(out)) as connection:
        ask = lambda text: connection.execute(text).fetchall()
        found = {}
        for host, *row in ask("SELECT machine, pid, fingerprint, occurrences FROM findings ORDER BY ALL"):
            found.setdefault(host, []).append(row)
        for host, *row in ask("SELECT machine, program, bytes, status, findings FROM traces ORDER BY ALL"):
            found.setdefault(host, []).append(row)
        return found, ask("SELECT attempts, COUNT(*) FROM traces GROUP BY ALL ORDER BY ALL")


def survives(folder, count, cluster, on_cluster, environment):
    """`count` generated traces, two of which are damaged, and 40 small ones with two findings each."""
    source = traces(folder, count, ("train",))
    like = {number: number % 8 for number in range(count)}
    for number, data in ((17, b"no trace"), (count // 2, None)):
        file = source / f"job/host{number}/rank0.trace"
        whole = file.read_bytes()
        file.unlink()
        file.write_bytes(data or whole[: len(whole) // 2])
        like[number] = number
    for number in range(count, count + 40):
        to = source / f"job/host{number}"
        to.mkdir()
        shutil.copy(ROOT / "tests/recorded/triton_step.trace", to / "rank0.trace")
        like[number] = count
    # What is to be expected: one of each kind, left alone.
    for number in set(like.values()):
        shutil.copytree(source / f"job/host{number}", folder / f"calm/job/host{number}")
    run("local", folder / "calm", folder / "out-local", environment, 66)
    seconds, quarters = run("ray", source, folder / "out-ray", on_cluster, 66, killer(cluster, folder / "out-ray", len(like)))
    print(f"ray: {seconds:.1f} s, driver {quarters} MiB", flush=True)
    (calm, _), (killed, tries) = rows(folder / "out-local"), rows(folder / "out-ray")
    wrong = [n for n, kind in like.items() if killed.get(f"host{n}") != calm[f"host{kind}"]]
    if wrong or len(killed) != len(like):
        sys.exit(f"the rows of {len(wrong)} hosts are not those of a run that was left alone, such as {wrong[:3]}")
    print(f"every row of {len(killed)} traces is there once; tries: {tries}")


def started(environment):
    """A cluster of this machine alone, which ends with its process (`ray stop` would end those of others, too), and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["start", "--head", "--block", "--node-ip-address", "127.0.0.1", "--port", str(port), "--num-cpus", str(os.cpu_count()),
             "--include-dashboard", "false", "--disable-usage-stats"]
    cluster = subprocess.Popen([sys.executable, "-m", "ray.scripts.scripts", *words], env=environment, stdout=subprocess.DEVNULL)
    for _ in range(240):
        if cluster.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(5)
                return cluster, f"127.0.0.1:{port}"
        time.sleep(0.25)
    cluster.terminate()
    sys.exit("the cluster did not start")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fleet-measure-", dir=ROOT / ".cache"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "STREAMSAN_BIN": str(BIN), "STREAMSAN_CACHE": str(folder / "kernels"),
                   "RAY_USAGE_STATS_ENABLED": "0",
                   # A token of its own, for the cluster and the drivers: the machine may have others.
                   "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    cluster = None
    try:
        cluster, address = started(environment)
        on_cluster = {**environment, "RAY_ADDRESS": address}
        if given.kill:
            return survives(folder, given.traces, cluster, on_cluster, environment)
        source = traces(folder, given.traces)
        ratios = []
        for number in range(given.rounds):
            took = {}
            # In turns, the first one first in every other round.
            for engine in (("local", "ray"), ("ray", "local"))[number % 2]:
                out = folder / f"out-{engine}"
                shutil.rmtree(out, ignore_errors=True)
                took[engine], quarters = run(engine, source, out, on_cluster if engine == "ray" else environment)
                print(f"round {number + 1} {engine}: {took[engine]:.1f} s, driver {quarters} MiB", flush=True)
            ratios.append(took["ray"] / took["local"])
            print(f"round {number + 1}: {ratios[-1]:.3f}x", flush=True)
        print(f"{given.traces} traces, median {statistics.median(ratios):.3f}x")
    finally:
        if cluster:
            cluster.terminate()
            cluster.wait()
        shutil.rmtree(folder, ignore_errors=True)


main()
