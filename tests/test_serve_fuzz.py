"""Schemathesis over the whole API: no error of ours, nothing that is not described.

A small fixed budget; RESTIVE_SERVE_FUZZ=200 asks for more of each place.
"""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import restive as rs
from restive.serve.app import make_app
from serve_cases import listening, served

EXAMPLES = int(os.environ.get("RESTIVE_SERVE_FUZZ", "5"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
]
PLACES = [
    f"{method.upper()} {path}"
    for path, methods in make_app(None).openapi()["paths"].items()
    for method in methods
]
OPEN_TO_ALL = ("/healthz", "/readyz", "/login", "/logout")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "a.db"
    with served(path, clock=rs.Clock.given()) as (app, live):
        live.decide(tick=0)
        headers = {"Authorization": f"Bearer {live.make_token('admin', 'admin')}"}
        with listening(app) as (host, port):
            url = f"http://{host}:{port}/v1/openapi.json"
            yield schemathesis.openapi.from_url(url, headers=headers), headers, live


def cases(api, place, mode):
    """Run a test with requests to a place, good ones or bad ones."""
    strategy = api.find_operation_by_label(place).as_strategy(generation_mode=mode)
    careful = settings(
        max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    return lambda test: careful(given(strategy)(test))()


def can_be_wrong(api, place):
    operation = api.find_operation_by_label(place)
    return bool(operation.body.items or operation.query.items or operation.path_parameters.items)


@pytest.mark.parametrize("place", PLACES)
def test_no_request_is_answered_in_a_way_that_is_not_described(place, service):
    api, headers, live = service
    modes = [GenerationMode.POSITIVE]
    if can_be_wrong(api, place):
        modes.append(GenerationMode.NEGATIVE)
    for mode in modes:

        @cases(api, place, mode)
        def test(case):
            case.call_and_validate(headers=headers, checks=CHECKS, allow_redirects=False)

    assert live.check() == live.status().events


@pytest.mark.parametrize("place", PLACES)
def test_without_a_token_nothing_is_told_and_nothing_changes(place, service):
    api, _, live = service
    events = live.status().events

    @cases(api, place, GenerationMode.POSITIVE)
    def test(case):
        case.headers.pop("Authorization", None)
        case.cookies.clear()
        answer = case.call_and_validate(checks=CHECKS, allow_redirects=False)
        nowhere = answer.status_code == 404 and answer.json()["detail"] == "Not Found"
        assert case.path in OPEN_TO_ALL or answer.status_code == 401 or nowhere

    assert live.status().events == events
