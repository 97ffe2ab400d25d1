"""What is said about a sweep, in a file or by flags, comes to one launch; what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions import registry
from mlebench_console.engine.options.sweep import (
    SweepOptions,
    options_of,
    read_toml,
    resolve,
    write_toml,
)
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from tests.conditions import changed
from tests.engine.harness import launch_of

TITANIC = "spaceship-titanic"


def test_a_file_says_what_flags_say_and_flags_win(tmp_path: Path, places: Places) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(
        'agent = "dummy"\nsplit = "lite"\nhours = 12\nseeds = 5\nmemory-gb = 2\nallow = "a.org"\n'
    )
    asked = resolve(SweepOptions(minutes=90, competitions=(TITANIC,), seeds=2).over(read_toml(path)), places)
    assert asked.spec.competitions == (TITANIC,)
    assert asked.spec.conditions.time_limit_seconds == 5400
    assert (
        asked.spec.seeds,
        asked.spec.conditions.resources.memory_bytes,
        asked.spec.conditions.allowed_hosts,
    ) == (2, 2 * 10**9, ("a.org",))
    plain = resolve(read_toml(path), places)
    assert plain.spec.competitions == registry.splits()["low"]
    assert plain.spec.conditions.time_limit_seconds == 12 * 3600


def test_paths_in_a_file_are_meant_from_its_folder(tmp_path: Path, places: Places) -> None:
    folder = tmp_path / "sweeps"
    folder.mkdir()
    (folder / "two.txt").write_text(f"{TITANIC}\n")
    (folder / "limits.json").write_text('{"mem_limit": "2G", "gpus": 1}')
    (folder / "sweep.toml").write_text(
        'agent = "x"\nagents_dir = "mine"\nsplit = "two.txt"\ncontainer_config = "limits.json"\n'
    )
    asked = resolve(read_toml(folder / "sweep.toml"), places)
    assert asked.spec.agents_dir == str(folder / "mine")
    assert (
        asked.spec.competitions,
        asked.spec.conditions.resources.memory_bytes,
        asked.spec.conditions.resources.gpus,
    ) == ((TITANIC,), 2 << 30, 1)


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("agent = ", "can't be read"),
        ('agents = "dummy"', "a sweep has no option 'agents'"),
        ('competitons = "low"', "Did you mean competitions"),
        ('seeds = "3"', "'seeds' is not a whole number"),
        ("seeds = true", "'seeds' is not a whole number"),
        ("hours = true", "'hours' is not a number"),
        ("prepare = 1", "'prepare' is not true or false"),
        ("competitions = [1]", "'competitions' is not a list of texts"),
        ("agent = 3", "'agent' is not a text"),
        (r'agent = "a\u0000b"', "'agent' is not a text without NUL"),
        (r'competitions = ["a\u0000b"]', "'competitions' is not a list of texts without NUL"),
    ],
)
def test_a_file_that_is_not_understood_is_named_with_its_key(tmp_path: Path, text: str, telling: str) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises((UsageProblem, DataProblem)) as told:
        read_toml(path)
    assert telling in str(told.value) and str(path) in str(told.value)


@pytest.mark.parametrize(
    ("form", "telling"),
    [
        (SweepOptions(split="low"), "no agent was given"),
        (SweepOptions(agent="dummy"), "no competition was given"),
        (SweepOptions(agent="dummy", competitions=("spoky",)), "Did you mean spooky-author-identification"),
        (SweepOptions(agent="dummy", split="lowest"), "neither a split nor a file"),
        (SweepOptions(agent="dummy", split="low", time_limit="soon"), "'soon' is not a duration"),
    ],
)
def test_what_is_left_out_or_misspelt_comes_with_a_next_step(
    places: Places, form: SweepOptions, telling: str
) -> None:
    with pytest.raises(UsageProblem) as told:
        resolve(form, places)
    assert telling in str(told.value) and told.value.next_step


_LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
launches = st.builds(
    launch_of,
    agent_id=st.text(_LETTERS, min_size=1, max_size=9),
    agents_dir=st.just("/agents"),
    competitions=st.lists(st.sampled_from(registry.splits()["low"]), min_size=1, unique=True).map(tuple),
    seeds=st.integers(1, 9),
    time_limit_seconds=st.integers(1, 10**6).map(float),
    cpus=st.sampled_from([0.5, 1.0, 36.0]),
    memory_bytes=st.none() | st.integers(1, 10**12),
    gpus=st.integers(-1, 8),
    runs_per_gpu=st.integers(1, 3),
    allowed_hosts=st.lists(st.text(_LETTERS, min_size=1, max_size=9), unique=True).map(tuple),
    network=st.sampled_from(["none", "models", "open"]),
    idle_limit_seconds=st.none() | st.integers(1, 10**5).map(lambda minutes: minutes * 60.0),
    disk_limit_bytes=st.none() | st.integers(1, 10**13),
    start_ramp_seconds=st.integers(0, 600).map(float),
    retries=st.integers(0, 5),
    keep_containers=st.booleans(),
    prepare_missing=st.booleans(),
    gateway=st.sampled_from([(), ("openai",)]),
    budget_usd=st.none() | st.sampled_from([0.5, 20.0]),
    sweep_budget_calls=st.none() | st.integers(1, 10**6),
    name=st.text(_LETTERS, max_size=9),
    concurrency=st.integers(1, 500),
    priority=st.integers(-9, 9),
    experiment=st.text(_LETTERS, max_size=9),
    note=st.text(_LETTERS, max_size=30),
)


@given(launches)
def test_a_sweep_written_as_toml_asks_for_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, launch: LaunchSweep
) -> None:
    places = Places(Path("/c"), Path("/data"), Path("/state"))
    path = tmp_path_factory.getbasetemp() / "again.toml"
    path.write_text(write_toml(options_of(launch)), encoding="utf-8", newline="")
    again = resolve(read_toml(path), places)
    limit = again.spec.conditions.time_limit_seconds
    assert limit == pytest.approx(launch.spec.conditions.time_limit_seconds, rel=1e-12)
    assert again == changed(launch, data_dir="/data", time_limit_seconds=limit)
