"""What machines look at: whether the process answers, whether it can work, and its numbers."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from restive.live.agent import LiveAgent
from restive.serve.auth import Reader
from restive.serve.metrics import snapshot_text
from restive.serve.problems import refusals
from restive.serve.service import service_of

__all__ = ["router"]

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
    """Tell whether the file is open, can be written, and has room."""
    await service_of(request).read(LiveAgent.require_writable)
    return Good()


@router.get(
    "/metrics",
    response_class=Response,
    responses=refusals(401, 403, 408, 413, 429, 500, 503) | {200: {"content": {"text/plain": {}}}},
)
async def metrics(request: Request, caller: Reader) -> Response:
    """Return numbers for Prometheus."""
    service = service_of(request)
    text = await service.read(snapshot_text)
    return Response(text + generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)
