"""Play histories of faults for as long as one says; the seed of each is printed, and plays it again."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.engine.places import Places
from mlebench_console.environment.container import trees
from mlebench_console.environment.runner.process import bubblewrap
from mlebench_console.state import database
from tests.engine.harness import COMPETITION, prepare_data
from tests.failures import FOLDER
from tests.kaggle.fixtures import ENVIRONMENT, loopback_kaggle
from tests.kaggle.outage import Outage
from tests.machine import missing_groups
from tests.soak.behaviours import Submissions
from tests.soak.history import SLOTS, Broken, History
from tests.soak.images import problems_of_images
from tests.soak.invariants import broken_invariants
from tests.soak.plans import plan

_DISK_MEGABYTES = 256
_OUTAGE_PATIENCE = 3_600.0
# Tells a child that its folder is a file system of its own.
_INSIDE = "--inside"


def main() -> int:
    """Play, and return 1 after the first history in which something did not hold."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="begin no more histories after so long")
    parser.add_argument("--seed", type=int, help="of the first history, the next have the next numbers")
    parser.add_argument("--bare", action="store_true", help="without bubblewrap and full disks, as elsewhere")
    parser.add_argument(
        "--kaggle", action="store_true", help="prepare the competitions over outages of Kaggle instead"
    )
    parser.add_argument(
        "--images", action="store_true", help="build the images that are too large for the tests instead"
    )
    parser.add_argument(_INSIDE, type=Path, dest="inside", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        return _play(options.seed, options.inside, options.data, bare=options.bare)
    if options.images:
        problems = problems_of_images(lambda text: print(text, flush=True))
        print("\n".join(problems or ["the images hold"]))
        return 1 if problems else 0
    seed = random.SystemRandom().randrange(1 << 20) if options.seed is None else options.seed
    give_up = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory(prefix="soak-") as scratch:
        data = Path(scratch, "data")
        if not options.kaggle:
            prepare_data(data)
        while True:
            folder = Path(scratch, f"history-{seed}")
            if options.kaggle:
                status = _play_outage(seed, folder)
            else:
                status = _play_apart(seed, folder, data, bare=options.bare)
            if status:
                flags = (" --bare" if options.bare else "") + (" --kaggle" if options.kaggle else "")
                again = f'make soak ARGS="--seed {seed} --minutes 0{flags}"'
                print(f"history {seed} did not hold; to play it again: {again}")
                return status
            if time.monotonic() >= give_up:
                return 0
            seed += 1


def _play_outage(seed: int, folder: Path) -> int:
    """Prepare the competitions while Kaggle is away, limits and takes other tokens, and all who work are killed."""
    home = folder / "home"
    home.mkdir(parents=True)
    os.environ.update(ENVIRONMENT, HOME=str(home))
    places = Places(folder / "config.toml", folder / "data", folder / "state")
    names = [name for split in ("split75", "dev") for name in registry.splits()[split]]
    print(f"outage {seed}: {len(names)} competitions", flush=True)
    began = time.monotonic()
    with loopback_kaggle(home) as loopback:
        token = home / ".kaggle" / "access_token"
        outage = Outage(loopback, places, names, token, seed, patience=_OUTAGE_PATIENCE)
        try:
            problems = outage.play()
        except AssertionError as problem:
            problems = [str(problem)]
        asked = len(loopback.asked)
    kills = ", ".join(f"{outage.kills.count(whom)} {whom}" for whom in sorted(set(outage.kills)))
    print(f"outage {seed}: {asked} requests, killed {kills}, {time.monotonic() - began:.0f} s", flush=True)
    if problems:
        kept = Path(FOLDER, f"outage-{seed}")
        trees.remove_tree(kept)
        _keep(places, kept)
        print("\n".join([f"What does not hold (the state is kept in {kept}):", *problems]))
    trees.remove_tree(folder)
    return 1 if problems else 0


def _play_apart(seed: int, folder: Path, data: Path, *, bare: bool) -> int:
    """Play one history in a process of its own, where possible on a small disk of its own that goes with it."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.soak", f"--seed={seed}", f"--data={data}", _INSIDE, str(folder)]
    if bare:
        command.append("--bare")
    elif _has_own_disk():
        mount = f'mount -t tmpfs -o size={_DISK_MEGABYTES}m tmpfs "$0" && exec "$@"'
        command = ["unshare", "--mount", "--propagation=private", "sh", "-c", mount, str(folder), *command]
    done = subprocess.run(command, check=False)
    for left in trees.remove_tree(folder):
        print(f"left over in {folder}: {left}")
    return done.returncode


def _has_own_disk() -> bool:
    return "root" not in missing_groups()


def _play(seed: int, folder: Path, data: Path, *, bare: bool) -> int:
    """Play one history in this folder."""
    isolation = not bare and not bubblewrap.why_unavailable()
    own_disk = not bare and _has_own_disk()
    left_out = [name for name, there in (("bubblewrap", isolation), ("full disks", own_disk)) if not there]
    without = f", without {' and '.join(left_out)}" if left_out else ""
    print(f"history {seed}{without}", flush=True)
    (folder / "config.toml").write_text(f"[engine]\ncpus = {SLOTS * 0.05}\n")
    places = Places(folder / "config.toml", data, folder / "state")
    at_hand = Submissions(next(data.glob(f"**/{COMPETITION}/prepared")))
    at_hand.write_agents(folder / "agents")
    began = time.monotonic()
    history = History(places, folder / "agents", isolation=isolation, own_disk=own_disk)
    try:
        history.play(plan(seed))
        with closing(database.open_for_reading(places.state_dir)) as state:
            problems = broken_invariants(state, places.state_dir, history.model, at_hand)
    except Broken as problem:
        problems = [str(problem)]
    finally:
        history.close()
    if not problems:
        print(f"history {seed} held: {len(history.told)} steps in {time.monotonic() - began:.0f} s")
        return 0
    kept = Path(FOLDER, f"soak-{seed}")
    trees.remove_tree(kept)
    _keep(places, kept)
    print(
        "\n".join(
            ["", *history.told, "", f"What does not hold (the state is kept in {kept}):", *problems, ""]
        )
    )
    return 1


def _keep(places: Places, kept: Path) -> None:
    """Copy what explains a failure: the state, the logs, and the records of each attempt."""
    for pattern in (
        "*",
        "runner/*.log",
        "runs/*/*/*/*/*.json*",
        "runs/*/*/*/*/shim.log",
        "runs/*/*/*/*/output/*",
    ):
        for path in filter(Path.is_file, places.state_dir.glob(pattern)):
            target = kept / path.relative_to(places.state_dir)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


if __name__ == "__main__":
    sys.exit(main())
