"""Numbers of a live agent for Prometheus; no arm is named in them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from restive.live.agent import LiveAgent

__all__ = ["snapshot_text"]


class _Numbers(Collector):
    def __init__(self, agent: LiveAgent) -> None:
        self.agent = agent

    def collect(self) -> Iterator[Metric]:
        found = self.agent.status()
        yield GaugeMetricFamily("restive_tick", "Tick of the last decision", found.tick)
        yield GaugeMetricFamily("restive_arms", "Arms that have not left", found.arms)
        yield GaugeMetricFamily(
            "restive_open_pulls", "Pulls of the open tick without a result", found.open
        )
        yield CounterMetricFamily("restive_decisions", "Ticks that were decided", found.decisions)
        pulls = GaugeMetricFamily(
            "restive_observations", "Pulls by what became of them", labels=["status"]
        )
        for status in ("seen", "late", "superseded", "unseen", "not_pulled"):
            pulls.add_metric([status], getattr(found, status))
        yield pulls
        # rewards may be negative, so these are no counters
        yield GaugeMetricFamily("restive_reward", "Reward of all pulls seen", found.reward)
        yield GaugeMetricFamily("restive_forecast", "Forecast for these pulls", found.forecast)
        alarms = GaugeMetricFamily("restive_alarm", "Alarms that wait", labels=["name"])
        for name in sorted({alarm.name for alarm in found.alarms}):
            alarms.add_metric([name], sum(alarm.name == name for alarm in found.alarms))
        yield alarms
        yield GaugeMetricFamily("restive_events", "Events in the journal", found.events)
        yield GaugeMetricFamily(
            "restive_replay_events", "Events replayed at the start", self.agent.events_replayed
        )
        age = self.agent.snapshot_age()
        if age is not None:
            yield GaugeMetricFamily(
                "restive_snapshot_age_seconds", "Seconds since the last snapshot", age
            )


def snapshot_text(agent: LiveAgent) -> bytes:
    """Return an agent's numbers as they are now."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Numbers(agent))
    return generate_latest(registry)
