"""The admission webhooks as part of the process: their server, and the loops that renew its certificate."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from certs.bundle import Policy
from certs.files import FileRotation, FileWatch, MountedFiles
from certs.rotation import Rotation
from certs.tls import AuthorityFile, CertificateFiles, ServingContext
from certs.trust import Trust
from service import metrics
from service.http.certificates import CertificateLocation, KubeConfigurations, KubeStore
from service.http.health import Check
from service.http.servers import BoundServer
from service.kube.client import Client
from service.settings import Settings
from webhooks.routes import create_app
from webhooks.verdict import Gate

Work = Callable[[], Awaitable[None]]


class Admission:
    """The server of the webhooks, its TLS context, and the loops that load certificates into it."""

    def __init__(self, settings: Settings, client: Client, listener: socket.socket, gate: Gate) -> None:
        authorities = settings.webhook_client_ca_file
        self.serving = ServingContext(verify_clients=authorities is not None)
        app = create_app(gate, metrics.AdmissionRecorder(), metrics.instrument)
        self.endpoint = BoundServer("webhooks", app, listener, self.serving.live)
        self._source = _source(settings, client, self.serving)
        self.loops = dict(self._source.loops)
        self._clients = FileWatch(AuthorityFile(authorities), self.serving) if authorities else None
        if self._clients:
            self.loops["client CA"] = self._clients.run
        metrics.CERTIFICATE_EXPIRY.set_function(self._expiry)

    @property
    def checks(self) -> dict[str, Check]:
        """The checks that readiness depends on."""
        return {"certificate": self._certificate, "webhooks": self._listening}

    async def serve(self) -> None:
        """Serves as soon as a certificate is loaded, and the CA of callers if there is one."""
        await self._source.loaded.wait()
        if self._clients:
            await self._clients.loaded.wait()
        await self.endpoint.serve()

    def _certificate(self) -> str | None:
        if self._clients and not self._clients.loaded.is_set():
            return "the CA that verifies callers of the webhooks is not loaded yet"
        if not self.serving.valid(now()):
            return "the webhooks have no valid certificate"
        return self._source.trust.obstacle(now()) if self._source.trust else None

    def _listening(self) -> str | None:
        return None if self.endpoint.listening else "the webhooks are not listening"

    def _expiry(self) -> float:
        return self.serving.expires.timestamp() if self.serving.expires else 0.0


@dataclass(frozen=True, slots=True)
class CertificateSource:
    """The loops that keep the certificate right; `trust` is None where the caBundle is not the operator's business."""

    loops: dict[str, Work]
    loaded: asyncio.Event
    trust: Trust | None = None


def _source(settings: Settings, client: Client, serving: ServingContext) -> CertificateSource:
    if settings.certificate_file and settings.key_file and settings.certificates == "files":
        files = CertificateFiles(settings.certificate_file, settings.key_file)
        return _from_files(settings, client, serving, files)
    store = KubeStore(client, location(settings))
    rotation = Rotation(store, serving, settings.certificate_names, now, policy(settings))
    loops: dict[str, Work] = {"certificates": rotation.run, "certificate watch": store.watch}
    return CertificateSource(loops, rotation.loaded, rotation.trust)


def _from_files(
    settings: Settings, client: Client, serving: ServingContext, files: CertificateFiles
) -> CertificateSource:
    if settings.authority_file is None:
        watch = FileWatch(files, serving)
        return CertificateSource({"certificate files": watch.run}, watch.loaded)
    found = KubeConfigurations(client, location(settings))
    rotation = FileRotation(MountedFiles(files, settings.authority_file), found, serving, now, policy(settings))
    loops: dict[str, Work] = {"certificate files": rotation.run, "configuration watch": found.watch}
    return CertificateSource(loops, rotation.loaded, rotation.trust)


def location(settings: Settings) -> CertificateLocation:
    """Where the self-managed certificates and the webhook configurations are."""
    return CertificateLocation(
        namespace=settings.namespace,
        secret=settings.certificate_secret,
        validating=settings.validating_configuration,
        mutating=settings.mutating_configuration,
    )


def policy(settings: Settings) -> Policy:
    """The policy by which certificates are renewed."""
    return Policy(
        settle=timedelta(seconds=settings.authority_settle_seconds),
        retire=timedelta(seconds=settings.authority_retire_seconds),
    )


def now() -> datetime:
    """Real time: certificates do not follow the simulated clock."""
    return datetime.now(UTC)
