"""Tools for authors of competitions: check a competition, and write its conformance vectors."""

from __future__ import annotations

import ast
import csv
import hashlib
import os
import random
import shutil
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.authoring.drafts import TODO
from mlebench_console.competitions.authoring.hostile import hostile_forms
from mlebench_console.competitions.authoring.linting import example_of, faults_of
from mlebench_console.competitions.descriptions import description, obfuscated_description
from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from mlebench_console.competitions.model import EDITIONS, Competition, Edition, Parameter
from mlebench_console.competitions.task import line_at_fault
from mlebench_console.engine.checks import Check, Health
from mlebench_console.engine.datasets.preparing import prepare
from mlebench_console.engine.images.building import PACKAGES_OF_THE_GRADER
from mlebench_console.foundation.files import write_json
from mlebench_console.foundation.problems import DataProblem, Problem, UsageProblem
from mlebench_console.foundation.workers import Ended, ReportProgress, WorkerPool
from mlebench_console.state.records import PreparationOptions

SEED = 1
_ANSWERED = ("scored", "rejected", "not_csv", "too_large")
_LONGEST_MESSAGE = 500
_SLOW_SECONDS = 1.0
_SLOW_FACTOR = 2.0
_OURS = "description.md"  # no task writes it
# Small, because vectors are kept in repositories.
_MOST_RAW_BYTES = 5_000_000
_LARGE_SAMPLE_BYTES = 20_000
_FEW_FORMS = 20


def check(
    competition_id: str, raw: Path, parameters: Mapping[str, Parameter] | None = None
) -> Iterator[Check]:
    """Check a competition with its raw data, or synthetic ones like them, and yield the result of each check.

    Raises:
        Problem: there is no such competition or raw folder, or its facts can't be read.
    """
    competition = registry.get(competition_id)
    if not raw.is_dir():
        raise DataProblem(f"Raw folder {raw} was not found", "", "Give an extracted Kaggle folder.")
    yield from _check_files(competition)
    try:
        task = registry.load_task(competition)
    except Problem as problem:
        yield _failed("task", problem.cause, _trace_of(problem))
        return
    missing = [name for name in ("prepare", "grade") if not callable(getattr(task, name, None))]
    if missing:
        yield _failed("task", f"task.py has no function {' and no '.join(missing)}")
        return
    before = _times_of(raw)
    # another hash seed, so that sets have another order than in this process
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    again = WorkerPool(
        preload=(
            "mlebench_console.engine.datasets.preparing",
            "mlebench_console.competitions.kit.tables.labelled_table",
        ),
        environment={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
    )
    with closing(again) as pool:
        for edition in _editions_of(competition):
            with tempfile.TemporaryDirectory(prefix="competition-check-") as work:
                for found in _EditionCheck(
                    competition, edition, raw, parameters, Path(work), pool
                ).findings():
                    yield replace(found, name=f"{found.name}, edition {edition}")
    changed = [name for name, now in _times_of(raw).items() if before.get(name) != now]
    if changed:
        yield _failed("raw data", f"prepare has written to the raw folder: {', '.join(changed[:3])}")


def _editions_of(competition: Competition) -> list[Edition]:
    """Return the editions that have the competition."""
    return [edition for edition in EDITIONS if edition == "v1" or not competition.excluded]


def _check_files(competition: Competition) -> Iterator[Check]:
    """Check what needs no data."""
    marked = [
        f"{path.name}, line {number}"
        for path in (competition.facts_path, competition.task_path, competition.description_path)
        if path.is_file()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if TODO in line
    ]
    absent = _absent_in_containers(competition)
    if absent:
        yield _warning(
            "imports",
            f"grading containers have no {', '.join(absent)}: import it inside prepare, or submissions can only be"
            " graded and validated outside containers",
        )
    if marked:
        yield _failed("facts", f"{TODO} is left in {'; '.join(marked)}")
    elif not competition.metric.formula:
        yield _failed("facts", "metric.formula is empty")
    elif not registry.is_own(competition) and competition.id not in registry.splits()[competition.complexity]:
        yield _failed(
            "facts",
            f"complexity is {competition.complexity!r}, but {competition.complexity} in splits.toml does not list it",
        )
    else:
        yield _ok("facts", f"valid and complete; {registry.source_of(competition)}")


def _absent_in_containers(competition: Competition) -> list[str]:
    """Return the libraries that the task's modules import when they are loaded, and that grading containers lack."""
    present = {*sys.stdlib_module_names, *PACKAGES_OF_THE_GRADER, "mlebench_console"}
    imported: set[str] = set()
    for path in competition.folder.glob("*.py"):
        try:
            statements = ast.parse(path.read_bytes()).body
        except (SyntaxError, ValueError):  # importing the module reports it better
            continue
        for statement in statements:
            if isinstance(statement, ast.Import):
                imported.update(alias.name for alias in statement.names)
            elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
                imported.add(statement.module)
    return sorted({name.partition(".")[0] for name in imported} - present)


@dataclass
class _EditionCheck:
    """The checks of one edition and the data that they share."""

    competition: Competition
    edition: Edition
    raw: Path
    parameters: Mapping[str, Parameter] | None
    work: Path
    pool: WorkerPool
    prepared: Path = field(init=False)

    def findings(self) -> Iterator[Check]:
        """Prepare and yield the findings of all checks; those that a failure makes impossible are left out."""
        try:
            first = self._prepare()
        except _Failure as failure:
            yield _failed("prepare", failure.found, failure.trace)
            return
        yield first
        yield from self._check_secrecy()
        yield from self._check_right_submissions()
        form = self._check_form()
        yield form
        yield from self._check_hostile(form.allows_work)
        yield from self._check_description(form.allows_work)

    # preparation

    def _prepare(self) -> Check:
        began = time.perf_counter()
        options = PreparationOptions(str(self.raw), verify=False)
        try:
            self.prepared = prepare(
                self.competition.id,
                data_dir=self.work / "first",
                edition=self.edition,
                parameters=self.parameters,
                options=options,
            )
        except Problem as problem:
            raise _Failure(str(problem), _trace_of(problem)) from problem
        except Exception as error:
            raise _Failure(f"{type(error).__name__}: {error}", traceback.format_exc()) from error
        seconds = time.perf_counter() - began
        again = _prepare_elsewhere(
            self.pool,
            competition_id=self.competition.id,
            raw=str(self.raw.absolute()),
            data_dir=str(self.work / "second"),
            edition=self.edition,
            parameters=dict(self.parameters or {}),
        )
        sums, other = (
            {
                f"{side}/{name}": made
                for side, files in _described(folder).items()
                for name, made in files.items()
            }
            for folder in (self.prepared, again)
        )
        differing = sorted(name for name in sums.keys() | other.keys() if sums.get(name) != other.get(name))
        if differing:
            return _failed(
                "prepare",
                f"{', '.join(differing[:3])} {'differ' if len(differing) > 1 else 'differs'} when the same data are"
                " prepared twice: prepare depends on the order of a set, on the time, or on unseeded random numbers",
            )
        size = sum(path.stat().st_size for path in self.prepared.rglob("*") if path.is_file())
        return _ok("prepare", f"the same twice: {len(sums)} files, {size:,} bytes, in {seconds:.2f} s")

    def _check_secrecy(self) -> Iterator[Check]:
        """Check that no public table contains the answers of test rows."""
        answers, sample = self._answers, self._sample
        if answers.suffix != ".csv":
            return
        head, *body = _rows(answers)
        wanted = _rows(sample)[0]
        key, values = wanted[0], [name for name in wanted[1:] if name in head]
        if key not in head or not values:
            return
        truth = {row[head.index(key)]: [row[head.index(name)] for name in values] for row in body}
        for path in sorted(self.prepared.glob("public/**/*.csv")):
            if path == sample:
                continue
            columns, *rows = _rows(path) or [[]]
            if key not in columns or not set(values) <= set(columns):
                continue
            at, places = columns.index(key), [columns.index(name) for name in values]
            revealed = sum(
                truth.get(row[at]) == [row[place] for place in places]
                for row in rows
                if len(row) > max(places)
            )
            if revealed > len(truth) // 2:
                name = path.relative_to(self.prepared)
                yield _failed("secrecy", f"{name} reveals the {', '.join(values)} of {revealed} test rows")

    # correct submissions

    def _check_right_submissions(self) -> Iterator[Check]:
        cut = self.competition.thresholds
        perfect, best = self._perfect, self._judge(self._perfect)
        name = perfect.relative_to(self.prepared)
        if best.score is None:
            yield self._ungraded(f"the perfect submission ({name})", best)
            if best.outcome == "rejected" and self.competition.files.gold_submission is None:
                yield _failed(
                    "perfect submission",
                    "the answers are not a valid submission: have prepare write one and declare it as"
                    " files.gold_submission",
                )
            return
        medal = cut.medal(best.rounded)
        if medal != "gold":
            yield _failed(
                "perfect submission",
                f"{name} scores {best.score:g}, which earns {medal or 'no medal'}: the cut-offs, metric.direction"
                " or grade are wrong",
            )
        else:
            yield _ok("perfect submission", f"{name} scores {best.score:g}, gold")
        sample = self._judge(self._sample)
        if sample.outcome not in _ANSWERED:
            yield self._ungraded("the sample submission", sample)
        elif sample.score is None:
            yield _warning("sample submission", f"it is refused: {sample.message}")
        elif sample.score < best.score if cut.is_lower_better else sample.score > best.score:
            yield _failed(
                "sample submission",
                f"it scores {sample.score:g}, better than a perfect one: metric.direction is wrong",
            )
        else:
            medal = cut.medal(sample.rounded)
            worth = f", {medal}: are the cut-offs right?" if medal else ""
            result = _warning if medal else _ok
            yield result("sample submission", f"it scores {sample.score:g}{worth}")
        yield self._check_speed(perfect)

    def _check_speed(self, submission: Path) -> Check:
        from mlebench_console.competitions.kit import tables

        began = time.perf_counter()
        self._judge(submission)
        grading = time.perf_counter() - began
        began = time.perf_counter()
        for path in {submission, self._answers}:
            if path.suffix == ".csv":
                tables.read_csv(path)
        reading = time.perf_counter() - began
        slow = grading > _SLOW_FACTOR * reading + _SLOW_SECONDS
        figures = f"a grade takes {grading:.3f} s; reading its tables takes {reading:.3f} s"
        return _warning("speed", f"{figures}: look for a loop over rows") if slow else _ok("speed", figures)

    def _check_form(self) -> Check:
        """Check that submissions can be validated for agents without the answers."""
        for name, path in (("the sample submission", self._sample), ("a perfect submission", self._perfect)):
            try:
                validated = self._judge(path, form_only=True)
            except Problem as problem:
                return _failed("validation", str(problem), self._advice())
            if validated.outcome not in _ANSWERED:
                return _failed(
                    "validation",
                    f"{name} can't be validated for agents: grade needs something from the answers that the sample"
                    " submission, which replaces them, does not have:"
                    f" {self._fault_in(validated)}",
                    self._advice(),
                )
            if validated.outcome != "scored" and self._judge(path).outcome == "scored":
                return _failed(
                    "validation",
                    f"{name} is graded, but the validation for agents refuses it: {validated.message}",
                    self._advice(),
                )
        return _ok("validation", "submissions are validated for agents with public data alone")

    def _advice(self) -> str:
        """Suggest a `stand_in_answers` function with the columns of the answers."""
        sample, answers = (
            _rows(self._sample),
            _rows(self._answers) if self._answers.suffix == ".csv" else [[]],
        )
        head = sample[0] if sample else []
        more = [name for name in answers[0] if name not in head]
        test = self.prepared / "public" / "test.csv"
        shown = _rows(test)[0] if test.is_file() else []
        from_test = [name for name in answers[0] if name in shown]
        if more and set(more) <= set(from_test):
            made = "".join(f", {name}=0" for name in answers[0] if name not in shown)[2:]
            body = f'data.table("test.csv", columns={tuple(from_test)!r}).assign({made})'
        else:
            body = f"data.sample().assign({', '.join(f'{name}=0' for name in more)})"
        return (
            f"Write into {self.competition.task_path}, and import PublicData from"
            " mlebench_console.competitions.task:\n\n"
            "def stand_in_answers(data: PublicData) -> pd.DataFrame:\n"
            '    """Return the columns of the answers, made from public data, to validate submissions."""\n'
            f"    return {body}\n"
        )

    # hostile submissions

    def _check_hostile(self, with_form: bool) -> Iterator[Check]:
        forms = hostile_forms(self._sample.read_bytes(), random.Random(SEED))  # noqa: S311 no secret depends on it
        unanswered: dict[str, Judgement] = {}
        depending: list[str] = []
        differing: list[str] = []
        valid = 0
        changed, none = self._other_answers()
        for name, content in forms.items():
            path = self.work / "submission.csv"
            path.write_bytes(content)
            graded = self._judge(path)
            valid += graded.outcome == "scored"
            if not _is_answer(graded):
                unanswered[name] = graded
            if not with_form:
                continue
            validated = self._judge(path, form_only=True)
            if not _is_answer(validated):
                unanswered.setdefault(f"{name} (validation for agents)", validated)
            elif (validated.outcome == "scored") != (graded.outcome == "scored"):
                differing.append(name)
            # code that reads the answers fails without them for any submission, so few are tried
            others = (changed, none) if valid <= 1 else (changed,)
            if any(self._judge(path, form_only=True, prepared=other) != validated for other in others):
                depending.append(name)
        if unanswered:
            first = next(iter(unanswered.values()))
            why = self._fault_in(first) or f"its message is {first.message!r}"
            yield _failed(
                "hostile submissions",
                f"{len(unanswered)} of {len(forms)} get neither a score nor a one-line reason:"
                f" {_listed(list(unanswered))}; the first: {why}",
                first.detail,
            )
        else:
            yield _ok(
                "hostile submissions", f"{len(forms)} forms: {valid} scored, {len(forms) - valid} refused"
            )
        if not with_form:
            return
        if depending:
            yield _failed(
                "secrecy of answers",
                f"the validation for agents depends on the answers, for {len(depending)} forms: {_listed(depending)}",
            )
        else:
            yield _ok("secrecy of answers", "no validation depends on the answers")
        if differing:
            yield _warning(
                "validation and grading",
                f"validation and grading disagree on {len(differing)} forms: {_listed(differing)}",
            )

    def _other_answers(self) -> tuple[Path, Path]:
        """Make two prepared folders with the same public part: one with other answers, one without answers."""
        none, changed = self.work / "none", self.work / "changed"
        for folder in (none, changed):
            folder.mkdir()
            (folder / "public").symlink_to(self.prepared / "public")
        shutil.copytree(self.prepared / "private", changed / "private")
        answers = changed / self.competition.answers
        if answers.suffix == ".csv":
            head, *body = _rows(answers)
            kept = [row for place, row in enumerate(body) if place % 3]
            moved = [[row[0], *other[1:]] for row, other in zip(kept, kept[1:] + kept[:1], strict=True)]
            _write_rows(answers, [head, *moved])
        else:
            answers.unlink()
        return changed, none

    # the description

    def _check_description(self, with_form: bool) -> Iterator[Check]:
        competition = self.competition
        try:
            text = description(competition, self.edition)
        except DataProblem as problem:
            yield _failed("description", str(problem))
            return
        faults = list(faults_of(text, competition, self.prepared / "public"))
        try:
            obfuscated_description(competition, self.edition)
        except DataProblem as problem:
            faults.append(str(problem).replace("\n", ". "))
        example, sample = example_of(text), _rows(self._sample)
        if not example:
            faults.append("its section Submission has no example between ```")
        elif unknown := [name for name in example[0] if name not in (*sample[0], "...")]:
            yield _failed(
                "description",
                f"its example has the columns {', '.join(unknown)}, which the sample submission does not have",
            )
        elif with_form and "..." not in example[0]:  # "..." replaces columns if there are too many
            validated = self._judge(self._with_example(example, sample), form_only=True)
            if (
                validated.outcome != "scored"
            ):  # unavoidable where values depend on the row's id, which is made up
                faults.append(
                    f"the values of its example are not valid in the first rows: {validated.message}"
                )
        for fault in faults:
            yield _warning("description", fault)
        if not faults:
            yield _ok("description", "it describes files, metric and submission; its example is valid")

    def _with_example(self, example: Sequence[Sequence[str]], sample: Sequence[Sequence[str]]) -> Path:
        """Write the sample submission with the example's columns, and its values in the first rows, without its ids."""
        places = [sample[0].index(name) for name in example[0]]
        shown = [[row[place] for place in places] for row in sample]
        for row, values in zip(shown[1:], example[1:], strict=False):
            row[1:] = values[1:]
        path = self.work / "example.csv"
        _write_rows(path, shown)
        return path

    # shared by the checks

    @property
    def _sample(self) -> Path:
        return self.prepared / self.competition.sample_submission

    @property
    def _answers(self) -> Path:
        return self.prepared / self.competition.answers

    @property
    def _perfect(self) -> Path:
        return self.prepared / (self.competition.files.gold_submission or self.competition.answers)

    def _judge(self, path: Path, *, form_only: bool = False, prepared: Path | None = None) -> Judgement:
        return judge(
            GradeRequest(
                self.competition.id,
                path,
                prepared or self.prepared,
                self.edition,
                self.parameters,
                form_only=form_only,
            )
        )

    def _ungraded(self, what: str, judgement: Judgement) -> Check:
        fault = self._fault_in(judgement) or judgement.message
        return _failed("grade", f"{what} is not graded: {fault}", judgement.detail)

    def _fault_in(self, judgement: Judgement) -> str:
        """Return the error that ended the grader, and the line of the task; empty where it gave an answer."""
        line = line_at_fault(self.competition, judgement.detail)
        return f"{_last_line(judgement.detail)}{f' ({line})' if line else ''}"


def _ok(name: str, text: str) -> Check:
    return Check(Health.OK, text, name=name)


def _warning(name: str, text: str) -> Check:
    return Check(Health.WARN, text, name=name)


def _failed(name: str, text: str, more: str = "") -> Check:
    return Check(Health.FAIL, text, more, name=name)


class _Failure(Exception):
    """A failed preparation, with its text and traceback."""

    def __init__(self, found: str, trace: str) -> None:
        super().__init__(found)
        self.found = found
        self.trace = trace


def _is_answer(judgement: Judgement) -> bool:
    message = judgement.message
    return judgement.outcome in _ANSWERED and 0 < len(message) < _LONGEST_MESSAGE and "\n" not in message


def _prepare_elsewhere(pool: WorkerPool, **arguments: Any) -> Path:
    """Prepare in a process of the pool, and return the prepared folder.

    Raises:
        _Failure: the preparation fails.
    """
    pool.start(f"{__name__}:prepare_in_worker", arguments)
    while True:
        for news in pool.wait():
            if isinstance(news, Ended):
                if news.problem is not None:
                    raise _Failure(f"the second time only: {news.problem}", news.output)
                return Path(news.value)


def prepare_in_worker(
    competition_id: str,
    raw: str,
    data_dir: str,
    edition: Edition,
    parameters: Mapping[str, Parameter],
    *,
    report_progress: ReportProgress,
) -> str:
    """Prepare in this process, which is a worker's child, and return the prepared folder."""
    del report_progress
    options = PreparationOptions(raw, verify=False)
    return str(
        prepare(competition_id, data_dir=data_dir, edition=edition, parameters=parameters, options=options)
    )


def write_vectors(
    competition_id: str, raw: Path, target: Path, parameters: Mapping[str, Parameter] | None = None
) -> Path:
    """Write the conformance vectors of a competition to a folder in `target` and return that folder.

    They contain the raw data, the datasets prepared from them in both editions, submissions, and their results in
    edition v1; tests/conformance/README.md describes the files.

    Raises:
        Problem: there is no such competition, its raw data can't be prepared or are too large, or its folder of
            vectors already exists.
    """
    competition = registry.get(competition_id)
    folder = target / competition_id
    size = sum(path.stat().st_size for path in raw.rglob("*") if path.is_file())
    if size > _MOST_RAW_BYTES:
        raise UsageProblem(
            f"{raw} has {size:,} bytes",
            f"vectors are made from at most {_MOST_RAW_BYTES:,}",
            "Make smaller raw data.",
        )
    if folder.exists():
        raise UsageProblem(f"{folder} already exists", "", "Remove it to have it written again.")
    with tempfile.TemporaryDirectory(prefix="competition-vectors-") as work:
        made = Path(work, "vectors")
        (made / "submissions").mkdir(parents=True)
        options = PreparationOptions(str(raw), verify=False)
        folders = {
            edition: prepare(
                competition_id,
                data_dir=Path(work, edition),
                edition=edition,
                parameters=parameters,
                options=options,
            )
            for edition in _editions_of(competition)
        }
        for edition, name in (("v1", "prepared.json"), ("corrected", "prepared_corrected.json")):
            if edition in folders:
                write_json(made / name, _described(folders[edition]))
        prepared = folders["v1"]
        if parameters:
            write_json(made / "parameters.json", dict(parameters))
        sample = (prepared / competition.sample_submission).read_bytes()
        perfect = prepared / (competition.files.gold_submission or competition.answers)
        forms = dict(hostile_forms(sample, random.Random(SEED)))  # noqa: S311 no secret depends on it
        if len(sample) > _LARGE_SAMPLE_BYTES:
            forms = {name: forms[name] for name in sorted(forms)[:: max(1, len(forms) // _FEW_FORMS)]}
        cases = []
        for name, content in {"sample": sample, "perfect": perfect.read_bytes(), **forms}.items():
            path = made / "submissions" / f"{name}.csv"
            path.write_bytes(content)
            found = judge(GradeRequest(competition_id, path, prepared, parameters=parameters))
            if found.outcome not in _ANSWERED:
                raise DataProblem(
                    f"{competition_id} has no vectors yet",
                    f"its grader fails with {name}: {_last_line(found.detail)}",
                    f"mlebench-console competitions check {competition_id} shows the traceback.",
                )
            case = {"submission": path.name, "expect": "invalid" if found.score is None else "score"}
            cases.append(case if found.score is None else {**case, "score": found.score})
        write_json(made / "cases.json", cases)
        _write_tar(raw, made / "raw.tar.gz")
        target.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, folder)
    return folder


def _described(prepared: Path) -> dict[str, dict[str, Any]]:
    """Describe a prepared dataset, by side and path: hash and size of each file, hashes of the members of archives."""
    described: dict[str, dict[str, Any]] = {}
    for side in ("public", "private"):
        paths = [path for path in sorted((prepared / side).rglob("*")) if path.name != _OURS]
        described[side] = {
            f"{path.relative_to(prepared / side).as_posix()}{'/' if path.is_dir() else ''}": _description_of(
                path
            )
            for path in paths
            if path.is_file() or not any(path.iterdir())
        }
    return described


def _description_of(path: Path) -> dict[str, Any]:
    """Describe a file by hash and size; an archive by the hashes of its members, because its bytes contain times."""
    if path.is_dir():
        return {"dir": True}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            return {"zip": {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}}
    if path.suffix == ".7z":
        import py7zr

        with tempfile.TemporaryDirectory() as scratch:
            with py7zr.SevenZipFile(path) as packed:
                packed.extractall(scratch)  # noqa: S202 the task has packed it
            files = [each for each in sorted(Path(scratch).rglob("*")) if each.is_file()]
            return {"7z": {each.relative_to(scratch).as_posix(): _sha256(each) for each in files}}
    if path.name.endswith((".tar", ".tar.gz", ".tgz")):
        with tarfile.open(path) as tar:
            streams = ((member.name, tar.extractfile(member)) for member in tar if member.isfile())
            return {
                "tar": {
                    name.removeprefix("./"): hashlib.sha256(stream.read()).hexdigest()
                    for name, stream in streams
                    if stream is not None
                }
            }
    return {"sha256": _sha256(path), "bytes": path.stat().st_size}


def _write_tar(folder: Path, target: Path) -> None:
    """Pack a folder so that the same files give the same bytes."""
    import gzip

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with (
        target.open("wb") as stream,
        gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path in sorted(folder.rglob("*")):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=plain)


def _times_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _rows(path: Path) -> list[list[str]]:
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        return list(csv.reader(stream))


def _write_rows(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def _trace_of(problem: Problem) -> str:
    """Return the traceback of a problem's cause, if that was an error in code; else an empty text."""
    cause = problem.__cause__
    return "".join(traceback.format_exception(cause)) if cause and not isinstance(cause, Problem) else ""


def _last_line(detail: str) -> str:
    return detail.strip().rpartition("\n")[2]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
