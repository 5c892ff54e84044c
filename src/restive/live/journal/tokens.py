"""Who may use a live agent over the network: secrets, of which the file holds digests only.

A session is begun with a token by somebody who uses the page, and has a secret of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe

from restive.arguments import shown
from restive.errors import ConflictError, ProblemError
from restive.live.journal.events import Journal
from restive.live.people.roster import checked_name

__all__ = [
    "ROLES",
    "Token",
    "begin_session",
    "end_session",
    "make_token",
    "remove_token",
    "token_of",
    "token_of_session",
    "tokens",
]

ROLES = ("read", "act", "admin")  # each may do what the ones before it may
SECRET_BYTES = 32
DAY = 86_400 * 10**6


@dataclass(frozen=True)
class Token:
    """A client that was let in."""

    name: str
    role: str
    made: int  # microseconds since 1970
    ends: int | None

    def allows(self, role: str) -> bool:
        """Whether its role is enough."""
        return ROLES.index(self.role) >= ROLES.index(role)


def make_token(journal: Journal, name: str, role: str, at: int, days: float | None) -> str:
    """Make a token, inside a transaction; return its secret."""
    checked_name(name)
    if role not in ROLES:
        raise ProblemError(f"role must be one of {', '.join(ROLES)}, got {shown(role)}")
    if days is not None and not (isinstance(days, int | float) and 0 < days < 100_000):
        raise ProblemError(f"days must be a number from 0 to 100,000, got {shown(days)}")
    if any(token.name == name for token in tokens(journal)):
        raise ConflictError(f"there is a token {name!r} already; remove it first")
    secret = token_urlsafe(SECRET_BYTES)
    ends = None if days is None else at + round(days * DAY)
    row = (name, role, _digest(secret), at, ends)
    journal.connection.execute("INSERT INTO token VALUES (?, ?, ?, ?, ?)", row)
    return secret


def remove_token(journal: Journal, name: str) -> None:
    """Remove a token, inside a transaction."""
    checked_name(name)
    if not journal.connection.execute("DELETE FROM token WHERE name = ?", (name,)).rowcount:
        raise ProblemError(f"there is no token {shown(name)}")
    journal.connection.execute("DELETE FROM session WHERE token = ?", (name,))


def tokens(journal: Journal) -> list[Token]:
    """Return all tokens, by name."""
    rows = journal.connection.execute("SELECT name, role, made, ends FROM token ORDER BY name")
    return [Token(*row) for row in rows]


def token_of(journal: Journal, secret: str, at: int) -> Token | None:
    """Return the token with this secret, unless it has ended; every one is compared."""
    given, found = _digest(secret), None
    rows = journal.connection.execute("SELECT name, role, made, ends, sha256 FROM token")
    for *fields, digest in rows:
        if compare_digest(given, digest):
            found = Token(*fields)
    return None if found is None or (found.ends is not None and at >= found.ends) else found


def begin_session(journal: Journal, secret: str, at: int, days: float) -> str:
    """Begin a session of a token, inside a transaction; return the session's own secret."""
    if not (isinstance(days, int | float) and 0 < days < 100_000):
        raise ProblemError(f"days must be a number from 0 to 100,000, got {shown(days)}")
    token = token_of(journal, secret, at)
    if token is None:
        raise ProblemError("the token is not known, or has ended")
    journal.connection.execute("DELETE FROM session WHERE ends <= ?", (at,))
    session = token_urlsafe(SECRET_BYTES)
    row = (_digest(session), token.name, at + round(days * DAY))
    journal.connection.execute("INSERT INTO session VALUES (?, ?, ?)", row)
    return session


def end_session(journal: Journal, session: str) -> None:
    """End a session, inside a transaction."""
    journal.connection.execute("DELETE FROM session WHERE sha256 = ?", (_digest(session),))


def token_of_session(journal: Journal, session: str, at: int) -> Token | None:
    """Return the token of a session, unless one of them has ended."""
    row = journal.connection.execute(
        "SELECT name, role, made, token.ends FROM session JOIN token ON token.name = session.token "
        "WHERE session.sha256 = ? AND session.ends > ? AND (token.ends IS NULL OR token.ends > ?)",
        (_digest(session), at, at),
    ).fetchone()
    return None if row is None else Token(*row)


def _digest(secret: str) -> bytes:
    if not isinstance(secret, str):
        raise ProblemError(f"a secret must be a text, got {shown(secret)}")
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
