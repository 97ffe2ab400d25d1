"""Grade files by MLE-bench's own code, in its own environment: nothing of this project is imported here.

Reads lines of JSON (`competition`, `submission`, `answers`) and writes one for each: `score` and `rounded`, or `error`.
"""

import json
import logging
import os
import signal
import sys
import warnings
from pathlib import Path

_SECONDS = 60


def main() -> None:
    """Answer until the input ends; what graders print goes to standard error."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from mlebench.registry import registry
    from mlebench.utils import load_answers, read_csv

    known = registry.set_data_dir(Path(sys.argv[1]))
    signal.signal(signal.SIGALRM, _too_slow)
    for line in sys.stdin:
        asked = json.loads(line)
        signal.alarm(_SECONDS)
        try:
            competition = known.get_competition(asked["competition"])
            submission = Path(asked["submission"])
            if submission.suffix.lower() != ".csv":  # as its grade_csv has it
                raise ValueError("it is no CSV file")
            table = read_csv(submission)
            truth = load_answers(Path(asked["answers"] or competition.answers))
            score = competition.grader.grade_fn(table, truth)
            told: dict[str, float | str] = {"score": float(score), "rounded": float(round(score, 5))}
        except Exception as error:  # noqa: BLE001 - whatever it raises is its verdict
            told = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        finally:
            signal.alarm(0)
        answers.write(json.dumps(told) + "\n")
        answers.flush()


def _too_slow(_number: int, _frame: object) -> None:
    raise TimeoutError(f"it took more than {_SECONDS} s")


if __name__ == "__main__":
    main()
