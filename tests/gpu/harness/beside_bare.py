"""Owns how a program runs bare and under `streamsan run`, and whether both ended alike.

What its findings should be is the verb's to judge. On the simulated GPU there is no bare run.
"""

from . import reports


def alone(session, command, env=None):
    """The bare run, or None on the simulated GPU."""
    return None if session.args.sim else session.run(command, env=env)


def under(session, title, command, exact, env=None, more=()):
    """The run under `streamsan run`, with `exact` as an option where it is one, and its report."""
    report = session.work / f"{title.replace(' ', '-')}.json"
    options = ["--error-exitcode", "0", "--json", report, *filter(None, [exact, session.args.sim and "--sim"]), *more]
    ran = session.run([*session.streamsan("run", *options, "--"), *command], env=env)
    return ran, reports.load(report)


def ended(ran, bare, data):
    """What is wrong with how the run under StreamSan ended."""
    problems = [] if data is not None else [f"no JSON: {ran.last_words()!r}"]
    if ran.hung or ran.code != (bare.code if bare else 0):
        problems.append("hung" if ran.hung else f"exit {ran.code}: {ran.last_words()!r}")
    return problems
