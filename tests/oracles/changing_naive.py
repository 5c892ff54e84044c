"""A world that changes, in plain numpy: arms that all move in every step, and beliefs of them."""

import numpy as np


def phase_of(changing, t):
    """Return the bandit of step t."""
    return [
        bandit for at, bandit in zip(changing.begins, changing.bandits, strict=False) if at <= t
    ][-1]


class Filter:
    """The law of every arm's state, given what was seen so far."""

    def __init__(self, changing, start):
        self.changing, self.time = changing, 1
        self.laws = []
        for k, arm in enumerate(changing.arms):
            law = np.eye(arm.num_states)[start.last_state[k]]
            if not arm.always_seen:
                law = law @ arm.active
                for _ in range(start.elapsed[k] - 1):
                    law = law @ arm.passive
            self.laws.append(law)

    def step(self, pulled, states):
        """Return the reward expected in this step and the chance of each state that is seen.

        `states` [K]: of arms pulled now; of arms that are always seen, in the next step.
        """
        arms = phase_of(self.changing, self.time).arms
        expected, chances = 0.0, []
        for k, arm in enumerate(arms):
            acted = k in pulled
            expected += self.laws[k] @ (arm.rewards if acted else arm.passive_rewards)
            moves = arm.active if acted else arm.passive
            if arm.always_seen:
                chances.append((self.laws[k] @ moves)[states[k]])
                self.laws[k] = np.eye(arm.num_states)[states[k]]
                continue
            if acted:
                chances.append(self.laws[k][states[k]])
                self.laws[k] = np.eye(arm.num_states)[states[k]]
            self.laws[k] = self.laws[k] @ moves
        self.time += 1
        return expected, chances


def simulate(changing, start, choose, horizon, rng):
    """Move every arm in every step; return arms and states [T, N] seen, and the rewards [T]."""
    laws = Filter(changing, start).laws
    now = [int(rng.choice(len(law), p=law)) for law in laws]
    last, seen = np.array(start.last_state), 1 - np.array(start.elapsed)
    pulls, shown, paid = [], [], []
    for t in range(1, horizon + 1):
        bandit = phase_of(changing, t)
        pulled = choose(bandit, last, t - seen)
        pulls.append(pulled)
        paid.append(0.0)
        before = list(now)
        for k, arm in enumerate(bandit.arms):
            acted = k in pulled
            paid[-1] += (arm.rewards if acted else arm.passive_rewards)[now[k]]
            moves = arm.active if acted else arm.passive
            now[k] = int(rng.choice(arm.num_states, p=moves[now[k]]))
            if arm.always_seen:
                last[k], seen[k] = now[k], t
            elif acted:
                last[k], seen[k] = before[k], t
        shown.append([last[k] for k in pulled])
    return np.array(pulls), np.array(shown), np.array(paid)
