import subprocess
import sys
from pathlib import Path

from tests.leftovers import processes_naming, wait_for_none


def test_a_process_that_a_test_left_is_found_and_ended(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(tmp_path / "state")])
    while not processes_naming(tmp_path):  # for a moment after its start the kernel shows no command line
        assert child.poll() is None
    assert [left.pid for left in wait_for_none(tmp_path, patience=0)] == [child.pid]
    assert child.wait(timeout=60) < 0
    assert processes_naming(tmp_path) == []
