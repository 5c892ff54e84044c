"""Services for tests: in this process, behind a socket, and as a program of their own."""

import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager

import uvicorn
from starlette.testclient import TestClient

from live_cases import created
from restive.serve.app import make_app
from restive.serve.connections import HttpConnection, listening_socket

__all__ = ["Client", "listening", "program", "served"]

MANY = 1e9  # requests a second
PATIENT = {"seconds": 600.0}  # kernels may have to be compiled


class Client(TestClient):
    """A client with a token, or with none."""

    def __init__(self, app, secret=None, **options):
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        super().__init__(app, headers=headers, follow_redirects=False, **options)


@contextmanager
def served(path, *, rate=MANY, limits=PATIENT, agent=None, **options):
    """Yield the app of a new agent, and the agent; its calls count ticks."""
    live = agent or created(path, **options)
    with live:
        app = make_app(live, rate=rate, **limits)
        with TestClient(app):  # which begins and ends it
            yield app, live


@contextmanager
def listening(app, **limits):
    """Yield the address of a server of this process, for a browser and for slow clients.

    `limits` are those of its connections.
    """
    made = type("HttpConnection", (HttpConnection,), limits)
    listener = listening_socket("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="error", http=made, ws="none", lifespan="off")
    server = uvicorn.Server(config)
    ready = threading.Event()
    startup = server.startup

    async def started(sockets=None):
        await startup(sockets)
        ready.set()

    server.startup = started
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        assert ready.wait(60)
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def program(path, *options):
    """Yield `restive serve` as a process, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "restive", "serve", str(path), "--port", "0", *options],
        stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        line = process.stderr.readline()
        yield process, int(re.search(r":(\d+)/", line)[1])
    finally:
        process.kill()
        process.communicate()
