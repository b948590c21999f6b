"""The command line: `python -m benchmarks run [SUITE ...]` and `python -m benchmarks list`, from the project's root."""

from __future__ import annotations

import argparse
import shlex
import sys
from datetime import date
from pathlib import Path

from benchmarks.environments import EnvironmentFailure
from benchmarks.report import SuiteResult, averages, scores, table, update_results, write_json
from benchmarks.runner import run_case
from benchmarks.suite import OWN, find_suites, load_suite

HERE = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None, results: Path = HERE / "RESULTS.md") -> int:
    """Run what was asked for; 1 where a contestant failed or the answers disagree."""
    options = parser().parse_args(arguments)
    if options.command == "list":
        for name, path in find_suites().items():
            suite = load_suite(path)
            print(f"{name}: {suite.title}; peers: {', '.join(suite.peers) or 'none'}")
        return 0
    try:
        return max([run_suite(path, options, results) for path in chosen(options.suites)], default=0)
    except EnvironmentFailure as failure:
        print(failure, file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """The options."""
    top = argparse.ArgumentParser(prog="python -m benchmarks", description="besag beside its peers")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name the suites")
    run = commands.add_parser("run", help="run suites, all by default")
    run.add_argument("suites", nargs="*", metavar="SUITE", help="names, or paths of suite files")
    run.add_argument("--peers", nargs="*", help="only these peers; none after --peers: besag alone")
    run.add_argument("--repeat", type=int, default=5, help="timed runs of each contestant (default 5)")
    run.add_argument("--case", default="", metavar="TEXT", help="only cases with this text in their names")
    run.add_argument("--slow", action="store_true", help="also the cases that take minutes")
    run.add_argument("--out", type=Path, default=HERE / "results", help="folder of the JSON files")
    run.add_argument("--update-results", action="store_true", help="rewrite the suites' sections of RESULTS.md")
    return top


def chosen(names: list[str]) -> list[Path]:
    """The files of the suites asked for."""
    known = find_suites()
    paths = [Path(name) if name.endswith(".py") else known.get(name) for name in names or known]
    unknown = [name for name, path in zip(names, paths, strict=False) if path is None or not path.is_file()]
    if unknown:
        raise SystemExit(f"no suite {', '.join(unknown)}; there are {', '.join(known)}")
    return [path.resolve() for path in paths if path is not None]


def run_suite(path: Path, options: argparse.Namespace, results: Path) -> int:
    """Run one suite and report it."""
    suite = load_suite(path)
    peers = suite.peers if options.peers is None else tuple(options.peers)
    if unknown := sorted(set(peers) - set(suite.peers)):
        raise SystemExit(f"{path.stem} has no peer {', '.join(unknown)}; it has {', '.join(suite.peers) or 'none'}")
    print(f"{path.stem}: {suite.title}")
    today = date.today().isoformat()
    how = (suite.title, today, command(path.stem, options), options.repeat)
    result = SuiteResult(path.stem, *how, [], suite.averaged, suite.scores)
    for case in suite.cases:
        contestants = [name for name in case.contestants if name == OWN or name in peers]
        if contestants and options.case in case.name and (options.slow or not case.slow):
            print(f"  {case.name} ...", file=sys.stderr)
            result.cases.append(run_case(suite, path, case, contestants, options.repeat))
    print("\n".join((table(result), *averages(result), *scores(result))))
    write_json(result, options.out)
    for complaint in result.complaints:
        print(f"FAILED {complaint}")
    if options.update_results and not result.complaints:
        update_results(result, results)
    return 1 if result.complaints else 0


def command(name: str, options: argparse.Namespace) -> str:
    """The command that gives these figures again."""
    peers = [] if options.peers is None else ["--peers", *options.peers]
    cases = [*(["--case", options.case] if options.case else []), *(["--slow"] if options.slow else [])]
    return shlex.join(["python", "-m", "benchmarks", "run", name, *peers, *cases, "--repeat", str(options.repeat)])


if __name__ == "__main__":
    sys.exit(main())
