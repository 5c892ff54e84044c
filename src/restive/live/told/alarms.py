"""Alarms that may be looked at daily: bets against the model, whose gains are the evidence.

Each watch begins with a capital of 1 and bets, tick by tick, that something is wrong. While the
model is right its capital is a fair game, so the chance that it ever exceeds c is at most 1 / c,
however often somebody looks (Ville's inequality). A watch rings when its capital exceeds the number
of watches divided by `LEVEL`: all together ring falsely with probability at most `LEVEL`, for ever.

- *Reward*, of all arms and by kind: x in [0, 1] with predicted mean m earns 1 + l (x - m), where l
  shifts the odds of m by a factor. For arms of two states this is the likelihood ratio.
- *Spread*: the squared distance Z of a tick's reward from its forecast, in units of the predicted
  variance, earns 1 + l (Z - 1): arms that move together make it large.
- *Missing*: among the pulls of one kind in one tick, given how many have no result, all sets of
  that size are equally likely, whatever the rate. The bet is that arms last seen in a certain
  state are missing more often, or less: Fisher's noncentral hypergeometric law against the central
  one.

A bet made at the start notices a late change late, so a share 1 / ((j + 1) (j + 2)) of the capital
waits until tick j: these shares sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, exp, fsum, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponentials
from restive.live.words import PLAIN, Words

__all__ = [
    "CLOCK",
    "HIGH",
    "LEVEL",
    "LOW",
    "SHIFTS",
    "ClosedPull",
    "Watches",
    "advice",
    "reward_gains",
    "sentence_now",
]

FloatArray = NDArray[np.float64]

LEVEL = 0.01  # chance of any false alarm
SHIFTS = (0.25, 0.5, 1.0, 2.0)  # of log-odds, up or down
BETS = tuple(exp(sign * shift) - 1 for sign in (-1, 1) for shift in SHIFTS)
LEAST_MEAN = 1e-9
AT_ONCE = 256  # factors of at most e^2 and at least e^-2, whose product is a number
SPREADS = (0.1, 0.3, 0.9)
ODDS = (0.25, 0.5, 2.0, 4.0)  # of being missing, against those of the others
MOST_KINDS = 50  # that are watched one by one
MOST_LOG = 600.0
LOW, HIGH, SPREAD, MISSING = "reward too low", "reward too high", "spread", "missing"
CLOCK = "clock"  # of the machine, which no bet is made on
ADVICE = {  # in words that a file may have its own for
    LOW: "less than forecast: ask those who make the {pulls} what has changed, and look whether "
    "results are written down as before",
    HIGH: "more than forecast: ask those who make the {pulls} what has changed, and look whether "
    "results are written down as before",
    SPREAD: "{ticks} are better or worse as a whole than independent {arms} would be: look for a "
    "common cause, and trust forecast bands less",
    MISSING: "whether a result is missing depends on the {arm}'s last state, so what is learned is "
    "skewed: find out why results are missing, and map that outcome to a state if it is one",
    CLOCK: "the machine's clock was set back, and no {tick} passes until it has caught up: look at "
    "the time; if it was wrong when the last decision was made, undo that",
}


def advice(name: str, words: Words = PLAIN) -> str:
    """Return what a watch that rings has to say."""
    what, _, kind = name.partition(": ")
    said = ADVICE[what].format(
        arm=words.arm, arms=words.many("arm"), pulls=words.many("pull"), tick=words.tick,
        ticks=words.many("tick"),
    )  # fmt: skip
    return f"kind {kind!r}: {said}" if kind else said


def sentence_now(name: str, sentence: str, words: Words, compared: str = "") -> str:
    """Return what an alarm says, in the words that the file has now; the journal has plain ones.

    `compared` says what was compared, where that is known.
    """
    known = name.partition(": ")[0] in ADVICE and sentence == advice(name)
    if not known:
        return sentence
    found = advice(name, words)
    return found.replace("than forecast:", f"than forecast, {compared}:", 1) if compared else found


class ClosedPull(NamedTuple):
    """A pull of a tick that is over, as the watches see it."""

    kind: str
    last_state: int | None  # before it; None for an arm that was never seen
    expected: float  # of `reward`, before it
    variance: float
    reward: float | None  # None if it is missing
    low: float  # the least reward the arm can pay
    high: float


class Watches:
    """All watches of a live agent.

    Parameters
    ----------
    kinds
        The kinds of arms.
    num_states
        The largest number of states of an arm.
    independent
        Whether arms are independent under the prior.
    """

    def __init__(self, kinds: Sequence[str], num_states: int, independent: bool) -> None:
        self.kinds = tuple(kinds) if 1 < len(kinds) <= MOST_KINDS else ()
        self.num_states = num_states
        self.independent = independent
        # a joint prior's arms tell of each other within a tick: no product of bets is fair
        names = [LOW, HIGH] if independent else []
        names += [f"{name}: {kind}" for kind in self.kinds for name in names[:2]]
        self.names = (*names, *((SPREAD,) if independent else ()), MISSING)
        self.capital: dict[str, Capital] = {name: Capital() for name in self.names}
        self.ringing: dict[str, int] = {}  # by name: the event that says so, until acknowledged

    @property
    def threshold(self) -> float:
        """The capital at which a watch rings."""
        return len(self.names) / LEVEL

    def close(self, pulls: Sequence[ClosedPull]) -> list[str]:
        """Bet on a tick that is over; return the watches that ring and did not yet."""
        gains, threshold = self._gains(pulls), self.threshold
        rings = []
        for name in self.names:
            if name in gains and name not in self.ringing:  # until somebody has looked
                value = self.capital[name].bet(gains[name])
                if value >= threshold:
                    rings.append(name)
        return rings

    def restart(self, name: str) -> None:
        """Begin anew with a watch that rang, now that somebody has looked."""
        self.ringing.pop(name, None)
        if name in self.capital:
            self.capital[name] = Capital()

    def value(self, name: str) -> float:
        """Return the capital of a watch."""
        return self.capital[name].value

    def _gains(self, pulls: Sequence[ClosedPull]) -> dict[str, list[float]]:
        """Logarithms of what each bet of a watch earns."""
        gains: dict[str, list[float]] = {}
        whole = all(pull.reward is not None for pull in pulls)
        if not whole:  # otherwise there is nothing to bet on
            gains[MISSING] = missing_gains(pulls, self.num_states)
        seen = [pull for pull in pulls if pull.reward is not None and pull.high > pull.low]
        if not self.independent or not seen:
            return gains
        self._add_reward_gains(gains, seen)
        if len(pulls) > 1 and whole:
            gains[SPREAD] = spread_gains(pulls)
        return gains

    def _add_reward_gains(self, gains: dict[str, list[float]], seen: list[ClosedPull]) -> None:
        if not self.kinds:
            total = reward_gains(seen)
        else:
            total = [0.0] * len(BETS)
            for kind in {pull.kind: None for pull in seen}:
                found = reward_gains([pull for pull in seen if pull.kind == kind])
                total = [one + other for one, other in zip(total, found, strict=True)]
                gains[f"{LOW}: {kind}"] = found[: len(SHIFTS)]
                gains[f"{HIGH}: {kind}"] = found[len(SHIFTS) :]
        gains[LOW], gains[HIGH] = total[: len(SHIFTS)], total[len(SHIFTS) :]

    def to_data(self) -> dict[str, Any]:
        """Return the state of all watches as plain data."""
        return {
            "capital": {name: [one.ticks, one.bets] for name, one in self.capital.items()},
            "ringing": self.ringing,
        }

    def load(self, data: dict[str, Any]) -> None:
        """Take over what `to_data` wrote."""
        for name, (ticks, bets) in data["capital"].items():
            self.capital[name] = Capital(ticks, list(bets))
        self.ringing = dict(data["ringing"])


class Capital:
    """The capital of one watch, divided among its bets and those still to be made."""

    __slots__ = ("bets", "ticks")

    def __init__(self, ticks: int = 0, bets: list[float] | None = None) -> None:
        self.ticks = ticks
        self.bets = bets or []

    @property
    def waiting(self) -> float:
        """The share that is not at stake yet."""
        return 1 / (self.ticks + 1)

    @property
    def value(self) -> float:
        """What it is worth now."""
        at_stake = sum(self.bets) / len(self.bets) if self.bets else 0.0
        return at_stake + self.waiting

    def bet(self, gains: Sequence[float]) -> float:
        """Stake the next share and take the gains, given as logarithms; return the value."""
        share = self.waiting - 1 / (self.ticks + 2)
        bets = self.bets or [0.0] * len(gains)
        self.bets = [
            (bet + share) * exp(min(gain, MOST_LOG)) for bet, gain in zip(bets, gains, strict=True)
        ]
        self.ticks += 1
        return self.value


def reward_gains(pulls: Sequence[ClosedPull]) -> list[float]:
    """Logarithms of what bets on lower rewards earn, and of what bets on higher ones do.

    With odds of the mean m shifted by a factor 1 + v, 1 + l (x - m) is (1 + v x) / (1 + v m).
    """
    scaled = []
    for pull in pulls:
        span = pull.high - pull.low
        mean = min(max((pull.expected - pull.low) / span, LEAST_MEAN), 1 - LEAST_MEAN)
        assert pull.reward is not None
        scaled.append((mean, (pull.reward - pull.low) / span))
    parts = [scaled[first : first + AT_ONCE] for first in range(0, len(scaled), AT_ONCE)]
    gains = [0.0] * len(BETS)
    for part in parts:
        for bet, v in enumerate(BETS):
            earned = 1.0
            for mean, x in part:
                earned *= (1 + v * x) / (1 + v * mean)
            gains[bet] += log(earned)
    return gains


def spread_gains(pulls: Sequence[ClosedPull]) -> list[float]:
    """Logarithms of what bets on a large spread of the tick's reward earn."""
    variance = fsum([pull.variance for pull in pulls])
    if variance <= 0:
        return [0.0] * len(SPREADS)
    off = fsum([(pull.reward or 0.0) - pull.expected for pull in pulls])
    excess = off * off / variance - 1
    return [log1p(share * excess) for share in SPREADS]


def missing_gains(pulls: Sequence[ClosedPull], num_states: int) -> list[float]:
    """Logarithms of what bets on missing results earn, by last state and odds."""
    gains = np.zeros((num_states, len(ODDS)))
    strata: dict[str, list[ClosedPull]] = {}
    for pull in pulls:
        if pull.last_state is not None:
            strata.setdefault(pull.kind, []).append(pull)
    for stratum in strata.values():
        missing = sum(pull.reward is None for pull in stratum)
        if missing in (0, len(stratum)):
            continue
        for state in range(num_states):
            own = [pull for pull in stratum if pull.last_state == state]
            if 0 < len(own) < len(stratum):
                there = sum(pull.reward is None for pull in own)
                gains[state] += hypergeometric_gains(len(own), len(stratum), missing, there)
    found: list[float] = gains.ravel().tolist()
    return found


def hypergeometric_gains(own: int, total: int, missing: int, there: int) -> FloatArray:
    """Log likelihood ratios, for each of `ODDS`, of `there` of `missing` falling among `own`."""
    least, most = max(0, missing - (total - own)), min(own, missing)
    counts = [
        log(comb(own, x)) + log(comb(total - own, missing - x)) for x in range(least, most + 1)
    ]
    weights = np.array(counts) - log(comb(total, missing))
    x = np.arange(least, most + 1)
    return np.array([there * log(w) - log(exponentials(weights + x * log(w)).sum()) for w in ODDS])
