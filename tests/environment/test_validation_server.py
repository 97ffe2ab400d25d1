"""The server answers agents as MLE-bench's does, tells form alone, and bears clients that mean no good."""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from mlebench_console import environment
from mlebench_console.environment.validation_server.server import (
    RateLimit,
    ValidationService,
    Validity,
    check_form,
    make_server,
)
from mlebench_console.foundation.workers import JobLimits
from tests.engine.harness import eventually

SCRIPT = Path(environment.__path__[0]) / "validate_submission.sh"


def valid_when_it_begins_with_id(file: Path) -> Validity:
    good = file.read_bytes().startswith(b"id")
    return good, "The submission is valid." if good else "The column id is missing."


@contextmanager
def serving(service: ValidationService, address: tuple[str, int] | Path = ("127.0.0.1", 0)) -> Iterator[int]:
    with make_server(service, address=address) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield 0 if isinstance(address, Path) else server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def service_for(
    tmp_path: Path,
    *,
    check: Callable[[Path], Validity] = valid_when_it_begins_with_id,
    burst: int = 100,
    most_record_bytes: int = 1 << 20,
    max_bytes: int = 1 << 20,
    idle_seconds: float = 30.0,
    upload_seconds: float = 60.0,
) -> ValidationService:
    return ValidationService(
        check=check,
        record=tmp_path / "validations.jsonl",
        uploads=tmp_path / "uploads",
        rate=RateLimit(burst, 10),
        most_record_bytes=most_record_bytes,
        max_bytes=max_bytes,
        idle_seconds=idle_seconds,
        upload_seconds=upload_seconds,
    )


def form(content: bytes) -> bytes:
    head = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    return head + content + b"\r\n--B--\r\n"


def ask(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, str]]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        headers = {"Content-Type": "multipart/form-data; boundary=B"} if body is not None else {}
        client.request(method, path, body, headers)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()


def test_health_and_validate_answer_as_agents_expect(tmp_path: Path) -> None:
    with serving(service_for(tmp_path)) as port:
        assert ask(port, "GET", "/health") == (200, {"status": "running"})
        assert ask(port, "POST", "/validate", form(b"id,x\n")) == (
            200,
            {"result": "The submission is valid."},
        )
        assert ask(port, "POST", "/validate", form(b"x\n")) == (200, {"result": "The column id is missing."})


def test_each_check_is_recorded_without_content(tmp_path: Path) -> None:
    with serving(service_for(tmp_path)) as port:
        ask(port, "POST", "/validate", form(b"id,x\n"))
        ask(port, "POST", "/validate", form(b"secret\n"))
    lines = [json.loads(line) for line in (tmp_path / "validations.jsonl").read_text().splitlines()]
    assert [(line["bytes"], line["valid"]) for line in lines] == [(5, True), (7, False)]
    assert [line["sha256"] for line in lines] == [
        hashlib.sha256(content).hexdigest() for content in (b"id,x\n", b"secret\n")
    ]
    assert [line["message"] for line in lines] == ["The submission is valid.", "The column id is missing."]
    assert all(set(line) == {"time", "sha256", "bytes", "valid", "message"} for line in lines)


def test_the_record_of_checks_is_bounded(tmp_path: Path) -> None:
    with serving(service_for(tmp_path, most_record_bytes=300)) as port:
        for _ in range(9):
            assert ask(port, "POST", "/validate", form(b"id,x\n"))[0] == 200
    assert len((tmp_path / "validations.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.parametrize("installed", ["curl", "python"])
@pytest.mark.parametrize("unix", [True, False])
def test_the_validation_script_gets_the_answer(tmp_path: Path, installed: str, unix: bool) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "curl" if installed == "curl" else "python3"):
        target = (
            sys.executable
            if name == "python3"
            else subprocess.check_output(["which", name], text=True).strip()
        )
        (programs / name).symlink_to(target)
    submission = tmp_path / "my; submission,1.csv"
    submission.write_bytes(b"id,x\n" + b"1,2\n" * 100_000)
    address: tuple[str, int] | Path = tmp_path / "v.sock" if unix else ("127.0.0.1", 0)
    with serving(service_for(tmp_path), address) as port:
        where = (
            {"VALIDATION_SOCKET": str(address)} if unix else {"VALIDATION_URL": f"http://127.0.0.1:{port}"}
        )
        told = subprocess.run(
            [str(SCRIPT), str(submission)],
            env={"PATH": str(programs), **where},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (told.returncode, told.stderr) == (0, "")
    assert json.loads(told.stdout) == {"result": "The submission is valid."}
    assert json.loads((tmp_path / "validations.jsonl").read_text())["bytes"] == submission.stat().st_size


def test_the_validation_script_says_when_nobody_answers(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id\n")
    told = subprocess.run(
        [str(SCRIPT), str(file)],
        env={**os.environ, "VALIDATION_SOCKET": str(tmp_path / "none.sock")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 1
    assert "did not answer" in told.stderr


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/validate", None, 405),
        ("GET", "/private/answers.csv", None, 404),
        ("POST", "/", b"", 404),
        ("DELETE", "/validate", None, 501),
        ("POST", "/validate", b"no form", 400),
        ("POST", "/validate", b'--B\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--B--\r\n', 400),
    ],
)
def test_wrong_requests_get_one_clear_line(
    tmp_path: Path, method: str, path: str, body: bytes | None, status: int
) -> None:
    with serving(service_for(tmp_path)) as port:
        got, answer = ask(port, method, path, body)
        assert got == status
        assert set(answer) == {"error"}
        assert ask(port, "GET", "/health")[0] == 200
    assert not (tmp_path / "validations.jsonl").exists()


def test_an_upload_that_is_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    head = (
        b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\n"
        b"Content-Length: 99999999999\r\n"
    )
    with serving(service_for(tmp_path)) as port:
        expecting = send_and_listen(port, head + b"Expect: 100-continue\r\n\r\n")
        assert expecting.startswith(b"HTTP/1.1 413")
        assert b"at most 1,048,576 bytes" in expecting
        assert send_and_listen(port, head + b"\r\n" + b"x" * 100_000).startswith(b"HTTP/1.1 413")


def send_and_listen(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
        return answer


@pytest.mark.parametrize("length", [b"", b"Content-Length: -1\r\n", b"Content-Length: \xb2\r\n"])
def test_an_upload_without_a_length_is_refused(tmp_path: Path, length: bytes) -> None:
    request = b"POST /validate HTTP/1.1\r\nHost: x\r\n" + length + b"\r\n"
    with serving(service_for(tmp_path)) as port:
        assert send_and_listen(port, request).startswith(b"HTTP/1.1 411")


def test_a_client_that_falls_silent_does_not_hold_others_up(tmp_path: Path) -> None:
    with (
        serving(service_for(tmp_path, idle_seconds=0.3)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as silent,
    ):
        silent.sendall(b"POST /validate HTTP/1.1\r\nContent-Le")
        assert ask(port, "POST", "/validate", form(b"id\n"))[0] == 200
        assert silent.recv(100) == b""


def test_a_client_that_drips_is_stopped(tmp_path: Path) -> None:
    service = service_for(tmp_path, upload_seconds=-1)
    with serving(service) as port:
        status, answer = ask(port, "POST", "/validate", form(b"id\n"))
    assert (status, answer) == (400, {"error": "The upload took too long."})


def test_a_full_disk_is_told_and_the_server_goes_on(tmp_path: Path) -> None:
    def full(_file: Path) -> Validity:
        raise OSError(errno.ENOSPC, "No space left on device")

    with serving(service_for(tmp_path, check=full)) as port:
        status, answer = ask(port, "POST", "/validate", form(b"id\n"))
        assert (status, answer) == (507, {"error": "There is no room for the upload; try again later."})
        assert ask(port, "GET", "/health")[0] == 200


def test_a_client_that_leaves_in_the_middle_leaves_no_trace(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    head = b"POST /validate HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 900\r\n\r\n"
    with serving(service_for(tmp_path)) as port:
        for sent in (b"GET", head, head + form(b"id")[:30]):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(sent)
        assert ask(port, "POST", "/validate", form(b"id\n"))[0] == 200
    assert capfd.readouterr().err == ""


def test_asking_too_often_is_told_how_long_to_wait(tmp_path: Path) -> None:
    with serving(service_for(tmp_path, burst=2)) as port:
        answers = [ask(port, "POST", "/validate", form(b"id\n")) for _ in range(3)]
        assert [status for status, _ in answers] == [200, 200, 429]
        assert answers[-1][1] == {"error": "Too many validations; try again in 10 s."}
        (tmp_path / "s.csv").write_text("id\n")
        told = subprocess.run(
            [SCRIPT, tmp_path / "s.csv"],
            env={**os.environ, "VALIDATION_URL": f"http://127.0.0.1:{port}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "Too many validations; try again in" in told.stdout


def test_calls_come_back_with_time() -> None:
    rate = RateLimit(6, 10)
    assert [rate.wait_seconds(0) for _ in range(6)] == [0] * 6
    assert rate.wait_seconds(0) == pytest.approx(10)
    assert rate.wait_seconds(4) == pytest.approx(6)
    assert rate.wait_seconds(10) == 0


def test_checks_do_not_share_files(tmp_path: Path) -> None:
    seen: set[Path] = set()

    def remember(file: Path) -> Validity:
        seen.add(file)
        return True, file.read_text()

    def send(number: int) -> None:
        answers[number] = ask(port, "POST", "/validate", form(b"%d" % number))[1]["result"]

    answers: dict[int, str] = {}
    with serving(service_for(tmp_path, check=remember)) as port:
        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {number: str(number) for number in range(8)}
    assert len(seen) == 8
    assert not any(path.exists() for path in seen)


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    folder = tmp_path / "prepared"
    for part in ("public", "private"):
        (folder / part).mkdir(parents=True)
    (folder / "public" / "sample_submission.csv").write_text(
        "PassengerId,Transported\n1_01,False\n2_01,False\n"
    )
    (folder / "private" / "test.csv").write_text("PassengerId,Transported\n1_01,True\n2_01,False\n")
    return folder


def test_a_real_check_tells_form_and_never_the_score(tmp_path: Path, prepared: Path) -> None:
    check = partial(check_form, "spaceship-titanic", "v1", prepared)
    file = tmp_path / "submission.csv"
    messages = set()
    for guess in ("True", "False"):
        file.write_text(f"PassengerId,Transported\n1_01,{guess}\n2_01,{guess}\n")
        is_valid, message = check(file)
        assert is_valid is True
        messages.add(message)
        file.write_text("PassengerId,Transported\n1_01,True\n2_01,False\n")
        messages.add(check(file)[1])
    assert len(messages) == 1
    file.write_text("PassengerId\n1_01\n2_01\n")
    is_valid, message = check(file)
    assert is_valid is False
    assert "Transported" in message


def test_a_machine_without_memory_for_any_check_harms_no_server_and_no_submission(
    tmp_path: Path, prepared: Path
) -> None:
    file = tmp_path / "submission.csv"
    file.write_text("PassengerId,Transported\n1_01,True\n2_01,False\n")
    told = check_form("spaceship-titanic", "v1", prepared, file, JobLimits(memory_bytes=48 << 20))
    assert told[0] is None


def test_a_dataset_that_is_gone_is_not_held_against_a_submission(tmp_path: Path) -> None:
    assert check_form("no-such-competition", "v1", tmp_path, tmp_path / "s.csv")[0] is None


def command_of_a_server(folder: Path, prepared: Path) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "mlebench_console.environment.validation_server",
        "--competition",
        "spaceship-titanic",
    ]
    command += ["--prepared", str(prepared), "--record", str(folder / "validations.jsonl")]
    return [*command, "--uploads", str(folder / "uploads"), "--socket", str(folder / "v.sock")]


def test_what_a_killed_server_was_sent_lies_with_its_attempt_until_the_next_one_starts(
    tmp_path: Path, prepared: Path
) -> None:
    command, address = command_of_a_server(tmp_path, prepared), tmp_path / "v.sock"
    head = b"POST /validate HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 9000\r\n\r\n"
    with subprocess.Popen(command) as server:
        try:
            with connected(address, server) as client:
                client.sendall(head + form(b"x" * 5000)[:-20])
                assert eventually(lambda: [path.name for path in (tmp_path / "uploads").rglob("*.csv")])
                server.kill()  # before the client goes, at which it would remove the upload
                server.wait()
        finally:
            server.kill()
    assert list((tmp_path / "uploads").rglob("*.csv"))
    address.unlink()
    with subprocess.Popen(command) as server:
        try:
            with connected(address, server):
                assert list((tmp_path / "uploads").iterdir()) == []
        finally:
            server.terminate()


def test_the_listening_process_stays_small_and_stops_when_told(tmp_path: Path, prepared: Path) -> None:
    address = tmp_path / "v.sock"
    with subprocess.Popen(command_of_a_server(tmp_path, prepared)) as server:
        try:
            with connected(address, server) as client:
                client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                assert client.makefile("rb").read().endswith(b'{"status": "running"}\n')
            status = Path(f"/proc/{server.pid}/status").read_text()
            maps = Path(f"/proc/{server.pid}/maps").read_text()
            resident = int(status.split("VmRSS:")[1].split()[0])
            assert "pandas" not in maps and "numpy" not in maps
            assert resident < 40_000
        finally:
            server.terminate()
        assert server.wait(timeout=30) == 0


@contextmanager
def connected(address: Path, server: subprocess.Popen[bytes]) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(30)
        while True:
            try:
                client.connect(str(address))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                assert server.poll() is None
                threading.Event().wait(0.02)
        yield client
