"""TensorFlow Speech Recognition: a split of spoken words, scored by accuracy."""

from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing, splits
from mlebench_console.competitions.kit.archives import sevenzip
from mlebench_console.competitions.kit.splits import Split, duplicates
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawPath
from mlebench_console.competitions.task import Grading, Preparation

from . import sounds

NOISE = "_background_noise_"
COMMANDS = {"yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"}

Clips = list[PurePosixPath]


def prepare(job: Preparation) -> None:
    """Split the recordings; in edition corrected no speaker is in both parts and there are twelve labels."""
    source = job.source("train.7z")
    clips = _clips(job, source)
    split = _by_speaker(job, clips) if job.corrected else _plain(job, len(clips))
    taken = {str(clips[place]): job.public / clips[place] for place in split.train}
    test = [clips[place] for place in split.test]
    if job.corrected:
        held_out = {clip: job.scratch / clip for clip in test}
        sevenzip.extract_as(job, source, taken | {str(clip): path for clip, path in held_out.items()})
        labels = _place_with_answers(job, held_out)
    else:
        held_out = {clip: job.public / _name(number) for number, clip in enumerate(test)}
        sevenzip.extract_as(job, source, taken | {str(clip): path for clip, path in held_out.items()})
        labels = [clip.parent.name for clip in test]
    names = [Path(_name(number)).name for number in range(len(labels))]
    answers = pd.DataFrame({"fname": names, "label": labels})
    labelled_table.write_answers(job, answers, answers.assign(label="silence"))


def _clips(job: Preparation, source: RawPath) -> Clips:
    found = [PurePosixPath(name) for name in sevenzip.files_in(source)]
    clips = [path for path in found if path.suffix == ".wav" and path.is_relative_to("train/audio")]
    if not clips:
        raise job.unexpected(source, "it contains no train/audio/*/*.wav")
    return sorted(clips, key=lambda clip: f"{clip.parent.name}_{clip.name}")


def _name(number: int) -> str:
    return f"test/audio/clip_{number:08d}.wav"


def _plain(job: Preparation, count: int) -> Split:
    return splits.by_row(job, count)


def _by_speaker(job: Preparation, clips: Clips) -> Split:
    """Hold out whole speakers, and whole recordings of noise if there are several."""
    is_noise = np.array([clip.parent.name == NOISE for clip in clips])
    words, noise = np.flatnonzero(~is_noise), np.flatnonzero(is_noise)
    speakers = [clips[place].name.partition("_")[0] for place in words]
    test = words[splits.by_group(job, speakers).test]
    if len(noise) > 1:
        test = np.append(test, noise[_plain(job, len(noise)).test])
    return Split(np.setdiff1d(np.arange(len(clips)), test), test)


def _place_with_answers(job: Preparation, held_out: dict[PurePosixPath, Path]) -> list[str]:
    """Place the test clips, with noise cut into seconds, in the order of a digest, and return their labels."""
    found: list[tuple[Path, str]] = []
    for clip, path in held_out.items():
        word = clip.parent.name
        if word == NOISE:
            found += [(piece, "silence") for piece in sounds.cut(path, job.scratch / "seconds")]
        else:
            found.append((path, word if word in COMMANDS else "unknown"))
    order = duplicates.ordered_by_content(job, [path for path, _ in found])
    pairs = [(found[place][0], job.public / _name(number)) for number, place in enumerate(order)]
    placing.move(job, pairs, "test/audio")
    return [found[place][1] for place in order]


def grade(case: Grading) -> float:
    """Return the share of clips whose word is predicted exactly."""
    rows = checks.paired_rows(case, "fname", "label")
    predicted = np.array(checks.texts(case.submission, "label"), dtype=object)[rows]
    return metrics.accuracy(case.answers["label"].to_numpy(dtype=object), predicted)
