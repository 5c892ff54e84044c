"""Colored-UCRL2 in plain Python, from the paper (arXiv:1209.2693). Slow on purpose.

Nothing is shared with the package. A joint state is a tuple with (s, n) for each arm, or OLD for an
arm of age L or more; a colour is (arm, its place in that tuple). Counts, values and the policy are
dictionaries. The best law within an L1 ball is looked for among all laws that come about when half
the radius is moved to one state, from the others in any order, which are more than the ball's
corners that can be best.
"""

import math
from itertools import combinations, permutations, product

OLD = "old"
TIE = 1e-9


def extreme_laws(law, radius):
    """Return laws within an L1 distance of one, among them the best for any values."""
    found = []
    for target in range(len(law)):
        others = [s for s in range(len(law)) if s != target]
        for order in permutations(others):
            moved, left = list(law), radius / 2
            for s in order:
                share = min(left, moved[s])
                moved[s] -= share
                moved[target] += share
                left -= share
            found.append(moved)
    return found


class Process:
    """The decision process on joint states, with a set of laws for each colour."""

    def __init__(self, rewards, num_pulls, ages, laws_of):
        self.rewards = rewards
        self.num_pulls = num_pulls
        self.ages = ages
        self.laws_of = laws_of  # colour -> laws

    def place(self, state, age):
        return (state, age) if age < self.ages else OLD

    def sets(self):
        return list(combinations(range(len(self.rewards)), self.num_pulls))

    def after(self, joint, seen):
        """Return the joint state that follows when some arms, {arm: state}, are seen."""
        following = []
        for k, place in enumerate(joint):
            if k in seen:
                following.append(self.place(seen[k], 1))
            else:
                following.append(OLD if place == OLD else self.place(place[0], place[1] + 1))
        return tuple(following)

    def reachable(self, start):
        found, queue = {start}, [start]
        while queue:
            joint = queue.pop()
            for arms in self.sets():
                for states in product(*(range(len(self.rewards[k])) for k in arms)):
                    following = self.after(joint, dict(zip(arms, states, strict=True)))
                    if following not in found:
                        found.add(following)
                        queue.append(following)
        return found

    def hope(self, joint, arms, values, seen=()):
        """Return the best mean of reward and value; later arms' laws know what earlier ones did."""
        if len(seen) == len(arms):
            happened = dict(zip(arms, seen, strict=True))
            return values[self.after(joint, happened)] + sum(
                self.rewards[k][s] for k, s in happened.items()
            )
        k = arms[len(seen)]
        rest = [self.hope(joint, arms, values, (*seen, s)) for s in range(len(self.rewards[k]))]
        return max(
            sum(p * value for p, value in zip(law, rest, strict=True))
            for law in self.laws_of[k, joint[k]]
        )

    def solve(self, start, precision):
        """Extended value iteration; returns the gain's bounds and the policy."""
        values = dict.fromkeys(self.reachable(start), 0.0)
        while True:
            hopes = {
                joint: [self.hope(joint, arms, values) for arms in self.sets()] for joint in values
            }
            increases = {joint: max(hopes[joint]) - values[joint] for joint in values}
            low, high = min(increases.values()), max(increases.values())
            if high - low < precision:
                break
            values = {joint: values[joint] + increases[joint] / 2 for joint in values}
        policy = {}
        for joint, of_sets in hopes.items():
            good = [a for a, hope in enumerate(of_sets) if hope >= max(of_sets) - TIE]
            policy[joint] = self.sets()[good[0]]
        return (low, high), policy


class NaiveColoredUCRL2:
    """The learner; rewards are lists of lists, the start is last states and ages."""

    def __init__(
        self, rewards, num_pulls, horizon, last_state, elapsed, ages=8, delta=0.05,
        epsilon=None, scale=1.0,
    ):  # fmt: skip
        flat = [r for of_arm in rewards for r in of_arm]
        low, high = min(flat), max(flat)
        self.rewards = [[(r - low) / (high - low) for r in of_arm] for of_arm in rewards]
        self.num_pulls = num_pulls
        self.delta, self.scale = delta, scale
        self.epsilon = 1 / math.sqrt(horizon) if epsilon is None else epsilon
        self.process = Process(self.rewards, num_pulls, ages, {})
        self.joint = tuple(
            self.process.place(s, n) for s, n in zip(last_state, elapsed, strict=True)
        )
        self.colours = [
            (k, place)
            for k, of_arm in enumerate(self.rewards)
            for place in (
                *((s, n) for n in range(1, ages) for s in range(len(of_arm))),
                OLD,
            )
        ]
        self.samples = {colour: [] for colour in self.colours}  # states seen next, in order
        self.before = dict.fromkeys(self.colours, 0)
        self.time = 1
        self.episodes = 0
        self.policy = None
        self.gain = None

    def plausible(self, colour):
        """Return the estimated law and the radius of a colour."""
        size = len(self.rewards[colour[0]])
        visits = self.before[colour]
        if visits == 0:
            return [1 / size] * size, 2.0
        law = [self.samples[colour].count(s) / visits for s in range(size)]
        support = max(map(len, self.rewards))
        inside = 4 * len(self.colours) * self.time / self.delta
        return law, self.epsilon + self.scale * math.sqrt(56 * support * math.log(inside) / visits)

    def begin_episode(self):
        self.episodes += 1
        self.before = {colour: len(samples) for colour, samples in self.samples.items()}
        self.process.laws_of = {
            colour: extreme_laws(*self.plausible(colour)) for colour in self.colours
        }
        self.gain, self.policy = self.process.solve(self.joint, 1 / math.sqrt(self.time))

    def select(self):
        """Return the arms to pull; test at the top of the step whether the episode goes on."""
        if self.policy is not None:
            for k in self.policy[self.joint]:
                colour = (k, self.joint[k])
                visits = len(self.samples[colour]) - self.before[colour]
                if visits >= max(1, self.before[colour]):
                    self.policy = None
                    break
        if self.policy is None:
            self.begin_episode()
        return list(self.policy[self.joint])

    def observe(self, states):
        arms = self.policy[self.joint]
        for k, state in zip(arms, states, strict=True):
            self.samples[k, self.joint[k]].append(state)
        self.joint = self.process.after(self.joint, dict(zip(arms, states, strict=True)))
        self.time += 1
