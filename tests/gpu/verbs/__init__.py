"""The verbs, one module or folder each. The first line of its docstring is its line in --help.

A verb has DEFAULTS (see `harness.options`), add_options(parser) and run(session), which gives the
exit code.
"""
