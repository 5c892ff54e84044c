"""A live agent behind HTTP, with a page for its operator: `restive serve`."""

from restive.errors import RestiveError

try:
    import fastapi as _fastapi
    import prometheus_client as _prometheus_client
    import uvicorn as _uvicorn
except ImportError as error:
    raise RestiveError(f"a service needs {error.name}: pip install 'restive[serve]'") from None

from restive.serve.app import make_app
from restive.serve.server import run_server

__all__ = ["make_app", "run_server"]

del _fastapi, _prometheus_client, _uvicorn
