"""Prepare one dataset from its raw data; a kill at any moment leaves either the old dataset or the new one."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from mlebench_console.competitions.kit.archives import zip_tree
from mlebench_console.competitions.kit.archives.zip_tree import ZipPath
from mlebench_console.competitions.model import Edition, Parameter
from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.competitions.registry import get, is_own, load_task
from mlebench_console.competitions.task import Preparation, line_at_fault, merge_parameters, refuse_excluded
from mlebench_console.engine.claims import claimed_folder
from mlebench_console.engine.datasets.plans import given_raw
from mlebench_console.engine.datasets.prepared import checksums, manifest
from mlebench_console.engine.datasets.prepared.descriptions import OURS, check_choice, chosen_texts
from mlebench_console.engine.datasets.prepared.verification import RAW_DATA, RAW_FOLDER
from mlebench_console.engine.datasets.prepared.workspace import discard, put_in_place, set_one_time, workspace
from mlebench_console.engine.datasets.sources import published, raw_data
from mlebench_console.engine.datasets.steps import CHECKSUM, PREPARE, ReportStep, no_report, within
from mlebench_console.engine.demo_data import NOTICE
from mlebench_console.engine.kaggle import USUAL_PATIENCE
from mlebench_console.engine.layout import DEMO_DATA, MARKER, SYNTHETIC, DatasetFolder, dataset_folder
from mlebench_console.foundation.files import write_json
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.workers import ReportProgress
from mlebench_console.state.records import PreparationOptions

# Errors that a task's code raises if it is wrong, or gets unexpected data.
_FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, IsADirectoryError),
    *(LookupError, NameError, TypeError, ValueError),
)


def prepare(
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    options: PreparationOptions | None = None,
    keep_free: int = 0,
    patience: float = USUAL_PATIENCE,
    report: ReportProgress = no_report,
) -> Path:
    """Prepare a dataset and return its `prepared` folder; see `engine.prepare_competition`.

    The source of the options is empty or a path; demo data must be generated before. `keep_free` bytes stay free on the
    disk, and requests to Kaggle are retried for `patience` seconds. An exception of `report` cancels the preparation.
    """
    competition = get(competition_id)
    refuse_excluded(competition, edition)
    load_task(competition)  # a missing task must fail before a download of hours
    folder = dataset_folder(competition, data_dir, edition)
    merged = merge_parameters(competition, parameters)
    options = options or PreparationOptions()
    descriptions = check_choice(options.descriptions or OURS)
    verify = options.verify
    if verify is None:
        verify = not options.source and not parameters
    with (
        claimed_folder(folder.root, folder.claim, competition.id),
        workspace(folder) as work,
        ExitStack() as stack,
    ):
        extracted = work / "raw"
        # first, so that unavailable descriptions fail immediately
        texts = chosen_texts(competition, edition, descriptions, patience=patience)
        if options.source:
            source = given_raw(Path(options.source).absolute(), competition.id)
            is_zip = source.is_file()
            raw: RawPath = ZipPath(stack.enter_context(zip_tree.opened(source))) if is_zip else source
            published.fetch(
                competition, folder, source, keep_free=keep_free, patience=patience, report=report
            )
        else:
            raw_data.fetch(competition, folder, keep_free=keep_free, patience=patience, report=report)
            raw = raw_data.open_raw_data(
                competition,
                folder,
                stack,
                verify=verify,
                extract_to=extracted if options.keep_raw else None,
                keep_free=keep_free,
                report=report,
            )
        report(PREPARE, "", 0, 0)
        job = Preparation(
            competition=competition,
            edition=edition,
            parameters=merged,
            raw=raw,
            public=work / "prepared" / "public",
            private=work / "prepared" / "private",
            beside=published.folders(competition, folder),
            scratch=work / "scratch",
            progress=within(report, PREPARE),
        )
        _run(job)
        report(CHECKSUM, "", 0, 0)
        origin = RAW_FOLDER if options.source else RAW_DATA
        seal = within(report, CHECKSUM)
        _seal(job, work / "prepared", verify, descriptions, texts, origin, seal)
        put_in_place(work, folder)
        if raw == extracted:
            _keep_raw(extracted, folder)
        if options.discard_zip and not options.source:
            for path in folder.zips():
                path.unlink()
                checksums.forget_zip(path)
    return folder.prepared


def _run(job: Preparation) -> None:
    for path in (job.public, job.private, job.scratch):
        path.mkdir(parents=True)
    competition = job.competition
    task = load_task(competition)
    try:
        task.prepare(job)
    except RawDataProblem as problem:
        if is_own(competition):  # its data can't be downloaded again
            step = f"Give it the data that {competition.task_path} expects, or correct that file."
            raise DataProblem(problem.what, problem.why, step, subject=competition.id) from problem
        raise
    except _FAULTS as error:
        # a task reports the file where it can; other errors of its code get here, with the traceback in the log
        line = line_at_fault(competition, traceback.format_exc())
        raise DataProblem(
            f"the data can't be prepared from {job.raw}",
            f"{type(error).__name__}: {error}{f' ({line})' if line else ''}",
            f"Correct {competition.task_path}, or give it the data that it expects; "
            f"mlebench-console competitions check {competition.id} shows the traceback."
            if is_own(competition)
            else "Download the competition's data again; if that does not help, report it.",
            subject=competition.id,
        ) from error
    for key, name in asdict(competition.files).items():
        if name is not None and not (job.public.parent / name).is_file():
            raise DataProblem(
                f"{name} was not prepared",
                f"{competition.facts_path} declares it as files.{key}, but {competition.task_path} did not write it",
                "Write it there, or correct the declaration.",
                subject=competition.id,
            )


def _seal(
    job: Preparation,
    prepared: Path,
    verify: bool,
    descriptions: str,
    texts: Mapping[str, str],
    origin: str,
    report: ReportStep,
) -> None:
    """Add everything that the task does not write: descriptions, manifest, and the marker last."""
    competition = job.competition
    found = checksums.checksums_of(prepared)
    if verify and job.edition == "v1":  # the known checksums are of MLE-bench's prepared data
        checksums.check_known(competition, found)
    for name, text in texts.items():
        (prepared / name).write_text(text, encoding="utf-8")
    properties = {SYNTHETIC: DEMO_DATA} if (job.raw / NOTICE).is_file() else {}
    set_one_time(job.public)
    seal = manifest.write(prepared, competition.id, job.edition, properties, report)
    write_json(
        prepared / MARKER,
        {
            "competition_id": competition.id,
            "edition": job.edition,
            "parameters": dict(job.parameters),
            "verified": verify,
            "descriptions": descriptions,
            "origin": origin,
            "prepared_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "public": dict(found.public),
            "private": dict(found.private),
            "manifest": asdict(seal),
            **properties,
        },
    )


def _keep_raw(extracted: Path, folder: DatasetFolder) -> None:
    """Move the files extracted for this preparation to `raw`, as MLE-bench does."""
    if folder.raw.exists():  # incomplete, because otherwise it would have been used
        discard(folder, folder.raw)
    extracted.rename(folder.raw)
