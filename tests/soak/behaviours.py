"""Agents of the fault test: what each does and leaves, and which verdicts its attempt may have after which faults."""

from __future__ import annotations

import csv
import io
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState

# Until there is room for it, an agent tries again: a full disk delays it, and what it does stays the same.
# Each leaves a process behind that is no child of its own any more.
# The rows of a submission are in an order of its own, so that no two attempts leave the same bytes.
_TOOLS = """\
set -o pipefail
note() { until echo "$1" >> "$CODE_DIR/$2"; do sleep 0.2; done 2> /dev/null; }
submit() {
    until { head -n 1 "$AGENT_DIR/$1" && tail -n +2 "$AGENT_DIR/$1" | shuf; } > "$SUBMISSION_DIR/next" &&
        mv "$SUBMISSION_DIR/next" "$SUBMISSION_DIR/submission.csv"
    do sleep 0.2; done 2> /dev/null
}
go_on() { while [ ! -e "$CODE_DIR/go" ]; do sleep 0.25; done; }
note start starts
setsid sleep 900 < /dev/null > /dev/null 2>&1 &
"""
_LITTER = """\
for place in (os.environ["CODE_DIR"], os.environ["LOGS_DIR"], os.environ["TMPDIR"]):
    os.chdir(place)
    os.mkdir("closed")
    os.mkdir("closed/inside")
    os.chmod("closed", 0)
    os.mkdir("\\u6f22" * 85)
    for _ in range(600):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    os.chdir("/")
"""
_ORPHANS = """\
for _ in 1 2 3; do
    setsid bash -c 'trap "" TERM HUP INT; sleep 900' < /dev/null > /dev/null 2>&1 &
done
"""


class Left(StrEnum):
    """What lies where the submission should be when an attempt is over."""

    NOTHING = "nothing"
    GOLD = "gold"
    WORSE = "worse"
    INVALID = "invalid"
    TOO_LARGE = "too large"
    REFUSED = "no file"


@dataclass(frozen=True)
class Verdict:
    """How an attempt ended: finished with an outcome, failed in a class, or stopped."""

    state: RunState
    kind: Outcome | FailureClass | None = None

    def __str__(self) -> str:
        return f"{self.state} ({self.kind})" if self.kind else str(self.state)


STOPPED = Verdict(RunState.STOPPED)
_INFRASTRUCTURE = Verdict(RunState.FAILED, FailureClass.INFRASTRUCTURE)
_UNKNOWN = Verdict(RunState.FAILED, FailureClass.UNKNOWN)
_CRASH = Verdict(RunState.FAILED, FailureClass.CRASH)
_STANDINGS = {
    Left.GOLD: Outcome.GOLD,
    Left.WORSE: Outcome.BELOW_MEDIAN,
    Left.INVALID: Outcome.INVALID,
    Left.TOO_LARGE: Outcome.INVALID,
    Left.REFUSED: Outcome.NO_SUBMISSION,
    Left.NOTHING: Outcome.NO_SUBMISSION,
}
GRADED = (Left.GOLD, Left.WORSE, Left.INVALID)
_JUDGED = (*GRADED, Left.TOO_LARGE)


@dataclass(frozen=True)
class Behaviour:
    """An agent by its script.

    Attributes:
        left: what it leaves when nobody disturbs it.
        crashes: whether it ends badly by itself.
        time_limit: of its runs; all but one wait to be let go on, and end long before it.
    """

    name: str
    script: str
    left: Left
    crashes: bool = False
    time_limit: float = 900.0

    @property
    def waits(self) -> bool:
        """Whether it goes on only when it is let."""
        return "go_on" in self.script

    @property
    def verdict(self) -> Verdict:
        """How it ends undisturbed."""
        if self.crashes and self.left not in _JUDGED:
            return _CRASH
        return Verdict(RunState.FINISHED, _STANDINGS[self.left])


BEHAVIOURS = (
    Behaviour("good", "submit gold.csv; go_on", Left.GOLD),
    Behaviour("regrets", "submit gold.csv; go_on; submit worse.csv", Left.WORSE),
    Behaviour("crashes", "go_on; exit 3", Left.NOTHING, crashes=True),
    Behaviour("crashes-with-submission", "submit gold.csv; go_on; exit 3", Left.GOLD, crashes=True),
    Behaviour("idler", "go_on", Left.NOTHING),
    Behaviour("garbler", "submit invalid.csv; go_on", Left.INVALID),
    Behaviour("overtime", "submit gold.csv; while :; do sleep 1; done", Left.GOLD, time_limit=10.0),
    Behaviour(
        "blames",
        "go_on; echo 'Connection reset by peer'; echo 'CUDA error: unknown error'; exit 1",
        Left.NOTHING,
        crashes=True,
    ),
    Behaviour("litters", f"submit gold.csv; python3 -c '{_LITTER}'; go_on", Left.GOLD),
    Behaviour(
        "links", 'submit gold.csv; go_on; ln -sf /etc/passwd "$SUBMISSION_DIR/submission.csv"', Left.REFUSED
    ),
    Behaviour(
        "pipes",
        'submit gold.csv; go_on; rm "$SUBMISSION_DIR/submission.csv"; mkfifo "$SUBMISSION_DIR/submission.csv"',
        Left.REFUSED,
    ),
    Behaviour(
        "sprawls",
        'submit gold.csv; go_on; truncate -s 3G "$SUBMISSION_DIR/next"'
        ' && mv "$SUBMISSION_DIR/next" "$SUBMISSION_DIR/submission.csv"',
        Left.TOO_LARGE,
    ),
    Behaviour("last-moment", "submit worse.csv; go_on; submit gold.csv; exit 0", Left.GOLD),
    Behaviour("forks", f"submit worse.csv; {_ORPHANS}go_on; exit 0", Left.WORSE),
)


class Submissions:
    """The submissions that agents have at hand, and what a submission found is worth."""

    def __init__(self, prepared: Path) -> None:
        rows = list(csv.DictReader((prepared / "private" / "test.csv").open()))
        self._answers = {row["PassengerId"]: row["Transported"] for row in rows}
        self._sample = (prepared / "public" / "sample_submission.csv").read_text()

    def write_agents(self, folder: Path) -> None:
        """Write every agent."""
        gold = "PassengerId,Transported\n" + "".join(
            f"{key},{value}\n" for key, value in self._answers.items()
        )
        contents = {
            "gold": gold,
            "worse": self._sample,
            "invalid": "PassengerId,Transported\nnobody,perhaps\n",
        }
        for behaviour in BEHAVIOURS:
            own = folder / behaviour.name
            own.mkdir(parents=True)
            (own / "start.sh").write_text(f"{_TOOLS}{behaviour.script}\n")
            (own / "config.yaml").write_text(f"{behaviour.name}:\n  start: {behaviour.name}/start.sh\n")
            for name, content in contents.items():
                (own / f"{name}.csv").write_text(content)

    def left_in(self, attempt: Path, limit: int) -> tuple[Left, bytes]:
        """Find out what an attempt has left, with its bytes where they are to be graded."""
        path = attempt / protocol.SUBMISSION / protocol.SUBMISSION_FILE
        try:
            found = path.lstat()
        except FileNotFoundError:
            return Left.NOTHING, b""
        if not stat.S_ISREG(found.st_mode):
            return Left.REFUSED, b""
        if found.st_size > limit:
            return Left.TOO_LARGE, b""
        content = path.read_bytes()
        score = self.score(content)
        if score is None:
            return Left.INVALID, content
        return (Left.GOLD if score == 1.0 else Left.WORSE), content

    def score(self, content: bytes) -> float | None:
        """Return the part of the rows that is right; None where the rows are not those that are asked for."""
        found = {
            row["PassengerId"]: row["Transported"] for row in csv.DictReader(io.StringIO(content.decode()))
        }
        if found.keys() != self._answers.keys():
            return None
        right: int = sum(found[key] == value for key, value in self._answers.items())
        return right / len(found)


class Disturbance(StrEnum):
    """What was done to one attempt."""

    SHIM_KILLED = "its shim was killed"
    SERVER_KILLED = "its validation server was killed"
    STOPPED = "it was asked to stop"
    DISK_FULL = "the disk was full while it lived"


@dataclass(frozen=True)
class Course:
    """What is known of one attempt that is over.

    Attributes:
        started: whether it was told that its agent's process is there.
        begun: whether its agent has come as far as its own first line.
        let_go: whether its agent was let go on.
    """

    behaviour: Behaviour
    isolated: bool
    started: bool
    begun: bool
    let_go: bool
    left: Left
    disturbances: frozenset[Disturbance]


def allowed(course: Course) -> set[Verdict]:
    """Return every verdict that an attempt may have: one, unless a fault met it at a moment that is not known."""
    behaviour, disturbances = course.behaviour, course.disturbances
    possible: set[Verdict] = set()
    if course.begun and (course.let_go or not behaviour.waits) and course.left is behaviour.left:
        possible.add(behaviour.verdict)
    if Disturbance.STOPPED in disturbances:
        possible.add(STOPPED)
    if Disturbance.SHIM_KILLED in disturbances:
        # Whoever lives without a sandbox can kill its shim itself, and gains nothing by it.
        if course.isolated or not course.started:
            possible.add(_INFRASTRUCTURE)
        elif course.left in _JUDGED:
            possible.add(Verdict(RunState.FINISHED, _STANDINGS[course.left]))
        else:
            possible.add(_UNKNOWN)
    if not course.begun and disturbances & {Disturbance.SERVER_KILLED, Disturbance.DISK_FULL}:
        possible.add(_INFRASTRUCTURE)
    if behaviour.crashes and disturbances & {Disturbance.SERVER_KILLED, Disturbance.DISK_FULL}:
        possible.add(_INFRASTRUCTURE)  # the host shows a reason
    return possible
