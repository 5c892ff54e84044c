"""What machines look at: whether the process answers, whether it can work, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel

from restive.live.agent import LiveAgent
from restive.serve.auth import Reader
from restive.serve.problems import Problem, refusals
from restive.serve.service import service_of

__all__ = ["moved_sentence", "router"]

router = APIRouter(tags=["probes"])


class Good(BaseModel):
    """All is well."""

    status: str = "ok"


@router.get("/healthz", responses=refusals(408, 413, 503))
async def healthz() -> Good:
    """Tell that the process answers, whatever the agent does."""
    return Good()


@router.get("/readyz", responses=refusals(408, 413, 500, 503, 507))
async def readyz(request: Request) -> Good:
    """Tell whether the file is open, can be written, and has room, and no rebuild replaced it."""
    service = service_of(request)
    await service.write(LiveAgent.require_writable)
    moved = await service.read(moved_sentence)
    if moved:
        raise Problem(503, moved)
    return Good()


def moved_sentence(agent: LiveAgent) -> str:
    """Say that a rebuild made another file of the one that is served; "" if none did."""
    moved = agent.moved_on()
    if moved is None:
        return ""
    return (
        f"{Path(agent.path).name} was rebuilt, and {moved} goes on where it ended. Here you can "
        "only look. Whoever runs this page must stop it and start it anew on the new file: "
        f"restive serve {moved}"
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses=refusals(401, 403, 408, 413, 429, 500, 503) | {200: {"content": {"text/plain": {}}}},
)
async def metrics(request: Request, caller: Reader) -> Response:
    """Return numbers for Prometheus."""
    service = service_of(request)
    text = await service.read(_agent_metrics)
    return Response(text + generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)


def _agent_metrics(agent: LiveAgent) -> bytes:
    """Return an agent's numbers as they are now."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_AgentMetrics(agent))
    return generate_latest(registry)


class _AgentMetrics(Collector):
    """Numbers of a live agent; no arm is named in them."""

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
