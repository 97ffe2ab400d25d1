"""Access to competitions' data on Kaggle: by its last answer, or by a new request."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition
from mlebench_console.engine.datasets.steps import CHECK
from mlebench_console.engine.kaggle import (
    CredentialsRefused,
    KaggleUnreachable,
    NotAvailable,
    RulesNotAccepted,
    unreachable,
)
from mlebench_console.engine.kaggle.credentials import Credentials
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.workers import Ended, ReportProgress, WorkerPool
from mlebench_console.state.records import DatasetState, DatasetStep, StepState

CHECK_ACCESS = "mlebench_console.engine.datasets.tasks:check_access"
TRY_CREDENTIALS = "mlebench_console.engine.datasets.tasks:try_credentials"
_ASK_AT_ONCE = 4
_FIRST_ANSWER_SECONDS = 8.0


class AccessState(StrEnum):
    """The access to data; `rules`: a person must accept the rules first; `gone`: no longer offered by Kaggle."""

    OPEN = "open"
    RULES = "rules"
    GONE = "gone"
    UNKNOWN = "unknown"


_REFUSALS = {DatasetState.REFUSED: AccessState.RULES, DatasetState.UNAVAILABLE: AccessState.GONE}


def state_after(problem: Problem) -> DatasetState:
    """Return the state of a dataset after a problem."""
    match problem:
        case RulesNotAccepted():
            return DatasetState.REFUSED
        case NotAvailable():
            return DatasetState.UNAVAILABLE
        case _:
            return DatasetState.FAILED


def access_of(state: DatasetState, steps: Iterable[DatasetStep] = ()) -> AccessState:
    """Return the known access to a dataset, without a request."""
    checked = any(step.name == CHECK and step.state is StepState.DONE for step in steps)
    return _REFUSALS.get(state, AccessState.OPEN if checked else AccessState.UNKNOWN)


@dataclass(frozen=True)
class Access:
    """Kaggle's answer about access to a competition's data."""

    competition_id: str
    state: AccessState
    bytes: int | None
    url: str | None
    problem: str = ""


def check(competition: Competition, report: ReportProgress) -> int | None:
    """Check once whether Kaggle allows the download of a competition's data; return their size, if known.

    Raises:
        Problem: it does not, or it can't be reached.
    """
    from mlebench_console.engine.kaggle.client import Kaggle

    report(CHECK, "", 0, 0)
    with Kaggle(patience=0) as kaggle:
        return kaggle.data_size(competition.id)


def ask_access(
    chosen: Sequence[Competition], report: Callable[[int, int], None] | None = None
) -> list[Access]:
    """Check the access to several competitions at once; `report` is called with the number of answers.

    A problem that concerns all of them, such as no network or wrong credentials, stops further requests.
    """
    found: dict[str, Access] = {}
    if report is not None and chosen:
        report(0, len(chosen))
    jobs = [{"competition_id": competition.id} for competition in chosen]
    for place, answer in _ask_at_once(CHECK_ACCESS, jobs, (KaggleUnreachable, CredentialsRefused)):
        competition = chosen[place]
        if isinstance(answer, Problem):
            access, why = access_of(state_after(answer)), answer.record.without_subject().cause
            made = Access(competition.id, access, None, registry.rules_url(competition), why)
        else:
            made = Access(competition.id, AccessState.OPEN, answer["bytes"], registry.rules_url(competition))
        found[competition.id] = made
        if report is not None:
            report(len(found), len(chosen))
    return [found[competition.id] for competition in chosen]


def try_credentials(found: Sequence[Credentials]) -> list[tuple[Credentials, Problem | None]]:
    """Check whether Kaggle accepts each of the usable credentials; return the problem of each, or None."""
    usable = [number for number, each in enumerate(found) if not each.problem]
    answers = dict(_ask_at_once(TRY_CREDENTIALS, [{"number": number} for number in usable]))
    return [
        (found[number], answer if isinstance(answer := answers[place], Problem) else None)
        for place, number in enumerate(usable)
    ]


def _ask_at_once(
    function: str,
    jobs: Sequence[Mapping[str, Any]],
    stopping: tuple[type[Problem], ...] = (KaggleUnreachable,),
) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """Run jobs that send requests to Kaggle, some at once, and yield each answer with the job's index.

    They run in processes, because a thread that waits for the network can't be ended. If there is no answer for some
    seconds, or one that concerns all jobs, no more are started.
    """
    waiting, working = deque(enumerate(jobs)), dict[int, int]()
    give_up: float | None = time.monotonic() + _FIRST_ANSWER_SECONDS
    stopped: Problem | None = None
    with closing(WorkerPool(preload=("mlebench_console.engine.kaggle.client",), capture_output=True)) as pool:
        while (waiting or working) and stopped is None:
            while waiting and len(working) < _ASK_AT_ONCE:
                place, arguments = waiting.popleft()
                working[pool.start(function, arguments)] = place
            for news in pool.wait(give_up):
                if isinstance(news, Ended):
                    answer = news.value if news.problem is None else news.problem
                    yield working.pop(news.number), answer
                    give_up = None
                    if isinstance(answer, stopping):
                        stopped = answer
            if give_up is not None and time.monotonic() >= give_up:
                stopped = unreachable(f"no answer in {_FIRST_ANSWER_SECONDS:.0f} s")
    if stopped is not None:
        yield from ((place, stopped) for place in (*working.values(), *(place for place, _ in waiting)))
