"""The tables of a live agent's file.

`event` is the truth. `arm` and `pull` are its tables of contents: written in the same transaction,
they can be made again from it. `snapshot` is a cache and may be emptied.
"""

from __future__ import annotations

__all__ = ["APPLICATION_ID", "FORMAT_VERSION", "TABLES"]

APPLICATION_ID = 0x52657374  # "Rest"
FORMAT_VERSION = 1

TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE prior(id INTEGER PRIMARY KEY, kind TEXT UNIQUE NOT NULL, body TEXT NOT NULL,
  digest BLOB NOT NULL) STRICT;
CREATE TABLE event(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, tick INTEGER NOT NULL,
  at INTEGER NOT NULL, request TEXT UNIQUE, fingerprint BLOB, actor TEXT NOT NULL,
  body TEXT NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE INDEX rare_event ON event(kind, seq)
  WHERE kind NOT IN ('decide', 'record');
CREATE INDEX decision ON event(tick) WHERE kind = 'decide';
CREATE TABLE arm(slot INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, prior INTEGER NOT NULL
  REFERENCES prior(id), joined INTEGER NOT NULL, "left" INTEGER) STRICT;
CREATE TABLE pull(tick INTEGER NOT NULL, slot INTEGER NOT NULL, status TEXT NOT NULL,
  state INTEGER, audit INTEGER NOT NULL, expected REAL, recorded INTEGER,
  PRIMARY KEY(tick, slot)) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, version TEXT NOT NULL,
  body BLOB NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE TABLE token(name TEXT PRIMARY KEY, role TEXT NOT NULL, sha256 BLOB UNIQUE NOT NULL,
  made INTEGER NOT NULL, ends INTEGER) STRICT;
"""
