"""The certificate store of `certs.rotation` on an API server: a Secret and the two webhook configurations."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from certs.bundle import (
    CA_CERTIFICATE,
    CA_KEY,
    LEAF_CERTIFICATE,
    LEAF_KEY,
    NEXT_CERTIFICATE,
    NEXT_KEY,
    OLD_CERTIFICATE,
    PUBLISHED_AT,
    SWITCHED_AT,
    Bundle,
    RotationRequest,
    UnreadableBundleError,
    decode,
)
from certs.rotation import LostRaceError, Published, StoreSnapshot, StoreUnavailableError
from crds import names
from service.kube.client import Client, PatchKind
from service.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from service.kube.resource import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from service.runtime.cache import Cache
from service.runtime.watch import ListWatch, Reflector

KEYS: Final = (
    CA_CERTIFICATE,
    CA_KEY,
    LEAF_CERTIFICATE,
    LEAF_KEY,
    NEXT_CERTIFICATE,
    NEXT_KEY,
    PUBLISHED_AT,
    OLD_CERTIFICATE,
    SWITCHED_AT,
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CertificateLocation:
    """The names of the Secret and of the webhook configurations."""

    namespace: str
    secret: str
    validating: str
    mutating: str

    @property
    def configurations(self) -> tuple[tuple[Resource, str], ...]:
        """The configurations, by kind and name."""
        return (MUTATING_WEBHOOKS, self.mutating), (VALIDATING_WEBHOOKS, self.validating)


@dataclass(slots=True)
class KubeConfigurations:
    """The webhook configurations of a cluster; `watch` must run beside it for `changed` to notice anything."""

    client: Client
    location: CertificateLocation
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def configurations(self) -> tuple[Published, ...]:
        """What each trusts at present."""
        self._changed.clear()
        with _translated():
            found = [await self._configuration(resource, name) for resource, name in self.location.configurations]
        return tuple(each for each in found if each is not None)

    async def publish(self, trusted: bytes, configurations: tuple[Published, ...]) -> None:
        """Writes the caBundle into every webhook of these configurations, if each still has the version given."""
        value = b64encode(trusted).decode("ascii")
        resources = {_label(resource, name): (resource, name) for resource, name in self.location.configurations}
        for published in configurations:
            resource, name = resources[published.name]
            patch = [_add("/metadata/resourceVersion", published.version)]
            patch += [_add(f"/webhooks/{n}/clientConfig/caBundle", value) for n in range(len(published.trusted))]
            with _translated(), _deleted_meanwhile():
                await self.client.patch(resource, name, patch, kind=PatchKind.JSON)

    async def changed(self) -> None:
        """Returns once something watched has changed since the last `read`."""
        await self._changed.wait()

    async def watch(self) -> None:
        """Watches the configurations until cancelled; keeps only their metadata."""
        async with asyncio.TaskGroup() as group:
            for resource, name in self.location.configurations:
                group.create_task(self._reflector(resource, name).run())

    def _reflector(self, resource: Resource, name: str, namespace: str | None = None) -> Reflector:
        cache = Cache(slim=lambda raw: {"metadata": raw["metadata"]})
        cache.listen(lambda _change: self._changed.set())
        source = ListWatch(self.client, resource, namespace=namespace, fields=f"metadata.name={name}")
        return Reflector(source, cache)

    async def _configuration(self, resource: Resource, name: str) -> Published | None:
        try:
            raw = await self.client.get(resource, name)
        except NotFound:
            return None
        bundles = (webhook["clientConfig"].get("caBundle") or "" for webhook in raw.get("webhooks") or ())
        return Published(
            name=_label(resource, name),
            version=raw["metadata"]["resourceVersion"],
            trusted=tuple(b64decode(encoded) for encoded in bundles),
        )


@dataclass(slots=True)
class KubeStore(KubeConfigurations):
    """The `certs.rotation.Store` of a cluster: its configurations, and the Secret."""

    async def read(self) -> StoreSnapshot:
        """Reads the configurations, then the bundle."""
        published = await self.configurations()
        with _translated():
            secret = await self._secret()
        if secret is None:
            return StoreSnapshot(bundle=None, version=None, configurations=published)
        return StoreSnapshot(
            bundle=_bundle(secret),
            version=secret["metadata"]["resourceVersion"],
            configurations=published,
            requested=_requested(secret),
        )

    async def save(self, bundle: Bundle, version: str | None) -> None:
        """Creates the Secret, or changes it if it still has `version`; this also removes a request for rotation."""
        parts = bundle.encoded()
        data = {key: b64encode(parts[key]).decode("ascii") if key in parts else None for key in KEYS}
        with _translated():
            if version is None:
                await self._create({key: value for key, value in data.items() if value is not None})
                return
            metadata = {"resourceVersion": version, "annotations": {names.ANNOTATION_ROTATE: None}}
            body = {"metadata": metadata, "data": data}
            with _deleted_meanwhile():
                await self.client.patch(SECRETS, self.location.secret, body, namespace=self.location.namespace)

    async def watch(self) -> None:
        """Watches the Secret and the configurations until cancelled; keeps only their metadata."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reflector(SECRETS, self.location.secret, self.location.namespace).run())
            group.create_task(KubeConfigurations.watch(self))

    async def _secret(self) -> dict[str, Any] | None:
        try:
            return await self.client.get(SECRETS, self.location.secret, namespace=self.location.namespace)
        except NotFound:
            return None

    async def _create(self, data: dict[str, str]) -> None:
        labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.location.secret, "namespace": self.location.namespace, "labels": labels},
            "type": "kubernetes.io/tls",
            "data": data,
        }
        await self.client.create(SECRETS, body, namespace=self.location.namespace)


def _bundle(secret: dict[str, Any]) -> Bundle | None:
    try:
        return decode({key: b64decode(value) for key, value in (secret.get("data") or {}).items()})
    except UnreadableBundleError as error:
        log.warning("the certificates in the Secret are unusable and will be replaced", error=str(error))
        return None


def _requested(secret: dict[str, Any]) -> RotationRequest | None:
    asked = (secret["metadata"].get("annotations") or {}).get(names.ANNOTATION_ROTATE)
    return RotationRequest(asked) if asked in set(RotationRequest) else None


def _label(resource: Resource, name: str) -> str:
    return f"{resource.plural}/{name}"


def _add(path: str, value: str) -> dict[str, str]:
    return {"op": "add", "path": path, "value": value}


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (Conflict, AlreadyExists):
        raise LostRaceError from None
    except KubeError as error:
        raise StoreUnavailableError(error.message) from error


@contextmanager
def _deleted_meanwhile() -> Iterator[None]:
    # Deleted between our read and our write: the same as a lost race.
    try:
        yield
    except NotFound:
        raise LostRaceError from None
