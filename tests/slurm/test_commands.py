"""What Slurm's commands say, as each version of it says it, and what of it means that one may try again."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.engine.placements.commands import (
    Job,
    NoAccounting,
    Node,
    Partition,
    SlurmAway,
    SlurmCommands,
    SlurmFull,
    SlurmRefuses,
    moment_of,
    seconds_of,
)


class Programs:
    """Programs of Slurm's names that say what a test wants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = SlurmCommands({"PATH": f"{folder}:/usr/bin:/bin", "OPENAI_API_KEY": "hidden"})

    def say(self, name: str, text: str, *, code: int = 0, stderr: str = "") -> None:
        (self.folder / "stdout").write_text(text)
        (self.folder / "stderr").write_text(stderr)
        script = f'env > "{self.folder}/env"\ncat "{self.folder}/stdout"\ncat "{self.folder}/stderr" >&2\nexit {code}\n'
        (self.folder / name).write_text(f"#!/bin/sh\n{script}")
        (self.folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def test_jobs_are_read_whatever_their_names_hold(programs: Programs) -> None:
    programs.say(
        "squeue",
        "7|RUNNING|None|n1|2026-01-01T00:00:00|2026-01-01T00:00:01|10|mlebench-x-1\n"
        "8|PENDING|Priority||2026-01-01T00:00:00|N/A|9|a | b|c\n"
        "slurm_load_jobs: something else\n",
    )
    first, second = programs.commands.jobs()
    assert first == Job(
        "7",
        "RUNNING",
        "None",
        "n1",
        "2026-01-01T00:00:00",
        moment_of("2026-01-01T00:00:01"),
        10,
        "mlebench-x-1",
    )
    assert second.name == "a | b|c"


def test_a_state_in_the_records_may_be_followed_by_words(programs: Programs) -> None:
    programs.say("sacct", "7|CANCELLED by 0|0:0|n1|2026-01-01T00:00:00|Unknown|1|mlebench-x-1\n")
    (job,) = programs.commands.ended(["mlebench-x-1"], "2026-01-01")
    assert job.state == "CANCELLED"


@pytest.mark.parametrize("said", ["42\n", "42;cluster\n"])
def test_a_submission_is_told_with_or_without_its_cluster(programs: Programs, said: str) -> None:
    programs.say("sbatch", said)
    assert programs.commands.submit(Path("job.sh"), ["--time=1"]) == "42"


def test_no_secret_of_the_operator_reaches_a_command(programs: Programs) -> None:
    programs.say("sbatch", "42\n")
    programs.commands.submit(Path("job.sh"), [])
    assert "hidden" not in (programs.folder / "env").read_text()


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: invalid partition specified: nope",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
        "sbatch: error: Invalid GRES specification (with and without type identification)",
        "sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification",
        "sbatch: error: Batch job submission failed: Invalid Trackable RESource (TRES) specification",
    ],
)
def test_what_is_wrong_with_a_job_is_told_from_what_is_wrong_with_slurm(
    programs: Programs, said: str
) -> None:
    programs.say("sbatch", "", code=1, stderr=said)
    with pytest.raises(SlurmRefuses, match="refuses"):
        programs.commands.submit(Path("job.sh"), [])


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Unexpected message received",
    ],
)
def test_what_may_be_over_later_is_tried_again(programs: Programs, said: str) -> None:
    programs.say("sbatch", "", code=1, stderr=said)
    with pytest.raises(SlurmAway, match="does not answer"):
        programs.commands.submit(Path("job.sh"), [])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
            "sinfo: error: fetch_config: DNS SRV lookup failed\n"
            "sinfo: fatal: Could not establish a configuration source\n",
            "Slurm does not answer: sinfo: Could not establish a configuration source\n"
            "Set SLURM_CONF to the cluster's slurm.conf, or use a host where 'scontrol ping' answers.",
        ),
        (
            "sinfo: error: Unable to contact slurm controller (connect failure)\n" * 2,
            "Slurm does not answer: sinfo: Unable to contact slurm controller (connect failure)\n"
            "'scontrol ping' says whether its controller is up.",
        ),
    ],
)
def test_of_what_slurm_says_the_essential_is_kept_with_a_next_step(
    programs: Programs, said: str, message: str
) -> None:
    programs.say("sinfo", "", code=1, stderr=said)
    with pytest.raises(SlurmAway) as away:
        programs.commands.partitions()
    assert str(away.value) == message


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates"
        " accounting/QOS policy (job submit limit, user's size and/or time limits)", SlurmFull),
        ("sbatch: error: AssocMaxSubmitJobLimit", SlurmFull),
        ("sbatch: error: Batch job submission failed: Slurm temporarily unable to accept job", SlurmFull),
        ("sbatch: error: QOSMaxCpuPerUserLimit\nsbatch: error: Batch job submission failed: Job violates"
        " accounting/QOS policy (job submit limit, user's size and/or time limits)", SlurmRefuses),
    ],
)  # fmt: skip
def test_as_many_jobs_as_allowed_is_told_from_a_job_that_is_too_large(
    programs: Programs, said: str, kind: type[Exception]
) -> None:
    programs.say("sbatch", "", code=1, stderr=said)
    with pytest.raises(kind):
        programs.commands.submit(Path("job.sh"), [])


@pytest.mark.parametrize(
    ("said", "start"),
    [
        (
            "sbatch: Job 7 to start at 2026-01-01T02:10:31 using 1 processors on nodes n1 in partition main",
            (moment_of("2026-01-01T02:10:31"), "n1", "main"),
        ),
        (
            "sbatch: Job 7 to start at 2026-01-01T02:10:31 using 1 processors on nodes n1",
            (moment_of("2026-01-01T02:10:31"), "n1", ""),
        ),
        ("sbatch: something that a later version says", (None, "", "")),
    ],
)
def test_when_a_job_would_start_is_read_where_slurm_says_it(
    programs: Programs, said: str, start: tuple[float | None, str, str]
) -> None:
    programs.say("sbatch", "", stderr=said)
    found = programs.commands.try_out([])
    assert (found.starts_at, found.node, found.partition) == start
    assert found.message == said.removeprefix("sbatch: ")


def test_a_job_that_is_gone_is_cancelled(programs: Programs) -> None:
    gone = "scancel: error: Kill job error on job id 7: Invalid job id specified\n"
    programs.say("scancel", "", code=1, stderr=gone * 2)
    programs.commands.cancel(["7", "8"])
    programs.say("scancel", "", code=1, stderr=f"{gone}scancel: error: Unable to contact slurm controller\n")
    with pytest.raises(SlurmAway):
        programs.commands.cancel(["7", "8"])


def test_nodes_are_told_once_each_with_their_marks_read(programs: Programs) -> None:
    programs.say(
        "sinfo",
        "n1|mixed|2/6/0/8|4.04|8000|gpu:a100:2(S:0-1),shard:8|gpu:a100:1(IDX:0),shard:0|main*|none|\n"
        "n1|mixed|2/6/0/8|4.04|8000|gpu:a100:2|gpu:a100:1(IDX:0)|long|none|\n"
        "n2|down*|0/0/8/8|N/A|8000|(null)|(null)|main*|Not responding | again|\n"
        "n3|idle~|0/4/0/4|0.00|8000|gpu:2|gpu:0|main*|none|\n",
    )
    one, two, three = programs.commands.nodes()
    assert one == Node("n1", "mixed", True, 8, 2, 4.04, 8000 << 20, 2, 1, ("main", "long"), "")
    assert (two.state, two.is_away, two.load, two.gpus) == ("down", True, None, 0)
    assert two.reason == "Not responding | again"
    assert (three.state, three.is_away, three.gpus) == ("idle", False, 2)


def test_records_that_are_not_kept_are_no_trouble(programs: Programs) -> None:
    programs.say("sacct", "", code=1, stderr="Slurm accounting storage is disabled")
    with pytest.raises(NoAccounting):
        programs.commands.ended(["x"], "2026-01-01")
    programs.say("sacctmgr", "", code=1, stderr="You are not running a supported accounting_storage plugin")
    assert programs.commands.accounts() is None


def test_a_host_without_sacct_has_no_records(tmp_path: Path) -> None:
    with pytest.raises(NoAccounting, match="no sacct"):
        SlurmCommands({"PATH": str(tmp_path)}).ended(["x"], "2026-01-01")


def test_a_host_without_slurm_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SlurmAway, match="no squeue on the PATH"):
        SlurmCommands({"PATH": str(tmp_path)}).jobs()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1-00:00:00", 86_400), ("5:00", 300), ("02:00:00", 7200), ("infinite", None), ("n/a", None)],
)
def test_time_limits_are_read_as_slurm_writes_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_the_default_partition_is_known_without_its_name(programs: Programs) -> None:
    programs.say("sinfo", "main*|1-00:00:00|idle\nmain*|1-00:00:00|down*\nlong|infinite|drained\n")
    main = Partition(86_400.0, has_nodes=True)
    assert programs.commands.partitions() == {
        "main": main,
        "": main,
        "long": Partition(None, has_nodes=False),
    }
