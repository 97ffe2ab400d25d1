"""Survey which runtimes the nodes of a placement offer, by a short job on one node of each kind; cached for a day."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlebench_console.engine.placements.commands import (
    Node,
    SlurmAway,
    SlurmCommands,
    SlurmFull,
    SlurmRefuses,
    output_option,
)
from mlebench_console.engine.placements.sbatch import given_options, module_script, profile_named
from mlebench_console.engine.places import Places, shared_folder
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.runner.survey import HostOffer
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import EnvironmentProblem, Problem

KEPT_SECONDS = 86_400.0
_FOLDER = "surveys"
_JOB = "mlebench-survey"
_MINUTES = 5
_MEMORY_MB = 500
_LOOK_SECONDS = 1.0
_MOST_KINDS = 20
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class SurveyedNodes:
    """A kind of nodes, and what one of them offers.

    Attributes:
        node: the examined node.
        nodes: all nodes of this kind.
        partitions: the partitions of the node.
        offer: what it offers; None if unknown.
        problem: why it is unknown.
        gpus: of one node, according to Slurm.
    """

    node: str
    nodes: tuple[str, ...]
    partitions: tuple[str, ...]
    offer: HostOffer | None
    problem: str = ""
    gpus: int = 0


def survey_nodes(
    places: Places,
    placement: str,
    *,
    wait_seconds: float,
    fresh: bool = False,
    commands: SlurmCommands | None = None,
) -> list[SurveyedNodes]:
    """Return what each kind of node of a placement offers.

    Args:
        places: for config.toml and the cached results.
        placement: its name.
        wait_seconds: how long to wait for all jobs together.
        fresh: whether to examine nodes again that have cached results.
        commands: of Slurm; by default the installed ones.

    Raises:
        Problem: there is no such placement, or Slurm does not answer.
    """
    profile = profile_named(placement, places.config_file)
    slurm = commands or SlurmCommands(os.environ)
    folder = _folder(places)
    _file(folder, placement, "any").parent.mkdir(parents=True, exist_ok=True)
    found: list[SurveyedNodes] = []
    asked: dict[str, str] = {}
    kinds = _kinds(slurm.nodes(profile.partitions))
    for alike in kinds[:_MOST_KINDS]:
        node = next((one for one in alike if not one.is_away), alike[0])
        file = _file(folder, placement, node.name)
        offer = None if fresh else _kept(file)
        problem = ""
        if offer is None and node.is_away:
            problem = f"no node of this kind takes jobs: {node.name} is {node.state}"
        elif offer is None:
            file.unlink(missing_ok=True)
            try:
                asked[node.name] = _submit(slurm, profile, node, file)
            except (SlurmRefuses, SlurmFull) as refusal:
                problem = refusal.in_one_line()
        names = tuple(one.name for one in alike)
        found.append(SurveyedNodes(node.name, names, node.partitions, offer, problem, node.gpus))
    if asked:
        _wait([_file(folder, placement, name) for name in asked], wait_seconds)
    return [_completed(one, _file(folder, placement, one.node), asked, slurm) for one in found]


def kept_offers(places: Places, placement: str) -> list[HostOffer]:
    """Return the cached results of a placement's nodes."""
    folder = _file(_folder(places), placement, "any").parent
    return [offer for file in sorted(folder.glob("*.json")) if (offer := _kept(file)) is not None]


def _folder(places: Places) -> Path:
    return (shared_folder(places) or places.state_dir) / _FOLDER


def _kinds(nodes: Sequence[Node]) -> list[list[Node]]:
    """Group nodes with the same properties in Slurm, the largest groups first."""
    found: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        found.setdefault((node.partitions, node.cpus, node.memory_bytes, node.gpus), []).append(node)
    return sorted(found.values(), key=lambda alike: (-len(alike), alike[0].name))


def _file(folder: Path, placement: str, node: str) -> Path:
    return folder / placement.replace(":", ".") / f"{node}.json"


def _kept(file: Path) -> HostOffer | None:
    """Read the result of a node; None without a recent one."""
    import msgspec

    try:
        with files.reading_untrusted(file, max_bytes=_MOST_BYTES) as stream:
            offer = msgspec.json.decode(stream.read(), type=HostOffer)
    except (Problem, msgspec.MsgspecError):
        return None
    return offer if time.time() - offer.at < KEPT_SECONDS else None


def _submit(slurm: SlurmCommands, profile: SlurmProfile, node: Node, file: Path) -> str:
    script = file.with_suffix(".sh")
    files.write_text(
        script,
        module_script("mlebench_console.environment.runner.survey", [f"--output={file}"], profile),
    )
    options = {
        "job-name": _JOB,
        "chdir": str(file.parent),
        "output": output_option(file.with_suffix(".log")),
        "time": str(_MINUTES),
        "nodelist": node.name,
        "mem": f"{_MEMORY_MB}M",
        # The default partition may not have this node.
        "partition": profile.partition or ",".join(node.partitions),
    }
    return slurm.submit(script, given_options(options, profile))


def _wait(written: Sequence[Path], seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        # Listing the folder first, because some file systems show new files only then.
        there = set(written[0].parent.iterdir())
        if all(file in there for file in written):
            return
        time.sleep(_LOOK_SECONDS)


def _completed(one: SurveyedNodes, file: Path, asked: dict[str, str], slurm: SlurmCommands) -> SurveyedNodes:
    """Add the result of a node's job; without one, cancel the job and report its state as the problem."""
    if one.node not in asked:
        return one
    offer = _kept(file)
    if offer is not None:
        return replace(one, offer=offer)
    number = asked[one.node]
    try:
        job = next((job for job in slurm.jobs() if job.id == number and job.name == _JOB), None)
        if job is not None:  # else the number may be another job's by now
            slurm.cancel([number])
    except SlurmAway as away:
        return replace(one, problem=away.in_one_line())
    state = "its job was not seen" if job is None else job.in_words()
    return replace(one, problem=f"nothing was written in time: {state}; see {file.with_suffix('.log')}")


def require_node(found: Sequence[SurveyedNodes]) -> None:
    """Check that at least one node has answered.

    Raises:
        EnvironmentProblem: none has.
    """
    if not any(one.offer for one in found):
        why = found[0].problem if found else "its partition has no nodes"
        raise EnvironmentProblem("no node has reported what it offers", why)
