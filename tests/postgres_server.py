"""A PostgreSQL server of the tests' own: on a socket in a temporary folder, never as root."""

import os
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg

FOUND = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
POSTGRES = FOUND[-1].parent if FOUND else None  # the folder with its programs
USER = "postgres"


class Server:
    """A server that can be stopped and started; it does not wait for the disk."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="restive-pg-"))
        self._as_user = []
        if os.getuid() == 0:
            shutil.chown(self.folder, USER, USER)
            self._as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        self._numbers = count(1)
        self._run("initdb", "-D", self.folder / "data", "-U", USER, "-A", "trust", "-E", "UTF8",
                  "--no-locale", "--no-sync")  # fmt: skip
        self.start()
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE team")

    def start(self):
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        self._run("pg_ctl", "-D", self.folder / "data", "-o", options, "-w", "-l",
                  self.folder / "log", "start")  # fmt: skip

    def stop(self, mode="immediate"):
        self._run("pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "stop")

    def close(self):
        self.stop()
        shutil.rmtree(self.folder)

    def address(self, database="team", user=USER):
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def new_place(self):
        """Return the URL of an agent that is not there yet."""
        return f"{self.address()}#agent{next(self._numbers)}"

    def execute(self, statement):
        with psycopg.connect(self.address(), autocommit=True) as connection:
            got = connection.execute(statement)
            return got.fetchall() if got.description else []

    def _run(self, program, *arguments):
        command = [*self._as_user, POSTGRES / program, *arguments]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=60)
