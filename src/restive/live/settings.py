"""What a live agent is told once, when its file is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from restive.arguments import (
    checked_count,
    checked_elapsed,
    checked_seed,
    shown,
    suggestion,
)
from restive.errors import ProblemError
from restive.learn.learner_text import learner_from_text
from restive.learn.learners import Relative, learner_of
from restive.live.clock import Clock
from restive.live.words import PLAIN, Words
from restive.plan.policies.registry import policy_mapping

__all__ = ["AS_NOT_PULLED", "LEAVE", "NOT_PULLED", "REFUSE", "UNSEEN", "Settings", "learner_table"]

# Results that are no states.
UNSEEN = "unseen"  # pulled, and what was seen is not known
NOT_PULLED = "not-pulled"
LEAVE = "leave"  # unseen, and the arm leaves for ever

# What happens where pulls stay without a result, for arms that move differently when pulled.
REFUSE, AS_NOT_PULLED = "refuse", "as-not-pulled"


@dataclass(frozen=True)
class Settings:
    """How a live agent works; checked."""

    num_pulls: int
    policy_mapping: str = "whittle"
    clock: Clock = field(default_factory=Clock.calls)
    seed: int = 0
    learner: dict[str, Any] = field(default_factory=lambda: {"name": "tsde"})  # with its options
    audit_pulls: int = 0  # of num_pulls, drawn evenly among all arms
    rest: int = 0  # ticks for which an arm is not pulled again after a pull that showed no state
    missing: str | None = None
    outcomes: dict[str, int | str] = field(default_factory=dict)  # what files say -> results
    states: tuple[str, ...] = ()  # names of states that files may use too
    mixing_time: int | None = None
    max_elapsed: int | None = None
    words: Words = PLAIN  # what the operators call things
    on_alarm: str | None = None  # "forget" what was seen before it began; else people decide

    def __post_init__(self) -> None:
        checked_count(self.num_pulls, "num_pulls")
        checked_seed(self.seed)
        checked_count(self.audit_pulls, "audit_pulls", 0, self.num_pulls)
        checked_count(self.rest, "rest", 0)
        if not isinstance(self.policy_mapping, str):
            raise ProblemError(
                "policy_mapping must be a registered name, which the file can hold; register your "
                "own with register_mapping"
            )
        policy_mapping(self.policy_mapping)
        if not isinstance(learner_of(self.learner), Relative):
            raise ProblemError(
                f"learner must be one that has a posterior, such as tsde or mean_index, got "
                f"{shown(self.learner.get('name'))}"
            )
        if not isinstance(self.clock, Clock):
            raise ProblemError(f"clock must be a Clock, got {shown(self.clock)}")
        if not isinstance(self.words, Words):
            raise ProblemError(f"words must be Words, got {shown(self.words)}")
        if self.missing not in (None, REFUSE, AS_NOT_PULLED):
            raise ProblemError(
                f"missing must be {REFUSE!r} or {AS_NOT_PULLED!r}, got {shown(self.missing)}"
            )
        if self.on_alarm not in (None, "forget"):
            raise ProblemError(
                f"on_alarm must be 'forget', or be left out, got {shown(self.on_alarm)}"
            )
        if self.mixing_time is not None:
            checked_count(self.mixing_time, "mixing_time")
        if self.max_elapsed is not None:
            checked_elapsed(self.max_elapsed)
        for word, meaning in self.outcomes.items():
            if not word.strip():
                raise ProblemError("an outcome has no word: write it as no_answer=not-pulled")
            checked_result(meaning, f"outcome {shown(word)}")
            self._require_state(word, meaning)

    def _require_state(self, word: str, meaning: int | str) -> None:
        """Raise where an outcome means a state that is not there, or one of another name."""
        if not self.states or not isinstance(meaning, int):
            return
        order = ", ".join(f"{number} is {name}" for number, name in enumerate(self.states))
        if meaning >= len(self.states):
            raise ProblemError(f"outcome {shown(word)}: there is no state {meaning}; {order}")
        turned = self.states[::-1]
        if self.states != turned and all(self.outcomes.get(s) == k for k, s in enumerate(turned)):
            raise ProblemError(
                f"states go from the worst to the best, which are here {order}, and the outcome "
                f"{shown(word)} says otherwise: did you mean {','.join(reversed(self.states))}?"
            )
        if word in self.states and self.states[meaning] != word:
            raise ProblemError(
                f"outcome {shown(word)} would mean the state {self.states[meaning]!r}: {order}; "
                f"write {word} = {self.states.index(word)}"
            )

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Settings:
        """Return settings that were written as plain data, or in a TOML file."""
        known = [one.name for one in fields(cls)]
        for key in data:
            if key not in known:
                raise ProblemError(f"settings: there is no {shown(key)}; {suggestion(key, known)}")
        if "num_pulls" not in data:
            raise ProblemError("settings: num_pulls is missing")
        given = dict(data)
        if "clock" in data:
            given["clock"] = Clock.from_data(data["clock"])
        if "learner" in data:
            given["learner"] = learner_table(data["learner"])
        if "words" in data:
            given["words"] = Words.from_data(data["words"])
        if not isinstance(given.get("outcomes", {}), dict):
            raise ProblemError(f"settings: outcomes must be a table, got {shown(data['outcomes'])}")
        names = given.get("states", ())
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise ProblemError(f"settings: states must be a list of names, got {shown(names)}")
        return cls(**(given | {"states": tuple(names)}))

    def to_data(self) -> dict[str, Any]:
        """Return the settings as plain data; what it would be anyway is left out."""
        data = asdict(self) | {"clock": self.clock.to_data(), "states": list(self.states)}
        del data["words"]
        if not self.rest:
            del data["rest"]
        if self.on_alarm is None:
            del data["on_alarm"]
        if self.learner == {"name": "tsde"}:
            del data["learner"]
        own = self.words.to_data()
        return data | ({"words": own} if own else {})

    def words_event(self, words: Mapping[str, str], outcomes: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is journaled where words change, or what some outcomes mean."""
        Words.from_data(words)
        data: dict[str, Any] = {
            "words": Words.from_data(self.words.to_data() | dict(words)).to_data()
        }
        if outcomes:
            data["outcomes"] = self.outcomes | {
                word: self.states.index(means) if means in self.states else means
                for word, means in outcomes.items()
            }
        self.after_words(data)  # which finds what is wrong
        return data

    def after_words(self, event: Mapping[str, Any]) -> Settings:
        """Return the settings after an event of new words; results are journaled as states."""
        outcomes = event.get("outcomes", self.outcomes)
        return replace(self, words=Words.from_data(event["words"]), outcomes=outcomes)

    def meanings(self) -> str:
        """Say what each word in a results file means; "" where all of them are ours."""
        pull = self.words.pull
        said = {UNSEEN: f"a {pull} without a result", NOT_PULLED: f"no {pull} made",
                LEAVE: "leaves for ever"}  # fmt: skip
        known = {name: state for state, name in enumerate(self.states)} | self.outcomes
        return ", ".join(
            f"{word} = {said[means]}" if isinstance(means, str)
            else f"{word} = {means}" if word == self.state_name(means)
            else f"{word} = counts as {self.state_name(means)}"
            for word, means in known.items()
        )  # fmt: skip

    def result_of(self, word: str) -> int | str:
        """Return what a cell of a results file means: an outcome, a state's name or its number."""
        if word.isdecimal() and len(word) < 10 and word not in self.outcomes:
            return int(word) if word not in self.states else self.states.index(word)
        return self.result_named(word)

    def result_named(self, word: str) -> int | str:
        """Return what an outcome or the name of a state means."""
        if word in self.outcomes:
            return self.outcomes[word]
        if word in self.states:
            return self.states.index(word)
        # spreadsheets write capitals, and people blanks
        alike = {known for known in (*self.outcomes, *self.states) if _plain(known) == _plain(word)}
        if len(alike) == 1:
            return self.result_named(alike.pop())
        if word in (UNSEEN, NOT_PULLED):
            return word
        # whoever has words of their own would wonder what ours are
        ours = () if self.outcomes else (UNSEEN, NOT_PULLED)
        known = dict.fromkeys([*self.outcomes, *self.states, *ours])
        raise ProblemError(f"unknown outcome {shown(word)}; {suggestion(word, known)}")

    def state_of(self, word: str, what: str) -> int:
        """Return the state of a name or a number in a file, or raise."""
        try:
            found = self.result_of(word)
        except ProblemError:
            found = word
        if isinstance(found, int):
            return found
        names = [
            *self.states,
            *(one for one, means in self.outcomes.items() if isinstance(means, int)),
        ]
        listed = f"{', '.join(dict.fromkeys(names))}, or its number" if names else "its number"
        raise ProblemError(f"{what} must be a state: {listed}, got {shown(word)}")

    @property
    def has_names(self) -> bool:
        """Whether states have names."""
        return bool(self.states) or any(isinstance(one, int) for one in self.outcomes.values())

    def state_name(self, state: int) -> str:
        """Return the name of a state: its own, the first outcome that means it, or its number."""
        if state < len(self.states):
            return self.states[state]
        return next((word for word, means in self.outcomes.items() if means == state), str(state))

    def state_text(self, state: int) -> str:
        """Return what a person reads of a state: its name, or "state 0" and so on."""
        name = self.state_name(state)
        return f"state {state}" if name == str(state) else name

    def choices(self, num_states: int, *, unseen: bool = True) -> dict[str, str]:
        """Return what may be said of a pull of an arm, each with what a person reads.

        Parameters
        ----------
        num_states
            Of the arm.
        unseen
            Whether this file takes pulls that were made and not seen.
        """
        told = {word: word_text(word) for word, means in self.outcomes.items()
                if (means < num_states if isinstance(means, int) else unseen or means != UNSEEN)
                }  # fmt: skip
        meant = set(self.outcomes.values())
        told |= {
            self.state_name(state): word_text(self.state_text(state))
            for state in range(num_states)
            if state not in meant
        }
        # whoever has a word for pulls that came to nothing would wonder what ours means beside it
        if unseen and not meant & {UNSEEN, NOT_PULLED}:
            told[UNSEEN] = self.outcome_text(UNSEEN)
        if NOT_PULLED not in meant:
            told[NOT_PULLED] = self.outcome_text(NOT_PULLED)
        return told

    def outcome_word(self, result: int | str) -> str:
        """Return what a results file says of a pull: an outcome's word, a state's name, or ours."""
        if isinstance(result, int) and result < len(self.states):
            return self.states[result]
        own = (word for word, means in self.outcomes.items() if means == result)
        return next(own, str(result))

    def said(self, word: str) -> str:
        """Return what a person reads of a word that somebody chose."""
        return word_text(word) if word in self.outcomes else self.outcome_text(self.result_of(word))

    def outcome_text(self, result: int | str) -> str:
        """Return what a person reads of a pull: the name of the state, or why there is none.

        Where an outcome of theirs means that, it is their word.
        """
        if isinstance(result, int):
            return word_text(self.state_text(result))
        own = [word_text(word) for word, means in self.outcomes.items() if means == result]
        if result == UNSEEN and not own:  # as of who came back after a wrong number
            own = [word_text(word) for word, means in self.outcomes.items() if means == NOT_PULLED]
        if own:  # who left is told by the word for it; which of several it was is not kept
            return " or ".join(own) if result == LEAVE else own[0]
        return {UNSEEN: "not reached", NOT_PULLED: f"no {self.words.pull} made",
                "open": "no result yet"}.get(result, result)  # fmt: skip


def word_text(word: str) -> str:
    """Return a word of a file as a person reads it."""
    return word.replace("_", " ")


def _plain(word: str) -> str:
    return word.casefold().replace(" ", "_")


def learner_table(value: Any) -> dict[str, Any]:
    """Return a learner's name and options as a table."""
    if isinstance(value, str):
        return learner_from_text(value)
    if not isinstance(value, Mapping) or "name" not in value:
        raise ProblemError(
            "learner must be a name, or a table with its name and options such as "
            f"{{'name': 'mean_index', 'learn_kinds': 'epochs'}}, got {shown(value)}"
        )
    return dict(value)


def checked_result(value: Any, what: str) -> int | str:
    """Return a state or one of the words that stand for none, or raise."""
    if isinstance(value, str):
        if value not in (UNSEEN, NOT_PULLED, LEAVE):
            raise ProblemError(
                f"{what}: must be a state's number, {UNSEEN!r}, {NOT_PULLED!r} or {LEAVE!r}, got "
                f"{shown(value)}"
            )
        return value
    return checked_count(value, f"{what}: the state", 0)
