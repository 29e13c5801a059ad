"""What the verbs share: binaries, CUDA, compiling, running, cases, reports, tables, results.

Each module owns one thing and says which. Nothing here knows a verb.
"""
