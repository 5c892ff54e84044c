"""The advantage of pulling at one subsidy, with 60 digits, by Howard's policy iteration.

For arms that are left so rarely that doubles cannot tell a tie from a sign change.
"""

from decimal import Decimal, localcontext

DIGITS = 60


def precise_advantage(arm, length, subsidy):
    """A(s, n) as lists of Decimals, by last state and age; None where the arm is best left alone.

    For the average reward. From (s, 1) a policy waits w steps and pulls: with gain g and bias h,
    h(s) = b(s, w).(r + h) + (w - 1) lambda - w g, and h(0) = 0.
    """
    with localcontext(prec=DIGITS):
        subsidy = Decimal(float(subsidy))
        rewards = [Decimal(float(value)) for value in arm.rewards]
        beliefs = _beliefs(arm, length)
        waits = [length] * len(rewards)  # every state is likely then
        while True:
            gain, bias = _evaluated(beliefs, rewards, waits, subsidy)
            pulls = [
                [_dot(law, rewards) + _dot(law, bias) - gain for law in laws] for laws in beliefs
            ]
            better = [
                max(range(length), key=lambda n, own=own: own[n] + n * (subsidy - gain))
                for own in pulls
            ]
            gains = [
                own[n] + n * (subsidy - gain) - value
                for own, n, value in zip(pulls, better, bias, strict=True)
            ]
            if max(gains) < Decimal(10) ** (15 - DIGITS):
                break
            waits = [
                n + 1 if more > Decimal(10) ** (15 - DIGITS) else wait
                for n, more, wait in zip(better, gains, waits, strict=True)
            ]
        if gain <= subsidy:
            return None
        return [_backwards(own, subsidy - gain) for own in pulls]


def _backwards(pulls, cost):
    advantage, later = [], pulls[-1]
    for pull in reversed(pulls):
        wait = cost + later
        advantage.append(pull - wait)
        later = max(pull, wait)
    return advantage[::-1]


def _beliefs(arm, length):
    """b(s, n) as Decimals [S][L][S]."""
    active, passive = (
        [_shares([Decimal(float(p)) for p in row]) for row in matrix]
        for matrix in (arm.active, arm.passive)
    )
    columns = list(zip(*passive, strict=True))
    found = []
    for law in active:
        laws = [law]
        while len(laws) < length:
            laws.append([_dot(laws[-1], column) for column in columns])
        found.append(laws)
    return found


def _evaluated(beliefs, rewards, waits, subsidy):
    """Gain and bias of waiting times."""
    size = len(rewards)
    rows = []
    for s, wait in enumerate(waits):
        law = beliefs[s][wait - 1]
        row = [Decimal(s == j) - law[j] for j in range(size)]
        row[0] = Decimal(wait)  # the gain stands where the bias of state 0, which is none, would
        rows.append([*row, _dot(law, rewards) + (wait - 1) * subsidy])
    for column in range(size):
        pivot = max(range(column, size), key=lambda r, c=column: abs(rows[r][c]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for r in range(size):
            if r != column:
                factor = rows[r][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[column], strict=True)]
    solved = [row[-1] for row in rows]
    return solved[0], [Decimal(0), *solved[1:]]


def _shares(values):
    return [value / sum(values) for value in values]


def _dot(left, right):
    return sum(a * b for a, b in zip(left, right, strict=True))
