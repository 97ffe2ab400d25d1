"""A large table that is streamed takes less than half of the memory that it takes when it is held."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROWS, TOKENS = 2_000_000, 600_000
MEASURED = """
import re, sys
from pathlib import Path
import numpy as np
from competitions.kit import tables
from competitions.kit.tables import plain_rows, reordering, row_file
from competitions.kit.tables.rows import Division
from competitions.kit.splits import Split
def most():  # what the system counts otherwise begins with what the parent had
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
folder, row_file._SMALL = Path(sys.argv[1]), int(sys.argv[2])
row_file._BLOCK = 10_000
plain_rows.PIECE = 1 << 20
reordering._PIECE = 1 << 20
"""
SHUFFLED = """
warm = folder / "warm.csv"
tables.write_csv(tables.read_csv(folder / "small.csv"), warm)
before = most()
path = folder / "large.csv"
rows = row_file.opened(lambda: path.open("rb"), path.stat().st_size, unreadable=lambda why: why)
order = np.random.RandomState(0).permutation(len(rows))
split = Split(order[1000:], order[:1000])
with (folder / f"written-{sys.argv[2]}.csv").open("xb") as stream:
    rows.divide(Division(split), stream, folder)
print(most() - before)
"""
SPOKEN = """
from engine import prepare_competition
def prepared(raw, data):
    prepare_competition(
        "text-normalization-challenge-russian-language", raw=raw, data_dir=data, descriptions="ours",
        edition="corrected", parameters={"test_size": 0.001},
    )
prepared(folder / "small", folder / f"warm-{sys.argv[2]}")
before = most()
prepared(folder / "large", folder / f"written-{sys.argv[2]}")
print(most() - before)
"""


def grown(folder: Path, small: int, program: str = SHUFFLED) -> int:
    command = [sys.executable, "-c", MEASURED + program, str(folder), str(small)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_streaming_takes_less_than_half_of_the_memory(tmp_path: Path) -> None:
    thousand = "".join(f"{{0}}{row:03d},{row / 7},text of row {row:03d},{row}\n" for row in range(1000))
    (tmp_path / "small.csv").write_text("id,number,text,count\n" + thousand.format("k"))
    with (tmp_path / "large.csv").open("w") as stream:
        stream.write("id,number,text,count\n")
        stream.writelines(thousand.format(f"k{block:04d}") for block in range(ROWS // 1000))
    held, streamed = grown(tmp_path, 1 << 40), grown(tmp_path, 0)
    assert streamed < held / 2
    written = [path.read_bytes() for path in sorted(tmp_path.glob("written-*.csv"))]
    assert len(written) == 2
    assert written[0] == written[1]


def test_streaming_sentences_takes_less_than_half_of_the_memory(tmp_path: Path) -> None:
    for name, count in (("small", 1000), ("large", TOKENS)):
        (tmp_path / name).mkdir()
        tokens = (f'{row // 9},{row % 9},"PLAIN","слово{row}","слово{row % 7}"\n' for row in range(count))
        text = '"sentence_id","token_id","class","before","after"\n' + "".join(tokens)
        for table, content in (("train", text), ("test_2", ""), ("sample_submission_2", "")):
            with zipfile.ZipFile(tmp_path / name / f"ru_{table}.csv.zip", "w") as archive:
                archive.writestr(f"ru_{table}.csv", content)
    assert grown(tmp_path, 0, SPOKEN) < grown(tmp_path, 1 << 40, SPOKEN) / 2
