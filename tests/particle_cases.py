"""Sightings of simulated arms, and a small loop that follows them as a learner does."""

from __future__ import annotations

import numba
import numpy as np

import restive as rs
from restive.kernels.learn.particles import LOST, count_one
from restive.kernels.learn.weighing import effective_sample_size
from restive.learn.particles.arm import fresh_arm, grown, renew_arm


@numba.njit
def _walk(active, passive, ages, uniforms, first):
    """States in which an arm is seen, by drawing its state at every step of the way."""
    count = len(ages)
    states, place, used = np.empty(count + 1, dtype=np.int64), first, 0
    states[0] = first
    for i in range(count):
        for step in range(ages[i]):
            row = active[place] if step == 0 else passive[place]
            u, total, place = uniforms[used], 0.0, len(row) - 1
            used += 1
            for j in range(len(row)):
                total += row[j]
                if u < total:
                    place = j
                    break
        states[i + 1] = place
    return states


def some_ages(count, rng):
    """Half the ages 1, half 1 + geometric(1/4)."""
    return np.where(rng.random(count) < 0.5, 1, 1 + rng.geometric(0.25, count))


def sightings(arm, ages, rng):
    """Columns (state, age, next state) of a visible walk."""
    states = _walk(arm.active, arm.passive, ages, rng.random(int(ages.sum())), arm.num_states - 1)
    return states[:-1], ages, states[1:]


def cells_of(columns):
    cells = {}
    for cell in zip(*(column.tolist() for column in columns), strict=True):
        cells[cell] = cells.get(cell, 0) + 1
    return cells


def evidence_of(columns, num_states=2):
    evidence = rs.Evidence(num_states)
    evidence.add(*columns)
    return evidence


@numba.njit  # not kept on disk, where a change in what it calls would not be seen
def _weigh(arm, state, age, seen):
    """Multiply each weight by b(state, age)[seen], a step at a time."""
    num_rows, size, count = arm.matrices.shape
    row, following = np.empty(size), np.empty(size)
    for m in range(count):
        for j in range(size):
            row[j] = arm.matrices[state, j, m]
        for _ in range(age - 1):
            for j in range(size):
                following[j] = 0.0
                for i in range(size):
                    following[j] += row[i] * arm.matrices[num_rows - size + i, j, m]
            row[:] = following
        arm.weights[m] *= row[seen]
    arm.weights[:] /= arm.weights.max()


@numba.njit
def must_renew(arm):
    return effective_sample_size(arm.weights) < LOST * arm.effective_size[0]


@numba.njit
def _follow(arm, first, states, ages, seen):
    """Take in sightings until particles must be renewed; -1 - i where there is no room for i."""
    for i in range(first, len(states)):
        if not count_one(arm, states[i], ages[i], seen[i], 1.0):
            return -1 - i
        _weigh(arm, states[i], ages[i], seen[i])
        if must_renew(arm):
            return i + 1
    return len(states)


class Follower:
    """One arm's posterior, one sighting at a time."""

    def __init__(self, prior, key):
        self.prior, self.key = prior.rows, np.uint64(key)
        self.arm = fresh_arm(self.prior)
        self.rungs = []

    def see(self, columns):
        done = 0
        while done < len(columns[0]):
            done = _follow(self.arm, done, *columns)
            if done < 0:
                self.arm, done = grown(self.arm), -1 - done
            elif must_renew(self.arm):
                self.rungs.append(renew_arm(self.prior, self.arm, self.key))
        return self

    @property
    def weights(self):
        return self.arm.weights / self.arm.weights.sum()

    def mean(self, values):
        return float((self.weights * values).sum())

    @property
    def p01(self):
        return self.arm.matrices[0, 1]

    @property
    def p11(self):
        return self.arm.matrices[1, 1]
