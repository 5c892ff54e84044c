"""Priors as files: what kinds of arms may be, what was seen of each arm, and when it was last.

A JSON file::

    {"format": "restive prior 2", "states": ["bad", "good"], "rewards": [0.0, 1.0],
     "pulls": 5, "log": {"sightings": 5123, "span": "2026-01-01 to 2026-06-30"},
     "kinds": [{"name": "north", "candidates": [[[0.9, 0.1], [0.2, 0.8]], ...], "weights": [...]}],
     "arms": [{"name": "A17", "kind": 0, "last_state": 1, "elapsed": 3,
               "evidence": [[last state, elapsed, next state, count], ...]}]}

Arms that are always seen have "seen": "always" beside "states" and, where pulls change how they
move, what followed steps in which they were not pulled as "unpulled" beside "evidence". Arms that
pay while not pulled have "passive_rewards" beside "rewards". A candidate is its matrix
or, where pulling changes how it moves, {"active": ..., "passive": ...}. A kind with the candidates
of an earlier one has that one's name instead. A kind with a continuous prior has parameters:
"dirichlet": {"active": ..., "particles": M}. Where the log's arms change, "forget_after" is how
long it advises a learner to remember, and "evidence" is of so many last steps. "shape" is for
readers: shares and chances with 90% intervals, as the kind's arms tell them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted
from restive.errors import ProblemError, RestiveError
from restive.files import replacing
from restive.learn.evidence import Evidence
from restive.learn.law import Law, Points
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.logs.counts import LogCounts
from restive.logs.finite import SharedCandidates
from restive.logs.fitted import FittedLog
from restive.logs.log import names_or_none
from restive.logs.population import Population
from restive.problem.arm import Arm
from restive.problem.beliefs import BeliefState
from restive.problem.toml_text import read_text

__all__ = ["PriorFile", "counts_of_arms", "evidence_of_rows", "load_prior", "write_prior"]

FORMAT = "restive prior 2"


@dataclass(frozen=True, eq=False, repr=False)
class PriorFile:
    """What `restive fit` found, read back.

    An agent takes over as `TSDE(found.prior, num_pulls, start=found.start)`.
    """

    names: tuple[str, ...]  # [K]
    states: tuple[str, ...]
    kinds: dict[str, ArmPrior | DirichletArmPrior]  # before anything was seen
    kind_of: tuple[str, ...]  # [K]
    start: BeliefState
    counts: LogCounts
    log: dict[str, Any]
    forget_after: float | None = None  # what to give a learner, where the log's arms change
    pulls: int = 1  # in each step, as the fit was asked for
    law: Law | None = None  # of all arms, where it was estimated
    traits: dict[str, tuple[float, ...]] = field(default_factory=dict)  # of kinds, in the law

    def __repr__(self) -> str:
        arms, kinds = counted(len(self.names), "arm"), counted(len(self.kinds), "kind")
        return f"PriorFile({arms} of {kinds})"

    def evidence(self, k: int) -> Evidence:
        """Return what was seen of arm k."""
        return self.counts.evidence(k)

    def any_kind(self) -> ArmPrior | DirichletArmPrior:
        """Return what an arm of a kind that is not in the file may be: like any arm that is.

        Laws of kinds are mixed by their numbers of arms. Dirichlet laws have no mixture here: such
        an arm may be anything.
        """
        kinds, size = self.kinds, len(self.names)
        mixed: list[tuple[float, ArmPrior]] = []
        for kind, law in kinds.items():
            if isinstance(law, DirichletArmPrior):
                passive = None if law.passive is None else (law.passive > 0).astype(np.float64)
                return DirichletArmPrior(
                    (law.active > 0).astype(np.float64), passive,
                    rewards=law.rewards, passive_rewards=law.passive_rewards,
                    particles=law.num_particles, states=law.states, seen=law.seen,
                )  # fmt: skip
            share = self.kind_of.count(kind) / size if size else 1 / len(kinds)
            mixed.append((share, law))
        first = mixed[0][1]
        if all(law.candidates is first.candidates for _, law in mixed):
            return first.with_weights(np.sum([share * law.weights for share, law in mixed], axis=0))
        return ArmPrior(
            [arm for _, law in mixed for arm in law.candidates],
            np.concatenate([share * law.weights for share, law in mixed]),
        )

    @cached_property
    def prior(self) -> IndependentPrior:
        """What the arms may be, now that the log was seen."""
        found: dict[int, ArmPrior | DirichletArmPrior] = {}
        for kind, prior in self.kinds.items():
            own = np.array([k for k, of in enumerate(self.kind_of) if of == kind], dtype=np.int64)
            if isinstance(prior, DirichletArmPrior):
                found |= {k: prior.given(self.evidence(k)) for k in own.tolist()}
                continue
            for some, weights in SharedCandidates(prior, self.names).blocks(self.counts, own):
                for k, row in zip(some.tolist(), weights, strict=True):
                    found[k] = prior.informed(row)
        return IndependentPrior([found[k] for k in range(len(self.names))])


def write_prior(fitted: FittedLog, path: str | PathLike[str], num_pulls: int | None = None) -> None:
    """Write the prior of a fitted log, arm by arm: the file of many arms is never held whole."""
    head = {
        "format": FORMAT,
        "states": list(fitted.log.states),
        "rewards": fitted.rewards.tolist(),
        "pulls": fitted.usual_pulls if num_pulls is None else num_pulls,
        "log": {"sightings": fitted.log.num_sightings, "span": fitted.log.span},
        "kinds": _kinds_data(fitted),
    }
    if fitted.population is not None:
        head["law"] = _law_data(fitted.population, fitted.log.kinds)
    if fitted.passive_rewards is not None:
        head["passive_rewards"] = fitted.passive_rewards.tolist()
    if fitted.forgetting is not None and fitted.forgetting.forget_after is not None:
        head["forget_after"] = fitted.forgetting.forget_after
    counts = fitted.counts if fitted.recent is None else fitted.recent
    table = fitted.arms
    if fitted.seen == "always":
        head["seen"] = "always"
    columns = np.stack([*counts.unpacked(counts.cells), counts.counts], axis=1)
    unpulled = columns[:, 0] >= counts.num_states
    columns[unpulled, 0] -= counts.num_states
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "arms": [\n')
        for k, name in enumerate(table.names):
            own = slice(counts.starts[k], counts.starts[k + 1])
            arm = {
                "name": name,
                "kind": int(fitted.log.kind_of[k]),
                "last_state": int(table.last_state[k]),
                "elapsed": int(table.elapsed[k]),
                "evidence": columns[own][~unpulled[own]].tolist(),
            }
            if counts.by_mode:
                arm["unpulled"] = columns[own][unpulled[own]].tolist()
            file.write((",\n" if k else "") + json.dumps(arm, ensure_ascii=False))
        file.write("\n]}\n")


def _law_data(population: Population, kinds: Sequence[str]) -> dict[str, Any]:
    law = population.law
    return {
        "theta": law.shared.theta.tolist(),
        "log_base": law.shared.log_base.tolist(),
        "base": law.shared.base.tolist(),
        "start": None if law.share is None else law.share.tolist(),
        "draws": law.draws.tolist(),
        "traits": dict(zip(kinds, population.traits.tolist(), strict=True)),
    }


def _law_of(data: dict[str, Any]) -> Law:
    points = Points(*(np.array(data[name]) for name in ("theta", "log_base", "base")))
    share = None if data["start"] is None else np.array(data["start"])
    return Law(points, points, share, np.array(data["draws"]))


def _kinds_data(fitted: FittedLog) -> list[dict[str, Any]]:
    """Kinds as data; those with the candidates of an earlier one name it, and these stand once."""
    found, first_with = [], dict[int, str]()
    for name, prior in zip(fitted.log.kinds, fitted.kind_priors, strict=True):
        data = _kind_data(name, prior)
        if isinstance(prior, ArmPrior):
            first = first_with.setdefault(id(prior.candidates), name)
            if first != name:
                data["candidates"] = first
        if name in fitted.kind_shapes:
            data["shape"] = fitted.kind_shapes[name].to_data()
        found.append(data)
    return found


def _kind_data(name: str, prior: Any) -> dict[str, Any]:
    if isinstance(prior, ArmPrior):
        matrices = [_matrix_data(arm.active, arm.passive) for arm in prior.candidates]
        return {"name": name, "candidates": matrices, "weights": prior.weights.tolist()}
    if isinstance(prior, DirichletArmPrior):
        data = {"active": prior.active.tolist(), "particles": prior.num_particles}
        if prior.passive is not None:
            data["passive"] = prior.passive.tolist()
        return {"name": name, "dirichlet": data}
    raise RestiveError(
        f"the prior of kind {name!r} is a {type(prior).__name__}, which cannot be written; keep it "
        "in your program"
    )


def _matrix_data(active: NDArray[Any], passive: NDArray[Any]) -> Any:
    if np.array_equal(active, passive):
        return active.tolist()
    return {"active": active.tolist(), "passive": passive.tolist()}


def load_prior(path: str | PathLike[str]) -> PriorFile:
    """Read a prior that `restive fit` wrote; a mistake is named by its place."""
    try:
        data = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ProblemError(f"{path}: is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ProblemError(
            f"{path}: is not a prior that `restive fit` wrote (format {FORMAT!r}), or one of an "
            "older version: run fit again"
        )
    try:
        return _read(data)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ProblemError(
            f"{path}: a field is missing or is not what it must be: {error}"
        ) from None


def _read(data: dict[str, Any]) -> PriorFile:
    states = tuple(str(name) for name in data["states"])
    alike = {
        "rewards": data["rewards"],
        "passive_rewards": data.get("passive_rewards"),
        "states": names_or_none(states),
        "seen": data.get("seen", "pulled"),
    }
    kinds: dict[str, ArmPrior | DirichletArmPrior] = {}
    for kind in data["kinds"]:
        kinds[str(kind["name"])] = _kind(kind, alike, kinds)
    labels = list(kinds)
    arms = data["arms"]
    for k, arm in enumerate(arms):
        if not 0 <= arm["kind"] < len(labels):
            raise ProblemError(f"arm {k} ({arm['name']!r}): there is no kind {arm['kind']}")
    start = BeliefState([a["last_state"] for a in arms], [a["elapsed"] for a in arms])
    return PriorFile(
        tuple(str(a["name"]) for a in arms),
        states,
        kinds,
        tuple(labels[a["kind"]] for a in arms),
        start,
        counts_of_arms(arms, len(states), start),
        data.get("log", {}),
        _memory(data.get("forget_after")),
        int(data["pulls"]),
        _law_of(data["law"]) if "law" in data else None,
        {str(kind): tuple(row) for kind, row in data.get("law", {}).get("traits", {}).items()},
    )


def _memory(value: Any) -> float | None:
    if value is not None and not (isinstance(value, int | float) and 1 <= value < inf):
        raise ProblemError(f"forget_after must be a number from 1 on, got {value!r:.60}")
    return value


def _kind(
    data: dict[str, Any], alike: dict[str, Any], earlier: dict[str, ArmPrior | DirichletArmPrior]
) -> ArmPrior | DirichletArmPrior:
    """Return a kind's prior; `alike` is what all arms have in common."""
    if "dirichlet" in data:
        own = data["dirichlet"]
        return DirichletArmPrior(
            own["active"], own.get("passive"), particles=own["particles"], **alike
        )
    if isinstance(data["candidates"], str):
        first = earlier.get(data["candidates"])
        if not isinstance(first, ArmPrior):
            raise ProblemError(
                f"kind {data['name']!r}: no earlier kind {data['candidates']!r} has candidates"
            )
        return first.with_weights(data["weights"])
    candidates = [_arm(matrix, alike) for matrix in data["candidates"]]
    return ArmPrior(candidates, data["weights"])


def _arm(candidate: Any, alike: dict[str, Any]) -> Arm:
    if isinstance(candidate, dict):
        return Arm(candidate["active"], candidate["passive"], **alike)
    return Arm(candidate, None, **alike)


def evidence_of_rows(rows: Iterable[Sequence[int]], size: int) -> Evidence:
    """Return what was seen of an arm, from cells whose last states may be rows (`logs.counts`)."""
    cells = [list(row) for row in rows]
    return Evidence.from_data(
        {
            "num_states": size,
            "cells": [row for row in cells if row[0] < size],
            "unpulled_cells": [[s - size, *rest] for s, *rest in cells if s >= size],
        }
    )


def counts_of_arms(arms: Sequence[dict[str, Any]], size: int, start: BeliefState) -> LogCounts:
    """Return what was seen of arms, from rows of a prior file; `size` is their number of states.

    Of a cell in "evidence", a last state beyond these is a row (`logs.counts`): not pulled then.
    """
    found = []
    for k, arm in enumerate(arms):  # checks the cells
        own = [[s + size, *rest] for s, *rest in arm.get("unpulled", [])]
        rows = [*arm["evidence"], *own]
        found.append(sorted(rows, key=lambda row: (row[1], row[0], row[2])) if own else rows)
        evidence_of_rows(rows, size)
        if not 0 <= arm["last_state"] < size:
            raise ProblemError(f"arm {k} ({arm['name']!r}): there is no state {arm['last_state']}")
    cells = np.array([row for rows in found for row in rows], dtype=np.int64)
    last, elapsed, following, counts = cells.reshape(-1, 4).T
    by_mode = bool((last >= size).any())
    return LogCounts(
        size,
        np.concatenate([[0], np.cumsum([len(rows) for rows in found])]).astype(np.int64),
        (elapsed * (size * (1 + by_mode)) + last) * size + following,
        counts.copy(),
        start.last_state,
        -start.elapsed,
        by_mode,
    )
