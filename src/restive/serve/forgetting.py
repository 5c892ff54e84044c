"""The API for arms that change: forget what was seen of them, and how long to remember."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from restive.live.acts.forgetting import said_of_memory
from restive.live.agent import LiveAgent
from restive.live.settings import Settings
from restive.serve.auth import Admin
from restive.serve.endpoints import ANY, WRITING, IfMatch, Key, expected, require_keys_once, tag
from restive.serve.messages import MOST_ARMS, Body, ForgetAnswer, Name, Tick, Word
from restive.serve.problems import refusals
from restive.serve.service import service_of

__all__ = ["router"]

router = APIRouter(prefix="/v1", dependencies=[Depends(require_keys_once)])


class ForgetBody(Body):
    """What to forget: of some arms or of a kind, or without either of all."""

    before: Annotated[
        Tick | Word, Field(description="the first tick that still counts, its number or its date")
    ]
    arms: list[Name] | None = Field(None, min_length=1, max_length=MOST_ARMS)
    kind: Name | None = None


class RememberBody(Body):
    """How long what was seen is remembered."""

    ticks: Annotated[float, Field(strict=True)] | None = Field(
        description="after so many what was seen weighs 1/e; null: it counts for ever"
    )


class RememberAnswer(BaseModel):
    """How long what was seen is remembered."""

    text: str
    ticks: float | None

    @classmethod
    def of(cls, settings: Settings) -> RememberAnswer:
        """Return what a file's settings say."""
        return cls(text=said_of_memory(settings), ticks=settings.learner.get("forget_after"))


@router.post("/forget", responses=refusals(*WRITING))
async def forget(
    request: Request, response: Response, caller: Admin, body: ForgetBody,
    key: Key = None, if_match: IfMatch = ANY,
) -> ForgetAnswer:  # fmt: skip
    """Forget what was seen of some arms before a tick, where they have changed."""

    def work(agent: LiveAgent) -> tuple[int, ForgetAnswer]:
        done = agent.forget(body.before, body.arms, kind=body.kind, request=key, actor=caller.actor)
        return agent.tick, ForgetAnswer.of(done, agent.settings.words)

    tick, answer = await service_of(request).write(work, expected(if_match))
    tag(response, tick)
    return answer


@router.post("/remember", responses=refusals(*WRITING))
async def remember(
    request: Request, response: Response, caller: Admin, body: RememberBody,
    key: Key = None, if_match: IfMatch = ANY,
) -> RememberAnswer:  # fmt: skip
    """Change how long what was seen is remembered."""

    def work(agent: LiveAgent) -> tuple[int, RememberAnswer]:
        agent.remember(body.ticks, request=key, actor=caller.actor)
        return agent.tick, RememberAnswer.of(agent.settings)

    tick, answer = await service_of(request).write(work, expected(if_match))
    tag(response, tick)
    return answer
