"""The service behind a socket: what only bytes on a wire can show, and how it ends."""

import http.client
import json
import signal
import socket
import threading

import pytest

from live_cases import created, run
from restive.cli import main
from restive.live.agent import LiveAgent
from serve_cases import listening, program, served

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
        with listening(app) as address:
            yield address, secret, live


def test_path_tricks_lead_nowhere(server):
    address, secret, _ = server
    for path in TRICKS:
        status, headers, text = asked(address, "GET", path, secret)
        assert status in (404, 422), (path, text)
        assert headers["content-type"] == "application/problem+json"


def sent(address, *parts):
    """Send bytes, and then nothing more; return all that comes back."""
    with socket.create_connection(address[:2], timeout=60) as wire:
        for part in parts:
            wire.sendall(part)
        found = b""
        while part := wire.recv(1 << 16):
            found += part
        return found


HEAD = b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_a_body_that_does_not_come_is_408_and_the_connection_ends(server):
    found = sent(server[0], HEAD + b"Content-Length: 50\r\n\r\n", b'{"tick')
    assert found.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not come within 0.5 s" in found


def test_a_body_is_counted_as_it_comes(server):
    chunk = b"190\r\n" + b" " * 400 + b"\r\n"
    found = sent(server[0], HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk, chunk, chunk)
    assert found.startswith(b"HTTP/1.1 413 ")
    told = sent(server[0], HEAD + b"Content-Length: 1001\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 413 ")


def test_a_client_that_goes_away_changes_nothing(server):
    address, secret, live = server
    events = live.events()
    with socket.create_connection(address[:2]) as wire:
        wire.sendall(HEAD + f"Authorization: Bearer {secret}\r\n".encode())
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
