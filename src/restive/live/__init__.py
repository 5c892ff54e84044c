"""Agents that operators run for months: durable, exact, and open to an auditor."""

from restive.live.agent import LiveAgent
from restive.live.alarms import LEVEL
from restive.live.answers import Alarm, Decision, Mistake, Receipt, RefusedError, Status
from restive.live.clock import Clock
from restive.live.forecast import Forecast
from restive.live.results import Batch

__all__ = [
    "LEVEL",
    "Alarm",
    "Batch",
    "Clock",
    "Decision",
    "Forecast",
    "LiveAgent",
    "Mistake",
    "Receipt",
    "RefusedError",
    "Status",
]
