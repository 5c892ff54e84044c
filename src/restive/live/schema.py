"""The tables of a live agent's database, as SQLite reads them; `postgres` names its own types."""

from __future__ import annotations

__all__ = ["EVENTS", "FORMAT_VERSION", "SCHEMA", "SESSIONS", "TABLES"]

FORMAT_VERSION = 2

# Without a unique request: one that was withdrawn may be sent again.
EVENTS = """
CREATE TABLE event(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, tick INTEGER NOT NULL,
  at INTEGER NOT NULL, request TEXT, fingerprint BLOB, actor TEXT NOT NULL,
  body TEXT NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE INDEX rare_event ON event(kind, seq)
  WHERE kind NOT IN ('decide', 'record');
CREATE INDEX decision ON event(tick) WHERE kind = 'decide';
CREATE INDEX request ON event(request) WHERE request IS NOT NULL;
CREATE TABLE withdrawn(seq INTEGER PRIMARY KEY, undo INTEGER NOT NULL) STRICT;
"""

SESSIONS = """
CREATE TABLE session(sha256 BLOB PRIMARY KEY, token TEXT NOT NULL, ends INTEGER NOT NULL) STRICT;
"""

SCHEMA = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE prior(id INTEGER PRIMARY KEY, kind TEXT UNIQUE NOT NULL, body TEXT NOT NULL,
  digest BLOB NOT NULL) STRICT;
{EVENTS}
CREATE TABLE arm(slot INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, prior INTEGER NOT NULL
  REFERENCES prior(id), joined INTEGER NOT NULL, "left" INTEGER) STRICT;
CREATE TABLE pull(tick INTEGER NOT NULL, slot INTEGER NOT NULL, status TEXT NOT NULL,
  state INTEGER, audit INTEGER NOT NULL, expected REAL, recorded INTEGER,
  PRIMARY KEY(tick, slot)) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, version TEXT NOT NULL,
  body BLOB NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE TABLE token(name TEXT PRIMARY KEY, role TEXT NOT NULL, sha256 BLOB UNIQUE NOT NULL,
  made INTEGER NOT NULL, ends INTEGER) STRICT;
{SESSIONS}"""

TABLES = (
    "meta", "prior", "event", "withdrawn", "arm", "pull", "snapshot", "token", "session",
)  # fmt: skip
