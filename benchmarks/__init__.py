"""What mutad costs and what it gains. `make bench` (or `python -m benchmarks`) prints every table.

Every ratio is taken in one run on one machine, from interleaved rounds; results are compared before
anything is timed.
"""
