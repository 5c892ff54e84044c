"""The regenerative cycle algorithm in plain Python (Tekin and Liu 2012).

`single_play` is RCA as a program that plays one arm at a time: it yields an arm and is sent the
state in which it was seen. `NaiveRCAM` is RCA-M: it keeps what was seen in each block and derives
everything from it anew.
"""

import math
from itertools import count

from oracles.ucb1_naive import best, scaled


def single_play(rewards, exploration):
    """Play RCA: SB1 until the regenerative state, SB2 until it returns, SB3 the return."""
    rewards = scaled(rewards)
    arms = range(len(rewards))
    state_of, total, length = {}, dict.fromkeys(arms, 0.0), dict.fromkeys(arms, 0)

    def largest_index():
        t2 = sum(length.values())
        radius = {k: math.sqrt(exploration * math.log(t2) / length[k]) for k in arms}
        return max(arms, key=lambda k: (total[k] / length[k] + radius[k], -k))

    for block in count():
        k = block if block in arms else largest_index()
        state = yield k
        state_of.setdefault(k, state)
        while state != state_of[k]:  # SB1
            state = yield k
        while True:  # SB2
            total[k] += rewards[k][state]
            length[k] += 1
            state = yield k
            if state == state_of[k]:  # SB3
                break


class NaiveRCAM:
    """RCA-M: each arm in its own block, a free place for the arm of the largest index."""

    def __init__(self, rewards, num_pulls, exploration):
        self.rewards, self.num_pulls, self.exploration = scaled(rewards), num_pulls, exploration
        self.blocks = [[] for _ in rewards]  # per arm: of each block the (time, state) seen
        self.playing = set()
        self.time = 1

    def regenerative_state(self, k):
        return self.blocks[k][0][0][1]

    def cycle(self, k, block):
        """Return the part of a block from the regenerative state on until before its return."""
        visits = [i for i, (_, state) in enumerate(block) if state == self.regenerative_state(k)]
        if not visits:
            return []
        return block[visits[0] : visits[1]] if len(visits) > 1 else block[visits[0] :]

    def ended(self, k):
        states = [state for _, state in self.blocks[k][-1]]
        return states.count(self.regenerative_state(k)) == 2

    def index(self, k):
        if not self.blocks[k]:
            return math.inf
        cycles = [self.cycle(k, block) for block in self.blocks[k]]
        earned = [self.rewards[k][state] for cycle in cycles for _, state in cycle]
        everywhere = {
            time
            for other in range(len(self.blocks))
            for block in self.blocks[other]
            for time, _ in self.cycle(other, block)
        }
        spread = self.exploration * math.log(len(everywhere)) / len(earned)
        return sum(earned) / len(earned) + math.sqrt(spread)

    def select(self):
        free = [k for k in range(len(self.rewards)) if k not in self.playing]
        if len(self.playing) < self.num_pulls:
            values = [self.index(k) for k in free]
            for place in best(values, self.num_pulls - len(self.playing)):
                self.playing.add(free[place])
                self.blocks[free[place]].append([])
        self.chosen = sorted(self.playing)
        return self.chosen

    def observe(self, states):
        for k, state in zip(self.chosen, states, strict=True):
            self.blocks[k][-1].append((self.time, state))
        self.playing = {k for k in self.playing if not self.ended(k)}
        self.time += 1

    @property
    def num_blocks(self):
        return sum(map(len, self.blocks))
