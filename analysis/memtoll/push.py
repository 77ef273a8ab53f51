# SPDX-License-Identifier: GPL-2.0
"""Sends a recording's profiles to an endpoint of OpenTelemetry, OTLP over HTTP with protobuf.

    memtoll.push.push(rec, "http://collector:4318")

Sent again, by the protocol's rules, is what the endpoint did not take (it was not reached, or answered 429, 502, 503 or
504) and what it may have taken: it disconnected without an answer. That is said. Where no answer came in time nothing
is sent again unasked, and neither is what was sent there before. Ids of the profiles are made of what is in them, so
that a receiver can tell.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from .errors import Error
from .export import check_choice
from .export.about import about
from .export.otlp import data, messages
from .export.samples import OWNERS
from .extras import need
from .opening import line, understanding
from .version import __version__

if TYPE_CHECKING:
    from .recording import Recording

# Where the protocol has its profiles when an address names a server only.
PATH: Final = "/v1development/profiles"
TYPE: Final = "application/x-protobuf"
RETRIED: Final = frozenset((429, 502, 503, 504))
FIRST_S, LONGEST_S = 1.0, 30.0
# Of a try: longer ones are more than a socket or a timer takes.
TRY_S: Final = 86400.0
# What the protocol recommends for a request, and less than it allows for an answer.
REQUEST_BYTES: Final = 64 << 20
ANSWER_BYTES: Final = 64 << 10
OURS: Final = frozenset(
    ("connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding", "user-agent")
)
HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
# How long it is known what was pushed.
KEPT_S: Final = 30 * 86400


class BadEndpoint(Error):
    """The address or a header is none; the message says what is wrong with it."""


class Refused(Error):
    """The endpoint was not reached, or does not take it. It has nothing of it."""


class Unanswered(Error):
    """It was sent, and what became of it is not known."""


class PushedBefore(Error):
    """The same was sent to the same endpoint, which has it or may have it."""


class Unreached(Exception):
    """No connection: nothing was sent."""


class Disconnected(Exception):
    """The connection ended without an answer."""


class Rejected(Error):
    """The endpoint took it, but not all of it."""


@dataclass(frozen=True)
class Pushed:
    """url: where it is now; profiles, bytes: how much, before it was compressed; warning: what the endpoint said.

    unanswered: how often it was sent before and no answer came, so that it may be there more than once.
    """

    url: str
    profiles: int
    bytes: int
    warning: str
    unanswered: int


@dataclass(frozen=True)
class Answer:
    """status: of HTTP; type: of the body; body: its first bytes; retry_after: the header, '' none."""

    status: int
    type: str
    body: bytes
    retry_after: str


def _state() -> Path:
    """The user's directory for what is kept between runs. OSError: there is none."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        return given
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError:
        raise OSError(errno.ENOENT, "no home directory is known", "HOME") from None


class Known:
    """That a message was sent to an address: a file in the user's state directory, there before it is sent."""

    def __init__(self, url: str, body: bytes, recording: str) -> None:
        self.name = sha256(url.encode() + b"\0" + body).hexdigest()[:32]
        self.facts: dict[str, Any] = {"url": url, "recording": recording, "time": round(time.time())}
        self.file: Path | None = None
        self.older = False

    def claim(self, again: bool) -> None:
        """PushedBefore: it was sent already. OSError: that cannot be kept."""
        directory = _state() / "memtoll" / "pushed"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in directory.iterdir():
            with suppress(OSError):
                if old.stat().st_mtime < time.time() - KEPT_S:
                    old.unlink()
        file = directory / self.name
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if not again:
                raise PushedBefore(self._before(file)) from None
            # What it says is true whatever becomes of this time.
            self.older = True
            os.utime(file)
        else:
            with os.fdopen(descriptor, "w") as opened:
                json.dump(self.facts | {"answered": False}, opened)
        self.file = file

    def _before(self, file: Path) -> str:
        try:
            facts = json.loads(file.read_text())
            answered = bool(facts["answered"])
            when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(int(facts["time"])))
        except (OSError, ValueError, LookupError, TypeError):
            answered, when = False, "before"
        became = "and taken" if answered else "and no answer came: it may be there, or be on its way"
        return f"{self.facts['url']}: the same was sent there {when}, {became}; again=True (--again) sends it again"

    def answered(self) -> None:
        if self.file:
            with suppress(OSError):
                self.file.write_text(json.dumps(self.facts | {"answered": True}))

    def forget(self) -> None:
        """The endpoint has nothing of what was sent this time."""
        if self.file and not self.older:
            with suppress(OSError):
                self.file.unlink()


def address(endpoint: str) -> str:
    """What an endpoint means: one that names a server only gets the protocol's path. BadEndpoint: it is no address."""
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError as error:
        raise BadEndpoint(f"{line(endpoint)!r} is no address: {line(error)}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not re.fullmatch(r"[\x21-\x7e]+", endpoint):
        raise BadEndpoint(f"{line(endpoint)!r} is no address: http://HOST:4318 or https://HOST/PATH is one")
    if parts.username is not None or parts.password is not None:
        raise BadEndpoint("an address with a password would be shown and stored: put that in a header")
    if port == 0 or parts.fragment:
        raise BadEndpoint(f"{line(endpoint)!r} is no address that can be asked")
    return parts._replace(path=PATH).geturl() if parts.path in ("", "/") else endpoint


def headers_of(given: Mapping[str, str], compressed: bool) -> dict[str, str]:
    """All headers of a request. BadEndpoint: one is none, or is the protocol's own."""
    for name, value in given.items():
        if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            # Its value is nobody else's business.
            raise BadEndpoint(f"header {line(name)!r}: its name or its value has characters that no header may have")
        if name.lower() in OURS:
            raise BadEndpoint(f"header {name} is the protocol's own, it cannot be given")
    made = {"Content-Type": TYPE, "User-Agent": f"memtoll/{__version__}"}
    return {**given, **made, **({"Content-Encoding": "gzip"} if compressed else {})}


class Link:
    """The connection of a try, which ends with the try's time: what comes bit by bit would never be late otherwise.

    made: there is one, and what is sent may arrive; late: its time is over.
    """

    def __init__(self, timeout_s: float) -> None:
        self.end_s = time.monotonic() + timeout_s
        self.made = self.late = False
        self.timer: threading.Timer | None = None

    def watched(self, kind: Any) -> Any:
        """A class of connections as kind is, which are this link's."""
        link = self

        class Watched(kind):
            def connect(self) -> None:
                super().connect()
                link.begin(self.sock)

        return Watched

    def begin(self, sock: socket.socket) -> None:
        self.made = True
        self.timer = threading.Timer(max(self.end_s - time.monotonic(), 0), self._over, (sock,))
        self.timer.daemon = True
        self.timer.start()

    def _over(self, sock: socket.socket) -> None:
        self.late = True
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        if self.timer:
            self.timer.cancel()


class Sender:
    """Sends one message until it is taken, refused, or its time is over. sent: there was a connection to send it by."""

    def __init__(self, url: str, headers: dict[str, str], timeout_s: float, patience_s: float) -> None:
        self.http = need("otlp", "urllib3")
        self.url, self.headers, self.timeout_s = url, headers, min(timeout_s, TRY_S)
        self.until_s = time.monotonic() + patience_s
        self.sent = False

    def once(self, body: bytes) -> Answer:
        """One try. Unreached, Disconnected, Unanswered, Refused: what became of it instead."""
        errors = self.http.exceptions
        link = Link(self.timeout_s)
        with self.http.PoolManager(num_pools=1) as pools:
            try:
                pool = pools.connection_from_url(self.url)
                pool.ConnectionCls = link.watched(pool.ConnectionCls)
                response = pools.request(
                    "POST", self.url, body=body, headers=self.headers, timeout=self.http.Timeout(total=self.timeout_s),
                    retries=False, redirect=False, preload_content=False, decode_content=False,
                    enforce_content_length=True,
                )  # fmt: skip
                return self._answer(response, link)
            except errors.LocationValueError as error:
                raise Refused(f"{self.url}: {_why(error)}; nothing was sent") from error
            except (errors.HTTPError, OSError) as error:
                raise self._failed(link, error) from error
            finally:
                link.end()
                self.sent |= link.made

    def _failed(self, link: Link, error: BaseException) -> Exception:
        """What a try is that ended before an answer."""
        if not link.made:
            if isinstance(error, self.http.exceptions.SSLError):
                return Refused(f"{self.url}: {_why(error)}; nothing was sent")
            return Unreached(_why(error))
        if link.late or isinstance(error, self.http.exceptions.TimeoutError):
            return self._unanswered(f"in {self.timeout_s:g} s")
        if any(isinstance(each, HTTPException) and not isinstance(each, OSError) for each in _causes(error)):
            return self._unanswered(f"what came is no HTTP: {_why(error)}")
        return Disconnected(_why(error))

    def _answer(self, response: Any, link: Link) -> Answer:
        """Unanswered: not all of it came."""
        got = bytearray()
        try:
            while len(got) < ANSWER_BYTES and (piece := response.read(ANSWER_BYTES - len(got))):
                got += piece
            link.end()
            if link.late:
                raise TimeoutError(errno.ETIMEDOUT, "")
            if len(got) == ANSWER_BYTES:
                raise OSError(errno.EMSGSIZE, f"more than {ANSWER_BYTES:,} bytes of it")
        except (self.http.exceptions.HTTPError, OSError) as error:
            # What else a refusal says may be missing.
            if response.status < 300:
                why = f"not all of it in {self.timeout_s:g} s" if link.late else _why(error)
                raise self._unanswered(why) from error
        finally:
            response.close()
        head = response.headers
        kind = str(head.get("Content-Type", "")).split(";")[0].strip().lower()
        return Answer(int(response.status), kind, bytes(got), str(head.get("Retry-After", "")))

    def _unanswered(self, why: str) -> Unanswered:
        return Unanswered(
            f"{self.url}: it was sent, and no answer came ({why}): the endpoint may have it. It is not sent again "
            "unasked; again=True (--again) does"
        )

    def pause(self, tries: int, answer: Answer | None) -> float:
        """Seconds to wait before the next try: each time twice as long, and at least what the endpoint asked for."""
        own: float = min(FIRST_S * 2.0 ** min(tries, 10), LONGEST_S) * random.uniform(0.5, 1.0)
        if answer and answer.retry_after:
            # No date, or none that there is.
            with suppress(self.http.exceptions.InvalidHeader, OverflowError, ValueError):
                return max(float(self.http.Retry().parse_retry_after(answer.retry_after)), own)
        return own

    def send(self, body: bytes, said: Callable[[str], None]) -> tuple[Answer, int]:
        """The answer that ends it, and how often it was sent before and no answer came.

        Refused, Unanswered: as their names say.
        """
        tries = unanswered = 0
        while True:
            answer = None
            try:
                answer = self.once(body)
                if answer.status not in RETRIED:
                    return answer, unanswered
                why = f"status {answer.status}"
            except Unreached as error:
                why = f"not reached ({error})"
            except Disconnected as error:
                why = f"no answer ({error}), so that it may have it"
                unanswered += 1
            except Refused as error:
                if unanswered:
                    raise self._unanswered(f"and then: {error}") from error
                raise
            tries += 1
            wait_s = self.pause(tries - 1, answer)
            if time.monotonic() + wait_s > self.until_s:
                if unanswered:
                    raise self._unanswered(why)
                told = message_of(answer) if answer else ""
                raise Refused(
                    f"{self.url}: {why}{f': {told}' if told else ''} (tries: {tries}; the next is due in "
                    f"{wait_s:.0f} s, later than --patience allows). It has nothing of it"
                )
            said(f"{self.url}: {why}; sent again in {wait_s:.1f} s")
            time.sleep(wait_s)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it came of."""
    inner: BaseException | None = error
    while inner is not None:
        yield inner
        inner = inner.__cause__ or inner.__context__


def _why(error: BaseException) -> str:
    """What the system said, without the objects that it was said to."""
    last = error
    for last in _causes(error):
        if isinstance(last, OSError) and last.strerror:
            return line(last.strerror)
    return line(last)


def message_of(answer: Answer) -> str:
    """What an answer that is no success says, as part of one line."""
    if answer.type == TYPE:
        status = need("otlp", "google.rpc.status_pb2").Status()
        with suppress(need("otlp", "google.protobuf.message").DecodeError):
            status.ParseFromString(answer.body)
        return line(status.message)
    return line(answer.body.decode("utf-8", "replace")) if answer.type.startswith("text/plain") else ""


def _refusal(url: str, answer: Answer) -> str:
    """Why an answer is no success; '' it is one."""
    if 200 <= answer.status < 300:
        return ""
    told = message_of(answer) or ("redirects are not followed" if answer.status < 400 else "")
    return f"{url}: refused with status {answer.status}{f': {told}' if told else ''}"


def _judged(url: str, answer: Answer, profiles: int) -> str:
    """The endpoint's warning, of an answer that it took it. Rejected, Unanswered: it did not, or who knows."""
    made = messages().ExportProfilesServiceResponse()
    no_answer = f"{url}: status {answer.status}, but what it said is no answer of the protocol"
    if answer.body and answer.type != TYPE:
        raise Unanswered(f"{no_answer} ({line(answer.type) or 'no type'}): is it an OTLP endpoint for profiles?")
    try:
        made.ParseFromString(answer.body)
    except need("otlp", "google.protobuf.message").DecodeError as error:
        raise Unanswered(f"{no_answer} ({line(error)})") from error
    partial = made.partial_success
    told = line(partial.error_message)
    if partial.rejected_profiles:
        raise Rejected(
            f"{url}: {partial.rejected_profiles} of {profiles} profiles were rejected: {told or 'no reason'}"
        )
    return told


def push(
    rec: Recording,
    endpoint: str,
    *,
    headers: Mapping[str, str] | None = None,
    toll: str | None = None,
    owner: str | None = None,
    timeout_s: float = 10.0,
    patience_s: float = 60.0,
    compress: bool = True,
    again: bool = False,
    said: Callable[[str], None] = lambda _: None,
) -> Pushed:
    """Send a recording's profiles, those that export writes as "otlp", to an OTLP/HTTP endpoint.

    endpoint: http or https; one without a path gets the protocol's. headers: more of them, such as authorization.
    toll, owner: as of export. timeout_s: of each try, to its whole answer; patience_s: of all tries, with the pauses
    between. again: also what was sent there before. said: is called with a line where something is tried again, or
    cannot be kept.

    BadEndpoint, BadExport, Refused, Unanswered, Rejected, PushedBefore, MissingExtra: what their names say.
    """
    check_choice(toll, owner)
    url = address(endpoint)
    all_headers = headers_of(headers or {}, compress)
    sender = Sender(url, all_headers, timeout_s, patience_s)
    with understanding(rec.path):
        body = data(rec, about(rec), owner or OWNERS[0], toll)
    if len(body) > REQUEST_BYTES:
        raise Refused(
            f"{len(body):,} bytes are more than the protocol's {REQUEST_BYTES:,}: nothing was sent; "
            "toll= (--toll) sends less"
        )
    known = Known(url, body, rec.path.name)
    try:
        known.claim(again)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        said(f"{where}{error.strerror}; that it was pushed is not kept, a second time would not be noticed")
    try:
        answer, unanswered = sender.send(gzip.compress(body, mtime=0) if compress else body, said)
        refusal = _refusal(url, answer)
    except BaseException as error:
        # Also when somebody presses ^C in a pause.
        if isinstance(error, Refused) or not sender.sent:
            known.forget()
        raise
    if refusal:
        if not unanswered:
            known.forget()
        raise Refused(refusal)
    request = messages().ExportProfilesServiceRequest.FromString(body)
    profiles = sum(len(scope.profiles) for of in request.resource_profiles for scope in of.scope_profiles)
    try:
        warning = _judged(url, answer, profiles)
    except Rejected:
        known.answered()
        raise
    known.answered()
    return Pushed(url, profiles, len(body), warning, unanswered)
