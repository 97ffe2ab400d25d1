"""A run told without its competition's name: by flag or by the agent's own setting, and its row says so."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.descriptions import obfuscated_description
from mlebench_console.engine.agents import get_agent, wants_obfuscated
from mlebench_console.engine.options.sweep import SweepOptions, options_of, resolve
from mlebench_console.engine.places import Places, own_agents_folder
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.environment import __path__ as environment_path
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.state import database
from mlebench_console.state.lifecycle import RunState
from tests.engine.harness import COMPETITION, SUBMIT, Harness

# As MLE-bench's agents begin: what they would put in place themselves must not have to be.
SCRIPT = f"""
if [ "$OBFUSCATE" = "true" ] && [ ! -w "$DATA_DIR" ]; then echo "read-only"; exit 1; fi
cp "$DATA_DIR/description.md" "$INSTRUCTIONS_FILE" "$LOGS_DIR"
ls "$DATA_DIR" > "$LOGS_DIR/names"
{SUBMIT}
"""
SETTING = "  env_vars:\n    OBFUSCATE: true\n"


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("setting", "arguments"),
    [("", {"obfuscated": True}), (SETTING, {}), ("", {"obfuscated": True, "runtime": "plain"})],
    ids=["by flag", "by the agent's setting", "without a sandbox"],
)
def test_agent_and_report_have_the_obfuscated_text(
    harness: Harness, prepared_data: Path, setting: str, arguments: dict[str, object]
) -> None:
    harness.agent("reader", SCRIPT, extra=setting)
    harness.start()
    harness.launch("reader", **arguments)
    (run,) = harness.ended()
    assert run.state is RunState.FINISHED, harness.log(run)
    logs = harness.folder(run) / protocol.LOGS
    wanted = obfuscated_description(registry.get(COMPETITION), "v1")
    assert (logs / "description.md").read_text() == wanted
    told = "instructions.txt" if (logs / "instructions.txt").exists() else "instructions_obfuscated.txt"
    assert (logs / told).read_text() == Path(environment_path[0], "instructions_obfuscated.txt").read_text()
    public = prepared_data / COMPETITION / "prepared" / "public"
    assert (logs / "names").read_text().split() == sorted(path.name for path in public.iterdir())
    assert protocol.read(harness.folder(run) / protocol.ORDER, Order).conditions.obfuscated
    with closing(database.open_for_reading(harness.places.state_dir)) as state:
        assert find_evidence(state, run.sweep_id).conditions.descriptions == "obfuscated"
    assert (public / "description.md").read_text() != wanted, "the dataset itself stays as it is"


@pytest.mark.usefixtures("bubblewrap")
def test_other_runs_have_the_datasets_text(harness: Harness, prepared_data: Path) -> None:
    harness.agent("reader", SCRIPT, extra="  env_vars:\n    OBFUSCATE: false\n")
    harness.start()
    harness.launch("reader")
    (run,) = harness.ended()
    public = prepared_data / COMPETITION / "prepared" / "public"
    logs = harness.folder(run) / protocol.LOGS
    assert (logs / "description.md").read_text() == (public / "description.md").read_text()
    with closing(database.open_for_reading(harness.places.state_dir)) as state:
        assert find_evidence(state, run.sweep_id).conditions.descriptions == "usual"


@pytest.mark.parametrize("name", ["openhands", "mlab", "repomaster"])
def test_our_agents_ask_for_it_in_a_variant_of_their_own(name: str) -> None:
    plain, obfuscated = (get_agent(id_, [own_agents_folder()]) for id_ in (name, f"{name}/obfuscated"))
    assert (wants_obfuscated(plain), wants_obfuscated(obfuscated)) == (False, True)


def test_a_launch_that_asks_for_it_can_be_asked_for_again(tmp_path: Path) -> None:
    places = Places(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state")
    asked = resolve(SweepOptions(agent="dummy", competitions=(COMPETITION,), obfuscated=True), places)
    assert asked.spec.conditions.obfuscated
    assert options_of(asked).obfuscated
