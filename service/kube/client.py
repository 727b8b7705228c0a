"""The client of one API server, in plain dicts; the whole service reads and writes clusters through it.

Every call has a timeout and fails with an error of `service.kube.errors`.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import orjson

from crds.names import FIELD_MANAGER
from service.kube import credentials as access
from service.kube.credentials import Credentials, Endpoint, Token
from service.kube.decode import Object, WatchEvent, decoded, event, lines, named_item, too_many
from service.kube.errors import TooLarge, Unavailable
from service.kube.pace import Pace, units
from service.kube.resource import Resource
from service.kube.transport import Call, Limits, Request, Transport

IDLE_SECONDS = 70.0
# Without spec and status: for large kinds of which only the metadata matters.
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
METADATA_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


JSON = "application/json"
PAGE_DIVISOR = 4
"""The page size is divided by this when a page is too large."""


class PatchKind(StrEnum):
    """How the server reads the body of a patch."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Page(NamedTuple):
    """Part of a list: `more` is the token of the next page, `resource_version` is where a watch starts."""

    items: list[Object]
    resource_version: str
    more: str | None
    limit: int | None = None
    """The page size that was used in the end: smaller than requested if the objects are large."""
    too_large: str = ""
    """Why the only object in it has no more than its identity; empty if all objects are complete."""


class Client:
    """The verbs of the Kubernetes API. `guard` runs before each write is sent and aborts it by raising."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, limits: Limits | None = None) -> None:
        self.transport = Transport(endpoint, credentials, limits or Limits())
        self.pace = Pace()
        """Limits how fast events and lists of the server are processed."""

    @classmethod
    async def from_kubeconfig(
        cls, path: Path | str, context: str | None = None, *, limits: Limits | None = None
    ) -> Self:
        """For command lines and tests: the kubeconfig that kubectl uses."""
        endpoint, credentials = await access.from_kubeconfig(Path(path), context)
        return cls(endpoint, credentials, limits=limits)

    @classmethod
    def in_cluster(cls, *, limits: Limits | None = None) -> Self:
        """For pods: the rotating token of the service account, and the cluster's CA."""
        return cls(*access.from_pod(), limits=limits)

    @classmethod
    def from_inline(
        cls,
        server: str,
        *,
        ca: bytes | None = None,
        cert: bytes | None = None,
        key: bytes | None = None,
        token: str | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """From PEM data and a token in memory."""
        return cls(access.inline(server, ca=ca, cert=cert, key=key), Token(token), limits=limits)

    @property
    def skew_seconds(self) -> float | None:
        """How far our clock is ahead of the server's, as of a recent answer."""
        return self.transport.skew_seconds

    def guard_writes(self, guard: Callable[[], None] | None) -> None:
        """Calls `guard` right before each write is sent, from now on; an error that it raises aborts the write."""
        self.transport.guard = guard

    def observe_calls(self, observer: Callable[[Call], None] | None) -> None:
        """Calls `observer` with every finished call from now on."""
        self.transport.on_call = observer

    async def close(self) -> None:
        """Closes all connections."""
        await self.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        """One object; `NotFound` if there is none."""
        return await self._send("get", "GET", resource, resource.item(name, namespace))

    async def list_page(  # noqa: PLR0913 - the API's own options, all by keyword
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        more: str | None = None,
        metadata_only: bool = False,
    ) -> Page:
        """Part of a list, at most `limit` objects; pass `more` of one page to get the next.

        If a page is too large, a smaller one is requested. Of a single object that is too large, only the identity is
        returned.
        """
        while True:
            query = _query(labelSelector=labels, fieldSelector=fields, limit=limit, **{"continue": more})
            request = Request("list", "GET", resource.collection(namespace) + query, resource.plural)
            request.headers = METADATA_LIST if metadata_only else {}
            request.most_bytes = self.transport.limits.page_bytes if limit != 1 else None
            try:
                return await self._page(request, limit)
            except TooLarge:
                if limit in (None, 1):
                    raise
                limit = max(1, limit // PAGE_DIVISOR)

    async def _page(self, request: Request, limit: int | None) -> Page:
        body = await self.transport.call(request)
        too_large = ""
        if too_many(body, self.transport.limits.values):
            if limit != 1:
                raise TooLarge(f"{request.what}: the page has more than {self.transport.limits.values} values")
            answer = await named_item(body)
            too_large = f"it has more than {self.transport.limits.values} values"
        else:
            answer = await decoded(body)
        await self.pace.spent(units(body) / 2)
        items = answer.get("items") or []
        meta = answer.get("metadata") or {}
        if not isinstance(items, list) or not isinstance(meta, dict):
            raise Unavailable(f"{request.what}: the answer is not a list of objects")
        return Page(items, meta.get("resourceVersion", ""), meta.get("continue") or None, limit, too_large)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        limit: int = 500,
    ) -> list[Object]:
        """All objects, fetched in pages of `limit`. Items have no apiVersion and kind: only the list has."""
        items: list[Object] = []
        more: str | None = None
        while True:
            page = await self.list_page(
                resource, namespace=namespace, labels=labels, fields=fields, limit=limit, more=more
            )
            items += page.items
            more = page.more
            if more is None:
                return items

    async def create(
        self,
        resource: Resource,
        body: Object,
        *,
        namespace: str | None = None,
        field_manager: str = FIELD_MANAGER,
        dry_run: bool = False,
        on_warning: Callable[[str], None] | None = None,
    ) -> Object:
        """Stores a new object; `AlreadyExists` if the name is taken. `on_warning` hears what webhooks warn of."""
        path = resource.collection(namespace) + _query(fieldManager=field_manager, dryRun=_all(dry_run))
        request = Request("create", "POST", path, resource.plural, orjson.dumps(body), {"Content-Type": JSON})
        request.on_warning = on_warning
        return await self._object(request)

    async def create_subresource(
        self, resource: Resource, name: str, subresource: str, body: Object, *, namespace: str | None = None
    ) -> Object:
        """Posts to a subresource: `eviction` of a pod, `token` of a service account."""
        path = resource.item(name, namespace, subresource)
        return await self._send(f"create_{subresource}", "POST", resource, path, orjson.dumps(body))

    async def patch(  # noqa: PLR0913 - the API's own options, all by keyword
        self,
        resource: Resource,
        name: str,
        body: Object | Sequence[Object],
        *,
        kind: PatchKind = PatchKind.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Changes part of an object; put uid or resourceVersion into the body's metadata as a precondition."""
        query = _query(fieldManager=field_manager, force="true" if force else None, dryRun=_all(dry_run))
        path = resource.item(name, namespace, subresource) + query
        return await self._send("patch", "PATCH", resource, path, orjson.dumps(body), kind)

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: Object,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = FIELD_MANAGER,
    ) -> Object:
        """Stores a whole object over the old one; `Conflict` if its resourceVersion is not the current one."""
        path = resource.item(name, namespace, subresource) + _query(fieldManager=field_manager)
        return await self._send("replace", "PUT", resource, path, orjson.dumps(body))

    async def delete(  # noqa: PLR0913 - the API's own options, all by keyword
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
        propagation: str | None = None,
    ) -> Object:
        """Deletes an object; `Conflict` if uid or resource_version is no longer that of the object.

        Returns the object as it is now if finalizers hold it, or a Status if it was deleted at once.
        """
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": _present(uid=uid, resourceVersion=resource_version) or None,
            "gracePeriodSeconds": grace_seconds,
            "propagationPolicy": propagation,
        }
        path = resource.item(name, namespace)
        return await self._send("delete", "DELETE", resource, path, orjson.dumps(_present(**options)))

    async def watch(  # noqa: PLR0913 - the API's own options, all by keyword
        self,
        resource: Resource,
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        timeout_seconds: int = 600,
        idle_seconds: float = IDLE_SECONDS,
        on_open: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, until the server ends the stream.

        Bookmarks arrive about once a minute, so silence means that the connection is dead: `Unavailable`. `on_open`
        is called when the server has accepted the watch, which may be long before the first event.
        """
        query = _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            labelSelector=labels,
            fieldSelector=fields,
            timeoutSeconds=timeout_seconds,
        )
        request = Request("watch", "GET", resource.collection(namespace) + query, resource.plural)
        request.headers = METADATA if metadata_only else {}
        async with self.transport.stream(request, idle_seconds=idle_seconds) as pieces:
            on_open()
            async for line in lines(pieces, self.transport.limits.line_bytes):
                yield await event(line, request.what, self.transport.limits.values)
                await self.pace.spent(units(line.text))

    async def raw_get(self, path: str) -> Object:
        """Gets any path, for discovery."""
        return await self._object(Request("get", "GET", path, "discovery"))

    async def _send(
        self,
        verb: str,
        method: str,
        resource: Resource,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
    ) -> Object:
        headers = {} if body is None else {"Content-Type": content_type}
        return await self._object(Request(verb, method, path, resource.plural, body, headers))

    async def _object(self, request: Request) -> Object:
        body = await self.transport.call(request)
        if too_many(body, self.transport.limits.values):
            raise TooLarge(f"{request.what}: the answer has more than {self.transport.limits.values} values")
        return await decoded(body)


def _query(**parameters: str | int | None) -> str:
    given = _present(**parameters)
    return f"?{urlencode(given)}" if given else ""


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _all(dry_run: bool) -> str | None:  # noqa: FBT001 - private, and it is a switch
    return "All" if dry_run else None
