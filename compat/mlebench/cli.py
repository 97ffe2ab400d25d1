"""The command `mlebench`, with MLE-bench's sub-commands and flags."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from mlebench.registry import registry
from mlebench.utils import get_logger
from mlebench_console.foundation.problems import Problem

logger = get_logger(__name__)

_PREPARE_FLAGS = ("keep-raw", "overwrite-checksums", "overwrite-leaderboard", "skip-verification")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser, prepare, leaderboard = _parsers()
    given = parser.parse_args(arguments)
    try:
        if given.command == "prepare":
            return _prepare(given, prepare)
        if given.command == "grade":
            from mlebench.grade import grade_jsonl

            grade_jsonl(Path(given.submission), Path(given.output_dir), registry.set_data_dir(given.data_dir))
        if given.command == "grade-sample":
            from mlebench.grade import grade_csv

            competition = registry.set_data_dir(given.data_dir).get_competition(given.competition_id)
            report = grade_csv(Path(given.submission), competition)
            logger.info("Competition report:")
            logger.info(json.dumps(report.to_dict(), indent=4))
        if given.command == "dev" and given.dev_command == "download-leaderboard":
            return _download_leaderboard(given, leaderboard)
    except (Problem, ValueError, OSError, RuntimeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1  # as an exception that ends Python does
    return 0


def _parsers() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser, argparse.ArgumentParser]:
    """Return the parser of the command, and those of the sub-commands that check more than their flags."""
    parser = argparse.ArgumentParser(
        prog="mlebench", description="MLE-bench's commands, served by mlebench-console."
    )
    commands = parser.add_subparsers(dest="command")
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument(
        "--data-dir", metavar="DIR", type=Path, default=registry.get_data_dir(), help="the datasets directory"
    )

    prepare = commands.add_parser("prepare", parents=[data], help="download and prepare datasets")
    prepare.add_argument("-c", "--competition-id", metavar="ID", help="a competition")
    prepare.add_argument("-a", "--all", action="store_true", help="all competitions")
    prepare.add_argument("--lite", action="store_true", help="those of MLE-bench Lite")
    prepare.add_argument("-l", "--list", metavar="FILE", help="a file with one id per line")
    for flag in _PREPARE_FLAGS:
        prepare.add_argument(f"--{flag}", action="store_true", help="as mlebench-console prepare has it")

    grade = commands.add_parser("grade", parents=[data], help="grade the submissions that a JSONL file lists")
    grade.add_argument("--submission", required=True, metavar="JSONL", help="the list")
    grade.add_argument("--output-dir", required=True, metavar="DIR", help="where to write the report")

    sample = commands.add_parser("grade-sample", parents=[data], help="grade one submission")
    sample.add_argument("submission", help="its CSV file")
    sample.add_argument("competition_id", help="which competition")

    dev = commands.add_parser("dev", help="for developers").add_subparsers(dest="dev_command")
    leaderboard = dev.add_parser("download-leaderboard", help="download Kaggle's leaderboards")
    leaderboard.add_argument("-c", "--competition-id", metavar="ID", help="a competition")
    leaderboard.add_argument("--all", action="store_true", help="all competitions")
    leaderboard.add_argument("--force", action="store_true", help="also where it is there")
    return parser, prepare, leaderboard


def _prepare(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Prepare the chosen datasets; as in MLE-bench, --lite precedes --all, then come --list and -c."""
    if given.lite:
        chosen = ["--lite"]
    elif given.all:
        chosen = _each(registry.list_competition_ids())
    elif given.list:
        chosen = ["--list", given.list]
    elif given.competition_id:
        chosen = ["-c", given.competition_id]
    else:
        parser.error("One of --lite, --all, --list, or --competition-id must be specified.")
    wanted = [f"--{flag}" for flag in _PREPARE_FLAGS if getattr(given, flag.replace("-", "_"))]
    return _console("prepare", *chosen, "--data-dir", str(given.data_dir), *wanted)


def _download_leaderboard(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if not given.all and not given.competition_id:
        parser.error("Either --all or --competition-id must be specified.")
    chosen = _each(registry.list_competition_ids() if given.all else [given.competition_id])
    return _console("dev", "download-leaderboard", *chosen, *(["--force"] if given.force else []))


def _each(ids: Sequence[str]) -> list[str]:
    return [piece for one in ids for piece in ("-c", one)]


def _console(*arguments: str) -> int:
    """Run a command of mlebench-console; what it prints goes to standard error, as MLE-bench's log does."""
    from mlebench_console.console.cli.program import run

    with redirect_stdout(sys.stderr):
        return 1 if run(arguments) else 0


if __name__ == "__main__":
    sys.exit(main())
