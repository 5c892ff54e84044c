"""Schemathesis over the whole API: no error of ours, nothing that is not described.

A small fixed budget; RESTIVE_SERVE_FUZZ=200 asks for more of each place.
"""

import os
import re

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    use_after_free,
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
    use_after_free,
]
UNABLE = (409, 412, 422)  # what is well said and cannot be done now
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


def breaks_the_schema(answer):
    """Whether a request was refused by what the description says, and not by the agent."""
    return any("where" in one for one in answer.json().get("mistakes", ()))


@pytest.mark.parametrize("place", PLACES)
def test_no_request_is_answered_in_a_way_that_is_not_described(place, service):
    api, headers, live = service
    modes = [GenerationMode.POSITIVE]
    if can_be_wrong(api, place):
        modes.append(GenerationMode.NEGATIVE)
    for mode in modes:

        @cases(api, place, mode)
        def test(case):
            answer = case.call(headers=headers, allow_redirects=False)
            checks = list(CHECKS)
            if answer.status_code not in UNABLE or breaks_the_schema(answer):
                checks.append(positive_data_acceptance)
            case.validate_response(answer, checks=checks, headers=headers)

    assert live.check() == live.status().events


def test_a_place_tells_its_methods(service):
    """As schemathesis' `allow_header_conformance` asks, of every place."""
    api, headers, _ = service
    for path, found in make_app(None).openapi()["paths"].items():
        place = f"{api.location.rpartition('/v1/')[0]}{re.sub('{.*?}', '0', path)}"
        with requests.request("TRACE", place, headers=headers, timeout=60) as answer:
            assert answer.status_code == 405
            told = set(answer.headers["allow"].split(", ")) - {"HEAD"}
        assert told >= {method.upper() for method in found}
        assert path.startswith("/v1/") <= (told == {method.upper() for method in found})


def test_an_arm_that_was_deleted_is_gone(service):
    api, headers, live = service
    live.join(["who leaves"])
    place = f"{api.location.rpartition('/v1/')[0]}/v1/arms/who leaves"
    answers = [
        requests.request(method, place, headers=headers, timeout=60).status_code
        for method in ("GET", "DELETE", "GET", "DELETE")
    ]
    assert answers == [200, 200, 404, 200]


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
