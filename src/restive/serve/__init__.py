"""A live agent behind HTTP, with pages for its operator: `restive serve`.

Start with `app`: the parts of the service, and the server that runs it. A request comes in by
`connections`, passes `limits` and `auth`, is read by `messages`, is answered by `endpoints`
(programs), `probes` (machines) or `page` (people), and reaches the agent in the one thread of
`service`; what goes wrong becomes a document in `problems`.

May import live, pages and what live may import; nothing but `cli` imports it. It needs the extra
`serve`: importing it without says so.
"""

from restive.errors import RestiveError

try:
    import fastapi as _fastapi
    import prometheus_client as _prometheus_client
    import uvicorn as _uvicorn
except ImportError as error:
    raise RestiveError(f"a service needs {error.name}: pip install 'restive[serve]'") from None

from restive.serve.app import make_app, run_server

__all__ = ["make_app", "run_server"]

del _fastapi, _prometheus_client, _uvicorn
