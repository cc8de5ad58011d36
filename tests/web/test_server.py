"""Security tests 5, 10, 16, 17 and 18 of the viewer, with real processes and sockets."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
import uvicorn
from tests.conftest import ROOT

from pollux.errors import PolluxError
from pollux.library.config import DEMO_HOME, Config, configure
from pollux.library.library import Library
from pollux.library.viewer_files import (
    RunningViewer,
    running_viewer,
    runtime_file,
    store_viewer,
    viewer_label,
    write_tab_file,
)
from pollux.web import server
from pollux.web.routing import OpenStreams
from pollux.web.server import TabOpener, ask_for_ticket, listen, open_running

PATIENCE = 60
"""Seconds after which a process that should have ended hangs."""


class Reply(NamedTuple):
    status: int
    cookie: str
    body: bytes


class Running(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    label: str
    address: str
    config: Config

    @property
    def root(self) -> str:
        return f"/{self.label}/"

    def get(self, path: str, **headers: str) -> Reply:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            with connection.getresponse() as response:
                return Reply(response.status, response.getheader("set-cookie") or "", response.read())

    def sign_in(self) -> str:
        """Return the cookie."""
        running = running_viewer(self.config)
        assert running is not None
        reply = self.get(f"{self.root}in?t={ask_for_ticket(running)}")
        assert reply.status == 200
        return reply.cookie.partition(";")[0]

    def send(self, data: bytes) -> bytes:
        """Return what the server answers to raw bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(data)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def _words(archive: Path) -> tuple[str, ...]:
    return ("web", "--no-open", "--home", str(DEMO_HOME), "--archive", str(archive))


@contextmanager
def viewer(archive: Path, module: str = "pollux", *arguments: str) -> Iterator[Running]:
    """Run a viewer of the demo's sessions."""
    command = [sys.executable, "-m", module, *(arguments or _words(archive))]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            match = re.search(r"http://127\.0\.0\.1:(\d+)/([a-z0-9]{10})/\S*", first)
            assert match, first + process.stdout.read()
            config = configure(named_homes=[DEMO_HOME], archive=archive)
            yield Running(process, int(match[1]), match[2], match[0], config)
        finally:
            process.kill()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with viewer(tmp_path / "archive" / "archive.db") as running:
        yield running


def test_a_viewer_is_private_and_leaves_nothing(running: Running, tmp_path: Path) -> None:
    folder = running.config.runtime_dir
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    file = runtime_file(running.config)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "archive" / "archive.db.label").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "archive").stat().st_mode) == 0o700
    assert "?t=" not in running.address  # standard error is no terminal
    described = running_viewer(running.config)
    assert described is not None
    assert (described.pid, described.port, described.label) == (running.process.pid, running.port, running.label)
    assert running.stop() == 0
    assert not [*folder.iterdir()]
    assert viewer_label(running.config) == running.label


def test_another_program_gets_no_page(running: Running) -> None:
    for path in ("/", running.root, f"{running.root}api/sessions", f"{running.root}static/x.css", "/alive"):
        assert running.get(path).status == 401
    assert running.get(f"{running.root}nowhere", cookie=running.sign_in()).status == 404
    assert running.stop(signal.SIGTERM) == 0


_STRANGER = """
import sys, urllib.error, urllib.request
n_files = int(sys.argv[1])
for path in sys.argv[2 : 2 + n_files]:
    try:
        open(path, "rb").close()
        print("readable")
    except PermissionError:
        print("private")
for address in sys.argv[2 + n_files :]:
    try:
        print(urllib.request.urlopen(address).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that every user may enter, unlike pytest's; the runtime folder is below it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
        yield folder


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become another user")
def test_another_user_of_the_computer_is_refused(open_folder: Path) -> None:
    """Another user can read no file and gets no page, even one who knows the label."""
    python = shutil.which("python3", path="/usr/bin")  # others may not enter the folder of this Python
    if python is None:
        pytest.skip("no Python that another user can start")
    (open_folder / "public").write_text("for everybody")
    (open_folder / "public").chmod(0o644)
    archive = open_folder / "archive" / "archive.db"
    with viewer(archive) as running:
        root = running.root
        assert running.get(root, cookie=running.sign_in()).status == 200
        tab_file = write_tab_file(running.config, "ticket", f"{root}in?t=ticket")
        private = [runtime_file(running.config), tab_file, *archive.parent.iterdir()]
        assert {archive, archive.with_name("archive.db.label")} <= {*private}
        for file in private:
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
        files = [str(open_folder / "public"), *map(str, private)]
        pages = ("", "sessions", "s/latest", "events", "s/latest/events", "api/sessions", "static/x.css")
        addresses = [f"http://127.0.0.1:{running.port}{root}{page}" for page in pages]
        done = subprocess.run(
            [python, "-I", "-c", _STRANGER, str(len(files)), *files, *addresses],
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout.split() == ["readable", *["private"] * len(private), *["401"] * len(pages)], done.stderr


def status_lines(answer: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d\d\d)", answer)


def test_raw_requests_without_a_valid_host_are_refused(running: Running) -> None:
    cookie, path = running.sign_in().encode(), running.root.encode() + b"nowhere"
    own = b"Host: 127.0.0.1:%d\r\n" % running.port
    end = b"Cookie: " + cookie + b"\r\nConnection: close\r\n\r\n"
    assert status_lines(running.send(b"GET " + path + b" HTTP/1.1\r\n" + own + end)) == [b"404"]
    for request in (
        b"GET " + path + b" HTTP/1.0\r\n" + end,
        b"GET " + path + b" HTTP/1.1\r\nHost: evil.example\r\n" + end,
        b"GET " + path + b" HTTP/1.1\r\nHost: localhost.\r\n" + end,
        b"GET http://evil.example" + path + b" HTTP/1.1\r\n" + own + end,
        b"GET http://127.0.0.1" + path + b" HTTP/1.1\r\n" + own + end,
        b"GET //evil.example" + path + b" HTTP/1.1\r\nHost: evil.example\r\n" + end,
    ):
        assert status_lines(running.send(request)) == [b"421"], request
    for request in (
        b"GET " + path + b" HTTP/1.1\r\n" + end,
        b"GET " + path + b" HTTP/1.1\r\n" + own + own + end,
        b"GET " + path + b" HTTP/1.1\r\n" + own + b"Host: evil.example\r\n" + end,
    ):
        assert status_lines(running.send(request)) == [b"400"], request
    assert running.process.poll() is None


def test_oversized_requests_end_with_one_answer(running: Running) -> None:
    own = b"Host: 127.0.0.1:%d\r\nConnection: close\r\n" % running.port
    head = b"GET " + running.root.encode()
    assert status_lines(running.send(head + b"?q=" + b"a" * 40_000 + b" HTTP/1.1\r\n" + own + b"\r\n")) == [b"414"]
    for request in (
        head + b"?q=" + b"a" * 70_000 + b" HTTP/1.1\r\n" + own + b"\r\n",
        head + b" HTTP/1.1\r\n" + own + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
        head + b" HTTP/1.1\r\n" + own + b"X: a\r\n" * 30_000 + b"\r\n",
    ):
        try:
            answer = running.send(request)
        except (ConnectionResetError, BrokenPipeError):  # it did not even read all of it
            continue
        assert status_lines(answer) in ([b"400"], [b"414"], [b"401"])
    assert running.get("/").status == 401


@contextmanager
def open_stream(running: Running, name: str, cookie: str) -> Iterator[http.client.HTTPResponse]:
    with closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)) as connection:
        connection.request("GET", running.root + name, headers={"Cookie": cookie})
        with connection.getresponse() as response:
            assert response.status == 200
            assert response.readline() == b"event: hello\n"
            yield response


@pytest.mark.parametrize("name", ["stream", "events", "s/latest/events"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_open_streams_do_not_keep_the_server_alive(tmp_path: Path, number: int, name: str) -> None:
    archive = tmp_path / "archive.db"
    with viewer(archive, "tests.web.streaming_viewer", str(archive)) as running, ExitStack() as streams:
        cookie = running.sign_in()
        opened = [streams.enter_context(open_stream(running, name, cookie)) for _ in range(30)]
        assert running.stop(number) == 0
        for response in opened:
            assert b"event: bye" in response.read()
        assert not runtime_file(running.config).exists()


@pytest.mark.parametrize("n_signals", [1, 2])
def test_a_page_that_never_ends_does_not_keep_the_server_alive(tmp_path: Path, n_signals: int) -> None:
    archive = tmp_path / "archive.db"
    with viewer(archive, "tests.web.streaming_viewer", str(archive)) as running, ExitStack() as streams:
        cookie = running.sign_in()
        streams.enter_context(open_stream(running, "deaf", cookie))
        connection = http.client.HTTPConnection("127.0.0.1", running.port)
        streams.callback(connection.close)
        connection.request("GET", f"{running.root}wait", headers={"Cookie": cookie})
        running.get("/")  # the server has read the request before this one
        for _ in range(n_signals):
            running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE) == 0
        assert running.process.stdout is not None
        assert "Traceback" not in running.process.stdout.read()
        assert not runtime_file(running.config).exists()


def test_a_server_that_hangs_ends_as_well(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    with viewer(archive, "tests.web.streaming_viewer", str(archive)) as running, ExitStack() as streams:
        cookie = running.sign_in()
        connection = http.client.HTTPConnection("127.0.0.1", running.port)
        streams.callback(connection.close)
        connection.request("GET", f"{running.root}stuck", headers={"Cookie": cookie})
        assert running.process.stdout is not None
        while running.process.stdout.readline() not in ("stuck\n", ""):
            pass
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE) == 0
        assert not runtime_file(running.config).exists()


def test_connections_that_are_accepted_while_the_server_stops_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn closes connections once and then waits for all; browsers keep a connection open for minutes."""
    is_closed = asyncio.Event()

    class LateConnection:
        def shutdown(self) -> None:
            is_closed.set()

    async def shutdown(stopping: uvicorn.Server, sockets: object) -> None:
        assert sockets is None
        stopping.server_state.connections.add(LateConnection())  # type: ignore[arg-type]
        await asyncio.wait_for(is_closed.wait(), PATIENCE)

    async def stop() -> None:
        await server.LocalServer(uvicorn.Config("none"), OpenStreams(), lambda: None).shutdown()

    monkeypatch.setattr(uvicorn.Server, "shutdown", shutdown)
    asyncio.run(stop())
    assert is_closed.is_set()


def test_a_second_start_opens_a_tab_of_the_first(running: Running, tmp_path: Path) -> None:
    opened: list[str] = []
    notes: list[str] = []

    def open_file(path: Path) -> bool:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        opened.append(path.read_text())
        return True

    assert open_running(running.config, TabOpener(notes.append, open_file, path="s/0363a0b0/3"))
    [address] = re.findall(r"url=http://127\.0\.0\.1:\d+([^\"]*)", opened[0])
    assert notes == [f"Pollux is running at http://127.0.0.1:{running.port}{running.root}s/0363a0b0/3"]
    assert len([*running.config.runtime_dir.glob("tab-*.html")]) == 1
    reply = running.get(address.replace("&amp;", "&"), sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    assert reply.status == 200
    assert f'url={running.root}s/0363a0b0/3"' in reply.body.decode()
    assert not [*running.config.runtime_dir.glob("tab-*.html")]  # the ticket is used
    other = configure(named_homes=[DEMO_HOME], archive=tmp_path / "other.db")
    assert not open_running(other, TabOpener(notes.append))
    assert running.config.archive is not None
    done = subprocess.run(
        [sys.executable, "-m", "pollux", *_words(running.config.archive)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0
    assert done.stderr.startswith(f"Pollux is running at http://127.0.0.1:{running.port}{running.root}\n")


def pollux(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pollux", *words, "--home", str(DEMO_HOME)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_open_shows_a_message_in_the_running_viewer(running: Running) -> None:
    archive = ("--no-open", "--archive", str(running.config.archive))
    with Library(running.config) as library:
        newest = library.session("latest").id
    for reference, path in (("latest", f"s/{newest}"), (f"{newest[:8]}#2", f"s/{newest}/2"), ("#2", f"s/{newest}/2")):
        done = pollux("open", reference, *archive)
        assert (done.returncode, done.stdout) == (0, "")
        assert f"http://127.0.0.1:{running.port}{running.root}{path}\n" in done.stderr
        assert running.get(f"{running.root}{path}", cookie=running.sign_in()).status == 200
    unknown = pollux("open", "nothing-like-this", *archive)
    assert unknown.returncode == 1
    assert "No session matches" in unknown.stderr
    assert pollux("open", "latest#99999", *archive).returncode == 1


def test_a_killed_server_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    with viewer(archive) as first:
        first.process.kill()
        first.process.wait()
        assert runtime_file(first.config).exists()
        with viewer(archive) as second:
            assert second.label == first.label
            described = running_viewer(second.config)
            assert described is not None
            assert described.pid == second.process.pid
            assert second.stop() == 0
        assert not runtime_file(first.config).exists()


class _Stranger(BaseHTTPRequestHandler):
    """Answers every request, and keeps what it was told."""

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.path} {self.headers}")  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"ticket": "evil", "proof": "00"}')

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_a_stranger_on_the_port_learns_nothing(tmp_path: Path) -> None:
    config = configure(named_homes=[DEMO_HOME], archive=tmp_path / "archive.db")
    with HTTPServer(("127.0.0.1", 0), _Stranger) as stranger:
        stranger.requests = []  # type: ignore[attr-defined]
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        left = RunningViewer(1, stranger.server_port, viewer_label(config), "the-secret")
        store_viewer(config, left)
        notes: list[str] = []
        assert not open_running(config, TabOpener(notes.append, lambda _path: True))
        assert not notes
        [request] = stranger.requests  # type: ignore[attr-defined]
        assert left.label not in request
        assert left.secret not in request
        with pytest.raises(PolluxError, match=r"Cannot listen on port \d+: another program uses it\. Choose another"):
            listen(stranger.server_port)
        stranger.shutdown()


def test_a_taken_usual_port_leads_to_a_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(server, "USUAL_PORT", taken.getsockname()[1])
        with listen() as listener:
            host, port = listener.getsockname()
            assert host == "127.0.0.1"
            assert port != taken.getsockname()[1]


def test_a_free_usual_port_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(server, "USUAL_PORT", port)
    with listen() as listener:
        assert listener.getsockname() == ("127.0.0.1", port)


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '{"pid": "x"}', "\0", '{"pid":1,"port":99999,"label":"a","secret":"b"}']
)
def test_a_damaged_runtime_file_is_ignored(tmp_path: Path, content: str) -> None:
    config = configure(named_homes=[DEMO_HOME], archive=tmp_path / "archive.db")
    config.runtime_dir.mkdir(parents=True)
    runtime_file(config).write_text(content)
    assert not open_running(config, TabOpener(lambda _note: None))


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    config = configure(named_homes=[DEMO_HOME], archive=tmp_path / "archive.db")
    config.runtime_dir.mkdir(parents=True)
    config.runtime_dir.chmod(0o777)
    with pytest.raises(PolluxError, match="Other users may write to"):
        store_viewer(config, RunningViewer(1, 2, "a", "b"))


def test_a_label_is_kept_and_a_readable_or_damaged_one_is_replaced(tmp_path: Path) -> None:
    config = configure(named_homes=[DEMO_HOME], archive=tmp_path / "new" / "archive.db")
    label = viewer_label(config)
    assert re.fullmatch("[a-z0-9]{10}", label)
    assert viewer_label(config) == label
    file = tmp_path / "new" / "archive.db.label"
    file.chmod(0o644)
    replaced = viewer_label(config)
    assert replaced != label
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("../../etc")
    assert viewer_label(config) not in (label, replaced, "../../etc")
    without = configure(named_homes=[DEMO_HOME], archive=None)
    assert viewer_label(without) != viewer_label(without)
