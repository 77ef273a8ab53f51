# SPDX-License-Identifier: GPL-2.0
"""push, against a receiver that reads with the project's own generated classes."""

from __future__ import annotations

import gzip
import http.server
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
    ExportProfilesServiceResponse,
)

import memtoll
from memtoll import push as pushing
from memtoll.export import export
from memtoll.push import PATH, BadEndpoint, PushedBefore, Refused, Rejected, Unanswered, address, push
from memtoll.recording import Recording

import harness
from package import RECORDINGS, Cli

PROTOBUF = "application/x-protobuf"


@dataclass
class Reply:
    """status 0: the connection ends without a word; -1: it stays, and nothing comes until the test is over."""

    status: int = 200
    body: bytes = b""
    type: str = PROTOBUF
    headers: dict[str, str] = field(default_factory=dict)


TAKEN = Reply()


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        packed = self.headers.get("content-encoding") == "gzip"
        return ExportProfilesServiceRequest.FromString(gzip.decompress(self.body) if packed else self.body)


class Receiver:
    """Answers as it is told, one reply after the other, the last one ever after; keeps what came."""

    def __init__(self) -> None:
        self.replies: list[Reply] = [TAKEN]
        self.received: list[Received] = []
        self.over = threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                owner.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.received.append(Received(handler.path, headers, body))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply.status <= 0:
            if reply.status < 0:
                self.over.wait()
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        for name, value in {
            "Content-Type": reply.type,
            "Content-Length": str(len(reply.body)),
            **reply.headers,
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(reply.body)

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pauses of a thousandth, and a state directory of its own."""
    monkeypatch.setattr(pushing, "FIRST_S", 0.001)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


Push = Callable[..., pushing.Pushed]


@pytest.fixture(scope="module")
def heap_blocks(heap_blocks_once: Path) -> Path:
    """The same for all tests: none of them changes it."""
    return heap_blocks_once


@pytest.fixture(scope="module")
def opened(heap_blocks: Path) -> Iterator[Recording]:
    with memtoll.open(heap_blocks) as rec:
        yield rec


@pytest.fixture
def send(opened: Recording, receiver: Receiver) -> Push:
    """push of one recording to the receiver."""
    return lambda endpoint=receiver.url, **options: push(opened, endpoint, **options)


def kept(tmp_path: Path) -> list[Any]:
    return [json.loads(file.read_text()) for file in sorted((tmp_path / "state" / "memtoll" / "pushed").iterdir())]


# ---- what is sent


@pytest.mark.parametrize("compress", [True, False])
def test_what_is_sent_is_what_is_exported(
    heap_blocks: Path, tmp_path: Path, receiver: Receiver, send: Push, compress: bool
) -> None:
    pushed = send(compress=compress, headers={"Authorization": "Bearer x", "X-Scope-OrgID": "1"})
    with memtoll.open(heap_blocks) as rec:
        export(rec, tmp_path / "x.otlp")
    expected = (tmp_path / "x.otlp").read_bytes()
    (got,) = receiver.received
    assert got.message == ExportProfilesServiceRequest.FromString(expected)
    assert got.path == PATH == "/v1development/profiles"
    assert got.headers["content-type"] == PROTOBUF
    assert got.headers.get("content-encoding") == ("gzip" if compress else None)
    assert (got.headers["authorization"], got.headers["x-scope-orgid"]) == ("Bearer x", "1")
    assert got.headers["user-agent"] == f"memtoll/{memtoll.__version__}"
    assert (pushed.profiles, pushed.bytes, pushed.warning, pushed.unanswered) == (3, len(expected), "", 0)
    assert [(each["answered"], each["url"]) for each in kept(tmp_path)] == [(True, receiver.url + PATH)]


def test_addresses(receiver: Receiver, send: Push) -> None:
    assert address("http://host:4318") == address("http://host:4318/") == f"http://host:4318{PATH}"
    assert address("https://host/otlp/x?y=1") == "https://host/otlp/x?y=1"
    send(f"{receiver.url}/other/path")
    assert receiver.received[0].path == "/other/path"


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("", "no address"),
        ("host:4318", "no address"),
        ("ftp://host", "no address"),
        ("http://", "no address"),
        ("http://host:99999", "no address"),
        ("http://host:0", "no address"),
        ("http://ho st", "no address"),
        ("http://host/a\r\nX: y", "no address"),
        ("http://host/\x1b[31m", "no address"),
        ("http://user:password@host", "header"),
        ("http://[::1", "no address"),
    ],
)
def test_what_is_no_address(send: Push, endpoint: str, says: str) -> None:
    with pytest.raises(BadEndpoint, match=says) as raised:
        send(endpoint)
    assert str(raised.value).isprintable() and "password@" not in str(raised.value)


@pytest.mark.parametrize(
    "header",
    [("A B", "x"), ("", "x"), ("X", "secret\r\nY: z"), ("X", "secret\x00"), ("content-type", "x"), ("Host", "x")],
)
def test_what_is_no_header(receiver: Receiver, send: Push, header: tuple[str, str]) -> None:
    with pytest.raises(BadEndpoint) as raised:
        send(headers=dict([header]))
    assert "secret" not in str(raised.value)
    assert receiver.received == []


def test_redacted(heap_blocks: Path, receiver: Receiver) -> None:
    for redact in (False, True):
        with memtoll.open(RECORDINGS / "format-1.memtoll", redact=redact) as rec:
            push(rec, receiver.url)
    plain, redacted = (got.message.SerializeToString() for got in receiver.received)
    secret = re.compile(rb"calloc_loop|demo|x86_64-linux-gnu|--touch|format-1|10485760 1009")
    assert secret.search(plain) and not secret.search(redacted)


# ---- answers


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_tried_again_by_the_protocols_rules(receiver: Receiver, send: Push, status: int) -> None:
    receiver.replies = [Reply(status), Reply(status, headers={"Retry-After": "0"}), TAKEN]
    said: list[str] = []
    pushed = send(said=said.append)
    assert len(receiver.received) == 3
    assert len({got.body for got in receiver.received}) == 1
    assert len(said) == 2 and all(f"status {status}; sent again" in each for each in said)
    assert pushed.unanswered == 0


def test_a_date_to_wait_for(receiver: Receiver, send: Push) -> None:
    receiver.replies = [Reply(503, headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}), TAKEN]
    send()
    assert len(receiver.received) == 2


@pytest.mark.parametrize("after", ["9" * 5000, "Fri, 31 Dec 99999 23:59:59 GMT", "soon", "-1"])
def test_no_time_to_wait_for(receiver: Receiver, send: Push, after: str) -> None:
    """It is waited as where nothing is asked for, and longer than not at all."""
    receiver.replies = [Reply(503, headers={"Retry-After": after}), TAKEN]
    said: list[str] = []
    send(said=said.append)
    assert len(receiver.received) == 2 and len(said) == 1


def test_who_asks_for_no_pause_gets_one(receiver: Receiver, send: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would be asked without end."""
    pauses: list[float] = []
    monkeypatch.setattr(pushing.time, "sleep", pauses.append)
    receiver.replies = [*[Reply(503, headers={"Retry-After": "0"})] * 20, TAKEN]
    send(patience_s=1e300, timeout_s=1e300)
    assert len(pauses) == 20
    assert all(0.5 <= pause / min(pushing.FIRST_S * 2.0 ** min(n, 10), 30) <= 1 for n, pause in enumerate(pauses))


@pytest.mark.parametrize("after", ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_nobody_waits_for_hours(tmp_path: Path, receiver: Receiver, send: Push, after: str) -> None:
    status = Status(message="come back\nlater\x1b[31m").SerializeToString()
    receiver.replies = [Reply(503, status, headers={"Retry-After": after})]
    with pytest.raises(Refused, match=r"status 503: come back later.* \(tries: 1.*--patience") as raised:
        send()
    assert str(raised.value).isprintable()
    assert len(receiver.received) == 1
    assert kept(tmp_path) == []


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 500, 501])
def test_refused(tmp_path: Path, receiver: Receiver, send: Push, status: int) -> None:
    """At once, with the reason; it can be sent again when that is mended."""
    body = Status(message="no \x1b[31msuch\x07 thing").SerializeToString()
    receiver.replies = [Reply(status, body, headers={"Location": f"{receiver.url}/elsewhere"}), TAKEN]
    with pytest.raises(Refused, match=rf"status {status}: no .*such.* thing") as raised:
        send()
    assert str(raised.value).isprintable()
    assert len(receiver.received) == 1
    assert kept(tmp_path) == []
    send()


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(400, b"plain words\nmore", "text/plain; charset=utf-8"), "status 400: plain words more$"),
        (Reply(400, b"<html>", "text/html"), "status 400$"),
        (Reply(400, b"\xff\xff\xff"), "status 400$"),
        (Reply(307, b"", headers={"Location": "/x"}), "redirects are not followed"),
    ],
)
def test_what_a_refusal_says(receiver: Receiver, send: Push, reply: Reply, says: str) -> None:
    receiver.replies = [reply]
    with pytest.raises(Refused, match=says):
        send()


def test_taken_in_part(tmp_path: Path, receiver: Receiver, send: Push) -> None:
    """Which must not be sent again."""
    answer = ExportProfilesServiceResponse()
    answer.partial_success.rejected_profiles = 2
    answer.partial_success.error_message = "too \x1b[31mold"
    receiver.replies = [Reply(body=answer.SerializeToString())]
    with pytest.raises(Rejected, match=r"2 of 3 profiles were rejected: too .*old") as raised:
        send()
    assert str(raised.value).isprintable()
    with pytest.raises(PushedBefore, match="and taken"):
        send()
    assert len(receiver.received) == 1


def test_a_warning(receiver: Receiver, send: Push) -> None:
    answer = ExportProfilesServiceResponse()
    answer.partial_success.error_message = "use the newer one"
    receiver.replies = [Reply(body=answer.SerializeToString())]
    assert send().warning == "use the newer one"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>welcome</html>", type="text/html"),
        Reply(body=b"\xff\xff\xff"),
        Reply(body=b"\x12" + b"x" * (1 << 20)),
        Reply(body=b"{}", headers={"Content-Length": "1000"}),
    ],
)
def test_what_is_no_answer(receiver: Receiver, send: Push, reply: Reply) -> None:
    """A page that says 200 to everything has taken nothing, or who knows."""
    receiver.replies = [reply]
    with pytest.raises(Unanswered):
        send()
    with pytest.raises(PushedBefore, match="no answer came"):
        send()
    assert len(receiver.received) == 1


def test_disconnected(tmp_path: Path, receiver: Receiver, send: Push) -> None:
    """The protocol's clients send again; that it may be there twice is said."""
    receiver.replies = [Reply(0), Reply(503), Reply(0), TAKEN]
    said: list[str] = []
    assert send(said=said.append).unanswered == 2
    assert sum("it may have it" in each for each in said) == 2 and len(said) == 3
    assert len(receiver.received) == 4


def test_disconnected_until_the_end(tmp_path: Path, receiver: Receiver, send: Push) -> None:
    receiver.replies = [Reply(0), Reply(503, headers={"Retry-After": "3600"})]
    with pytest.raises(Unanswered, match="the endpoint may have it"):
        send()
    assert [each["answered"] for each in kept(tmp_path)] == [False]


def test_no_answer_in_time(tmp_path: Path, receiver: Receiver, send: Push) -> None:
    """Nothing is sent again unasked."""
    receiver.replies = [Reply(-1), TAKEN]
    with pytest.raises(Unanswered, match="no answer came"):
        send(timeout_s=0.2)
    # It gave up, however late the receiver is to read it.
    harness.wait_until(lambda: receiver.received, "the message to arrive")
    with pytest.raises(PushedBefore, match="no answer came"):
        send()
    send(again=True)
    assert len(receiver.received) == 2
    assert [each["answered"] for each in kept(tmp_path)] == [True]


@contextmanager
def speaking(first: bytes, over_and_over: bytes) -> Iterator[str]:
    """The address of a server that says something to whoever comes, and then something until he goes away."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def speak() -> None:
        with listener.accept()[0] as connection, suppress(OSError):
            connection.sendall(first)
            while over_and_over and not over.wait(0.01):
                connection.sendall(over_and_over)
            # It is read what he says, so that the end is no reset.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass

    thread = threading.Thread(target=speak)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join()
        listener.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"


@pytest.mark.parametrize(
    ("first", "over_and_over"),
    [
        (HEAD + b"Content-Length: 99999\r\n\r\n", b"x"),
        (HEAD + b"\r\n", b"x"),
        (HEAD + b"X: ", b"x"),
        (b"HTTP/1.1 2", b"0"),
    ],
)
def test_an_answer_that_never_ends(tmp_path: Path, send: Push, first: bytes, over_and_over: bytes) -> None:
    """Of which something comes in time, over and over: of its body, or of what is before it."""
    with speaking(first, over_and_over) as url, pytest.raises(Unanswered, match=r"in 0\.3 s"):
        send(url, timeout_s=0.3)
    assert [each["answered"] for each in kept(tmp_path)] == [False]


def test_what_is_no_http(tmp_path: Path, send: Push) -> None:
    """Such as what a port of gRPC says: to send it again would help nobody."""
    with (
        speaking(b"\x00\x00\x06\x04\x00\x1b[31m\r\n", b"") as url,
        pytest.raises(Unanswered, match="no HTTP") as raised,
    ):
        send(url)
    assert str(raised.value).isprintable()
    assert [each["answered"] for each in kept(tmp_path)] == [False]


def test_no_handshake_in_time(tmp_path: Path, send: Push) -> None:
    """Nothing was sent before there is a connection."""
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Refused, match="It has nothing of it"):
            send(url, timeout_s=0.1, patience_s=0.01, said=said.append)
    assert kept(tmp_path) == [] and not any("may have it" in each for each in said)


@contextmanager
def unheard() -> Iterator[str]:
    """An address where nobody listens, nor anybody can."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_nobody_listens(tmp_path: Path, send: Push) -> None:
    with unheard() as url:
        with pytest.raises(Refused, match=r"not reached \(Connection refused\) \(tries: \d+; .* It has nothing of it$"):
            send(url, patience_s=0.01)
        assert kept(tmp_path) == []

        def interrupt(_: str) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            send(url, said=interrupt)
    assert kept(tmp_path) == []


def test_a_name_that_is_none(tmp_path: Path, send: Push) -> None:
    """Which only shows when it is asked for; at once, and not as what may have been taken."""
    with pytest.raises(Refused, match="nothing was sent"):
        send("http://a..b:4318")
    assert kept(tmp_path) == []


def test_no_plain_server_for_https(tmp_path: Path, receiver: Receiver, send: Push) -> None:
    """Retrying cannot help; nothing was sent."""
    with pytest.raises(Refused, match="nothing was sent"):
        send(receiver.url.replace("http:", "https:"))
    assert receiver.received == [] and kept(tmp_path) == []


def test_too_large(receiver: Receiver, send: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "REQUEST_BYTES", 1000)
    with pytest.raises(Refused, match="--toll"):
        send()
    assert receiver.received == []


# ---- nothing twice


def test_the_same_twice(tmp_path: Path, heap_blocks: Path, receiver: Receiver, send: Push) -> None:
    send()
    with pytest.raises(PushedBefore, match=r"UTC, and taken; again=True"):
        send()
    assert len(receiver.received) == 1
    # Something else, and somewhere else, is not the same.
    send(toll="zero.libc")
    send(f"{receiver.url}/elsewhere")
    send(again=True)
    assert len(receiver.received) == 4
    ids = [{bytes(profile.profile_id) for profile in got.message.resource_profiles[0].scope_profiles[0].profiles}
           for got in receiver.received]  # fmt: skip
    assert ids[0] == ids[3] == ids[2] and not ids[0] & ids[1]
    for file in (tmp_path / "state" / "memtoll" / "pushed").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_what_is_kept_for_too_long(tmp_path: Path, receiver: Receiver, send: Push) -> None:
    send()
    (file,) = (tmp_path / "state" / "memtoll" / "pushed").iterdir()
    os.utime(file, (1, 1))
    send()
    assert len(receiver.received) == 2


@pytest.mark.parametrize("reply", [Reply(400), Reply(503, headers={"Retry-After": "3600"}), None])
def test_what_is_there_stays_known(tmp_path: Path, receiver: Receiver, send: Push, reply: Reply | None) -> None:
    """Also where it is refused, or not reached, when it is sent there again."""
    send()
    if reply:
        receiver.replies = [reply]
    with pytest.raises(Refused) if reply else nullcontext():
        send(again=True)
    receiver.replies = [TAKEN]
    with pytest.raises(PushedBefore, match="and taken"):
        send()
    assert len(receiver.received) == 2


def test_what_there_is_not(send: Push) -> None:
    for wrong in ({"toll": "zero"}, {"owner": "both"}):
        with pytest.raises(memtoll.export.BadExport, match="there is no"):
            send(**wrong)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"answered": true, "time": "x", "url": 1}'])
def test_what_is_kept_is_damaged(tmp_path: Path, receiver: Receiver, send: Push, content: str) -> None:
    send()
    (file,) = (tmp_path / "state" / "memtoll" / "pushed").iterdir()
    file.write_text(content)
    with pytest.raises(PushedBefore):
        send()


@pytest.mark.parametrize("homeless", [False, True])
def test_where_nothing_can_be_kept(
    tmp_path: Path, receiver: Receiver, send: Push, monkeypatch: pytest.MonkeyPatch, homeless: bool
) -> None:
    """A user of a container has no directory there may be."""
    if homeless:
        monkeypatch.setenv("XDG_STATE_HOME", "relative")
        monkeypatch.delenv("HOME")
        monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    (tmp_path / "state").write_text("a file")
    said: list[str] = []
    send(said=said.append)
    assert len(said) == 1 and "a second time would not be noticed" in said[0]
    assert ("HOME: no home" in said[0]) == homeless
    assert len(receiver.received) == 1
    assert not Path("relative").exists()


# ---- command line


def test_command_line(cli: Cli, heap_blocks: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("push", heap_blocks, "-e", receiver.url, "--header", "x-one=a=b", "--redact", "--toll", "zero.libc")
    with monkeypatch.context() as variables:
        variables.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20secret, X-One=over")
        done = cli(*words)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert re.fullmatch(rf"memtoll: pushed to {receiver.url}{PATH}: 3 profiles, [\d,]+ bytes\n", done.stderr)
    (got,) = receiver.received
    assert (got.headers["authorization"], got.headers["x-one"]) == ("Bearer secret", "a=b")
    assert b"/src/" not in got.message.SerializeToString()
    again = cli(*words)
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1 and "--again" in again.stderr
    receiver.replies = [Reply(503, headers={"Retry-After": "0"}), Reply(400, b"no", "text/plain")]
    refused = cli(*words, "--again")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == f"memtoll: {receiver.url}{PATH}: refused with status 400: no"
    assert len(refused.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["-e", "nonsense"],
        ["-e", "http://127.0.0.1:1", "--header", "x"],
        ["-e", "http://127.0.0.1:1", "--timeout", "0"],
        ["-e", "http://127.0.0.1:1", "--header", "Host=x"],
        ["-e", "http://127.0.0.1:1", "--compression", "zip"],
    ],
)
def test_usage(cli: Cli, heap_blocks: Path, words: list[str]) -> None:
    done = cli("push", heap_blocks, *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("memtoll: push: ") and done.stderr.count("\n") == 1
