"""Owns the statistics of measurements: medians, and quartiles of ratios taken round by round."""

import statistics


def median(values):
    values = list(values)
    return statistics.median(values) if values else float("nan")


def ratios(times, bare):
    """Ratios to the bare time of the same round: lower quartile, median, upper quartile."""
    return quartiles(taken / other for taken, other in zip(times, bare))


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    each = list(values)
    return statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
