"""Owns where things lie in the repository. Binaries are found by `binaries`, CUDA by `cuda`."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
TESTS = ROOT / "tests"
CORPUS = TESTS / "corpus"
SAMPLES = TESTS / "samples"
RECORDED = TESTS / "recorded"
# Programs that the end-to-end tests run too.
SHARED = TESTS / "programs"
# Programs that only a GPU machine runs.
PROGRAMS = TESTS / "gpu" / "programs"
# Ignored by git, and kept from one call to the next.
CACHE = ROOT / ".cache" / "gpu"
