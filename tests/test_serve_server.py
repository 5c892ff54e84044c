"""The service behind a socket: what only bytes on a wire can show, and how it ends."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from live_cases import created, run
from restive.cli import main
from restive.live.agent import LiveAgent
from restive.serve.connections import HttpConnection
from serve_cases import listening, program, served

TRIES = 5  # of what a reset connection may have swallowed
TRICKS = [
    "/../../etc/passwd", "/v1/../v1/status", "/static/../app.py", "/static/..%2fapp.py",
    "/static/%2e%2e/app.py", "/v1/arms/", "/v1/arms/..%2F..%2Fstatus", "//v1/status",
    "/v1//status", "/v1/status/", "/V1/status", "/v1/arms/%00", "/v1/arms/%ff",
    "/v1/decisions/-1", "/v1/decisions/1e3", "/v1/decisions/9999999999999999999999",
    "/arms/..%2f", "/v1/arms?by=name;drop", "/v1/arms?limit=1001", "/v1/events?after=-1",
]  # fmt: skip


def asked(address, method, path, secret=None, body=None, **headers):
    connection = http.client.HTTPConnection(*address[:2], timeout=60)
    given = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    if body is not None:
        given["Content-Type"] = "application/json"
    connection.request(method, path, body, given | headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, dict(response.getheaders()), text


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "a.db"
    with served(path, limits={"seconds": 0.5, "body_bytes": 1000}) as (app, live):
        secret = live.make_token("admin", "admin")
        with listening(app, most=20, head_seconds=0.6) as address:
            yield address, secret, live


def test_path_tricks_lead_nowhere(server):
    address, secret, _ = server
    for path in TRICKS:
        status, headers, text = asked(address, "GET", path, secret)
        assert status in (404, 422), (path, text)
        assert headers["content-type"] == "application/problem+json"


def sent(address, *parts):
    """Send bytes, and then nothing more; return all that comes back.

    Who closes with bytes unread resets the connection, and an answer on its way may be lost: then
    all is sent again.
    """
    for _ in range(TRIES):
        try:
            return sent_once(address, *parts)
        except ConnectionResetError:
            continue
    raise AssertionError(f"the connection was reset {TRIES} times")


def sent_once(address, *parts):
    with socket.create_connection(address[:2], timeout=60) as wire:
        for part in parts:
            wire.sendall(part)
        found = b""
        while part := wire.recv(1 << 16):
            found += part
        return found


HEAD = b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def head(secret):
    return HEAD + f"Authorization: Bearer {secret}\r\n".encode()


def test_a_body_that_does_not_come_is_408_and_the_connection_ends(server):
    address, secret, _ = server
    found = sent(address, head(secret) + b"Content-Length: 50\r\n\r\n", b'{"tick')
    assert found.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not come within 0.5 s" in found


def test_a_body_is_counted_as_it_comes(server):
    address, secret, _ = server
    chunk = b"190\r\n" + b" " * 400 + b"\r\n"
    found = sent(address, head(secret) + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 3)
    assert found.startswith(b"HTTP/1.1 413 ")
    told = sent(address, head(secret) + b"Content-Length: 1001\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 413 ")


def test_the_body_of_a_stranger_is_not_waited_for(server):
    found = sent(server[0], HEAD + b"Content-Length: 50\r\n\r\n", b"{")
    assert found.startswith(b"HTTP/1.1 401 ")
    page = HEAD.replace(b"/v1/decisions", b"/decide")
    assert sent(server[0], page + b"Content-Length: 50\r\n\r\n").startswith(b"HTTP/1.1 303 ")


def test_two_lengths_of_one_body_are_refused_and_the_connection_ends(server):
    address, secret, live = server
    events = live.events()
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    found = sent(address, head(secret) + both, HEAD)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1") == 1
    assert live.events() == events


def test_the_bytes_of_all_bodies_are_bounded(tmp_path):
    from restive.serve.limits import Limits

    with served(tmp_path / "a.db") as (app, live):
        secret = live.make_token("a", "act")
        with listening(app) as address:
            answering(address)
            found = app.middleware_stack
            while not isinstance(found, Limits):
                found = found.app
            found.most_in_flight = 1000
            half = head(secret) + b"Content-Length: 900\r\n\r\n" + b" " * 800
            with socket.create_connection(address[:2]) as first:
                first.sendall(half)
                while found.in_flight < 800:
                    time.sleep(0.001)
                assert sent(address, half).startswith(b"HTTP/1.1 503 ")
                first.sendall(b" " * 98 + b"{}")
                assert first.recv(1 << 16).startswith(b"HTTP/1.1 201 ")
            answering(address)
            assert found.in_flight == 0


# ---------------------------------------------------------------- connections


def test_a_head_that_does_not_come_ends_the_connection(server):
    assert sent(server[0], b"GET /healthz HTTP/1.1\r\nHost:") == b""
    assert sent(server[0]) == b""
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"  # and half of the next one
    assert sent(server[0], whole + b"GET /he").startswith(b"HTTP/1.1 200 ")


def test_a_flood_of_half_sent_heads_keeps_nobody_out(server, caplog):
    """There may be 20 connections: the longest quiet one makes room."""
    address, _, _ = server
    waiting = []
    try:
        for _ in range(100):
            wire = socket.create_connection(address[:2], timeout=60)
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
            waiting.append(wire)
            if len(waiting) % 20 == 0:
                answering(address)
    finally:
        for wire in waiting:
            wire.close()
    said = [one for one in caplog.messages if "connections" in one]
    assert len(said) <= 1


def test_where_all_connections_are_busy_the_next_is_told_so(tmp_path):
    with served(tmp_path / "a.db") as (app, live):
        secret = live.make_token("a", "act")
        with listening(app, most=3) as address, ExitStack() as stack:
            for _ in range(3):
                wire = stack.enter_context(socket.create_connection(address[:2]))
                wire.sendall(head(secret) + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
                assert wire.recv(1 << 16).startswith(b"HTTP/1.1 100 ")  # it is being waited for
            found = sent(address)
            assert found.startswith(b"HTTP/1.1 503 ")
            assert b"too many connections" in found
            wire.sendall(b"{}")
            assert wire.recv(1 << 16).startswith(b"HTTP/1.1 201 ")


def test_answers_do_not_wait_for_the_client_to_acknowledge(tmp_path, monkeypatch):
    """Without this each answer on a kept connection takes 40 ms (Nagle's algorithm)."""
    found = []
    made = HttpConnection.connection_made

    def looked_at(self, transport):
        made(self, transport)
        wire = transport.get_extra_info("socket")
        found.append(wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(HttpConnection, "connection_made", looked_at)
    with served(tmp_path / "a.db") as (app, _), listening(app) as address:
        answering(address)
    assert found
    assert all(found)


def test_who_a_client_is_is_believed_of_named_proxies_only(tmp_path, monkeypatch):
    import uvicorn

    from restive.serve.app import run_server

    configs = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: configs.append(self.config))
    for proxy in ("", "10.0.0.7"):
        live = created(tmp_path / f"a{proxy}.db")
        live.make_token("a", "read")
        run_server(live, "127.0.0.1", 0, lambda text: None, proxy)
    assert [one.proxy_headers for one in configs] == [False, True]
    assert configs[1].forwarded_allow_ips == "10.0.0.7"


def test_sigterm_does_not_wait_for_a_body_that_does_not_come(tmp_path):
    path = tmp_path / "a.db"
    with created(path) as live:
        secret = live.make_token("a", "act")
    with program(path) as (process, port):
        address = ("127.0.0.1", port)
        with socket.create_connection(address, timeout=60) as wire:
            wire.sendall(head(secret) + b"Content-Length: 50\r\n\r\n{")
            answering(address)
            process.send_signal(signal.SIGTERM)
            assert wire.recv(1 << 16).startswith(b"HTTP/1.1 503 ")  # before its 30 seconds are over
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr.read()


def test_a_second_ctrl_c_does_not_wait_and_is_quiet(tmp_path):
    path = tmp_path / "a.db"
    with created(path) as live:
        secret = live.make_token("a", "act")
    with program(path) as (process, port):
        address = ("127.0.0.1", port)
        with socket.create_connection(address, timeout=60) as wire:
            wire.sendall(head(secret) + b"Content-Length: 50\r\n\r\n{")
            answering(address)
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)  # until it has heard the first
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        assert process.stderr.read() == "restive: stopped\n"


def test_a_program_whose_output_was_closed_works(tmp_path):
    path = tmp_path / "a.db"
    created(path).close()
    for closed in (1, 2):
        done = subprocess.run(
            [sys.executable, "-m", "restive", "live", "status", str(path)],
            preexec_fn=lambda number=closed: os.close(number), stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_client_that_goes_away_changes_nothing(server):
    address, secret, live = server
    events = live.events()
    with socket.create_connection(address[:2]) as wire:
        wire.sendall(head(secret))
        wire.sendall(b"Content-Length: 50\r\n\r\n{")
    assert asked(address, "GET", "/healthz")[0] == 200
    assert live.events() == events


def test_sigterm_finishes_what_has_begun_and_exits_0(tmp_path):
    path = tmp_path / "a.db"
    with created(path) as live:
        run(live, 2)  # which compiles what the program needs
        secret = live.make_token("a", "act")
    with program(path) as (process, port):
        address = ("127.0.0.1", port)
        status, _, text = asked(address, "POST", "/v1/decisions", secret)
        assert status == 201
        with socket.create_connection(address, timeout=60) as wire:
            body = json.dumps({"seen": dict.fromkeys(json.loads(text)["arms"], 1)}).encode()
            wire.sendall(
                b"POST /v1/observations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                + f"Authorization: Bearer {secret}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body[:5]
            )
            answering(address)  # the request has begun when a later one is answered
            process.send_signal(signal.SIGTERM)
            threading.Timer(0.2, wire.sendall, [body[5:]]).start()
            assert wire.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert process.wait(60) == 0
    assert not path.with_name("a.db-wal").exists()  # all of it is in the file
    with LiveAgent.open(path) as live:
        assert live.status().seen == 6


def answering(address):
    assert asked(address, "GET", "/healthz")[0] == 200


def served_by_command(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["restive", "serve", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err


def test_nobody_is_served_without_a_token_or_on_a_port_that_is_taken(tmp_path, monkeypatch, capsys):
    path = tmp_path / "a.db"
    created(path).close()
    code, said = served_by_command(monkeypatch, capsys, path)
    assert code == 2
    assert f"make one with `restive live token {path} NAME --role act`" in said
    with LiveAgent.open(path) as live:
        live.make_token("a", "read")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = served_by_command(monkeypatch, capsys, path, "--port", port)
    assert (code, said.count("\n")) == (2, 1)
    assert f"cannot listen on 127.0.0.1 port {port}" in said
    code, said = served_by_command(monkeypatch, capsys, tmp_path / "none.db")
    assert (code, said.count("\n")) == (2, 1)
    code, said = served_by_command(monkeypatch, capsys, path, "--host", "nowhere.invalid")
    assert (code, said.count("\n")) == (2, 1)


def test_a_service_that_others_can_reach_speaks_of_tls(tmp_path, monkeypatch):
    import uvicorn

    from restive.serve.app import run_server

    said = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    for host in ("127.0.0.1", "0.0.0.0"):
        path = tmp_path / f"{host}.db"
        live = created(path)
        live.make_token("a", "read")
        run_server(live, host, 0, said.append)
    assert [("TLS" in text) for text in said] == [False, False, True]
