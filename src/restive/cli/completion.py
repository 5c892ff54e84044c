"""Words that the shell completes: what is known by name."""

from __future__ import annotations

__all__ = ["complete_formats", "complete_instances", "complete_learners", "complete_mappings",
           "complete_tables"]  # fmt: skip


def complete_instances(incomplete: str) -> list[str]:
    """Names of zoo instances."""
    from restive.measure import zoo

    return [name for name in zoo.names() if name.startswith(incomplete)]


def complete_learners(incomplete: str) -> list[str]:
    """Names of learners, the last of several after a comma."""
    from restive.learn.learners import LEARNERS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in LEARNERS if name.startswith(last)]


def complete_mappings(incomplete: str) -> list[str]:
    """Names of policy mappings."""
    from restive.plan.policies.registry import policy_mappings

    return [row.name for row in policy_mappings() if row.name.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """Formats that results are exported in."""
    from restive.studies.export import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_tables(incomplete: str) -> list[str]:
    """Tables that results are exported as."""
    from restive.studies.export import TABLES

    return [name for name in TABLES if name.startswith(incomplete)]
