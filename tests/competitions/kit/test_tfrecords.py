"""TFRecord files are walked with their checks, and thinned out without decoding anything."""

import struct
from pathlib import Path

import pytest

from mlebench_console.competitions.kit.formats import tfrecords
from mlebench_console.foundation.problems import DataProblem


def field(number: int, content: bytes) -> bytes:
    size, head = len(content), bytearray([number << 3 | 2])
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + content


def texts_feature(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def number_feature(value: int) -> bytes:
    return field(3, field(1, bytes([value])))


def example(**features: bytes) -> bytes:
    entries = (field(1, field(1, name.encode()) + field(2, value)) for name, value in features.items())
    return field(1, b"".join(entries))


PHOTOS = [
    example(
        target=number_feature(1),
        image_name=texts_feature(b"a.jpg", b"other"),
        image=texts_feature(b"x" * 300),
    ),
    example(image_name=texts_feature("é.jpg".encode()), target=number_feature(0), image=texts_feature(b"")),
]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    path = tmp_path / "photos.tfrec"
    tfrecords.write(path, PHOTOS)
    return path


def test_records_are_framed_with_masked_castagnoli_checksums(tmp_path: Path) -> None:
    path = tmp_path / "one.tfrec"
    tfrecords.write(path, [b"123456789"])
    mask = (0xE3069283 >> 15 | 0xE3069283 << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF
    assert path.read_bytes()[12:] == b"123456789" + struct.pack("<I", mask)


def test_records_come_back_as_written(photos: Path) -> None:
    assert list(tfrecords.records(photos)) == PHOTOS
    # the frame of a file that TensorFlow wrote: length 8, its check, 8 bytes, their check
    assert photos.read_bytes()[:8] == struct.pack("<Q", len(PHOTOS[0]))


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "empty.tfrec"
    path.touch()
    assert list(tfrecords.records(path)) == []


def test_the_first_value_of_a_text_feature_is_read(photos: Path) -> None:
    assert tfrecords.texts(photos, "image_name") == ["a.jpg", "é.jpg"]


def test_a_record_without_the_feature_is_told(photos: Path) -> None:
    with pytest.raises(DataProblem, match=r"photos\.tfrec: record 1 cannot be read"):
        tfrecords.texts(photos, "patient")
    with pytest.raises(DataProblem, match="record 1 cannot be read"):
        tfrecords.texts(photos, "target")


def test_thinned_records_keep_only_the_named_features(photos: Path, tmp_path: Path) -> None:
    thin = tmp_path / "thin.tfrec"
    tfrecords.write_filtered(photos, thin, ("image", "image_name"))
    assert list(tfrecords.records(thin)) == [
        example(image_name=texts_feature(b"a.jpg", b"other"), image=texts_feature(b"x" * 300)),
        example(image_name=texts_feature("é.jpg".encode()), image=texts_feature(b"")),
    ]


@pytest.mark.parametrize("cut", [1, 5, 300])
def test_a_file_cut_short_is_refused_by_name(photos: Path, cut: int) -> None:
    content = photos.read_bytes()
    photos.write_bytes(content[:-cut])
    with pytest.raises(DataProblem, match=r"photos\.tfrec is damaged"):
        list(tfrecords.records(photos))


@pytest.mark.parametrize("place", [0, 9, 40, -1])
def test_a_changed_byte_is_noticed(photos: Path, place: int) -> None:
    content = bytearray(photos.read_bytes())
    content[place] ^= 1
    photos.write_bytes(content)
    with pytest.raises(DataProblem, match=r"photos\.tfrec is damaged"):
        list(tfrecords.records(photos))


@pytest.mark.parametrize("junk", [b"\x0a\xff", b"\x0f", b"\x0a\x05ab", b"\xff" * 20])
def test_a_record_that_is_no_example_is_refused(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "junk.tfrec"
    tfrecords.write(path, [junk])
    with pytest.raises(DataProblem, match="cannot be read"):
        tfrecords.texts(path, "image_name")
    with pytest.raises(DataProblem, match="cannot be read"):
        tfrecords.write_filtered(path, tmp_path / "thin.tfrec", ("image",))
