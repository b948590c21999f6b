"""besag beside its peers: `python -m benchmarks run`. Not part of the library and not unit tests.

A suite is one file in benchmarks/suites; benchmarks.suite says what it declares. For each case every contestant gets a
process of its own (benchmarks.worker) in an environment of its own (benchmarks.environments), pinned to one core with
one thread. All are prepared and warmed up, and then timed in turns (benchmarks.runner). Their answers are compared, and
a contestant that fails or disagrees fails the run. The figures go to the terminal, to JSON and, on request, to
RESULTS.md (benchmarks.report).

Everything here but the suites and their networks (benchmarks.networks) uses the standard library only, because it runs
in the peers' environments too.
"""
