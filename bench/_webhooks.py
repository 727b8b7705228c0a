"""The webhooks, or an empty FastAPI handler, on one core under the same TLS and server settings, both measured.

`python -m bench._webhooks gate|bare DIRECTORY` prints its port and serves until it is stopped.
"""

import asyncio
import os
import sys
from pathlib import Path

import uvloop
from fastapi import FastAPI, Request, Response

from certs.issue import CertificatePair
from certs.tls import ServingContext
from crds import names
from service import metrics
from service.http.servers import BoundServer, bound
from service.runtime import memory
from webhooks.review import allow
from webhooks.routes import create_app
from webhooks.verdict import Gate

CORE = 0


def gate() -> FastAPI:
    return create_app(Gate(), metrics.AdmissionRecorder(), metrics.instrument)


def bare() -> FastAPI:
    """What the gate is compared with: it reads the body and answers the same every time."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    answer = allow("705ab4f5-6393-11e8-b7cc-42010a800002")

    @app.post(names.VALIDATE_PATH)
    async def handler(request: Request) -> Response:
        await request.body()
        return Response(answer, media_type="application/json")

    metrics.instrument(app)
    return app


async def serve(app: FastAPI, folder: Path) -> None:
    serving = ServingContext()
    serving.load(CertificatePair((folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()))
    with bound("127.0.0.1", 0) as listener:
        endpoint = BoundServer("bench", app, listener, serving.live)
        print(endpoint.port, flush=True)
        await endpoint.serve()


def main() -> None:
    os.sched_setaffinity(0, {CORE})
    app = {"gate": gate, "bare": bare}[sys.argv[1]]()
    memory.configure()  # as `5spot run` does
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(app, Path(sys.argv[2])))


if __name__ == "__main__":
    main()
