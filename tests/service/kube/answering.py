"""A small HTTPS server that answers as a test wants: for answers that a healthy API server never gives."""

import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from local.pki import Authority
from service.kube.client import Client
from service.kube.transport import Limits


@dataclass
class Answering:
    """`answer` gets every request; `seen` remembers method, path and headers."""

    url: str
    authority: Authority
    answer: Any = None
    seen: list[web.BaseRequest] = field(default_factory=list)

    def client(self, *, token="t0", ca=None, **limits):
        return Client.from_inline(self.url, ca=ca or self.authority.pem, token=token, limits=Limits(**limits))


@asynccontextmanager
async def answering(tmp_path):
    authority = Authority.create("test CA")
    certificate, key = authority.serving("test").write(tmp_path / "tls")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = Answering("", authority)

    async def handle(request):
        server.seen.append(request)
        return await server.answer(request)

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    server.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def status(code, reason="", message="", **details):
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return web.json_response(body, status=code)
