"""What the webhooks know of classes and namespaces: from the watches, of a new namespace from the API server."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from crds import syntax
from crds.invalid import InvalidValue
from service.kube.client import Client
from service.kube.errors import Forbidden, KubeError, NotFound
from service.kube.resource import NAMESPACES
from service.observe.classes import ClassStore
from webhooks.classes import ClassLookups, NamespaceUnknownError

ANSWER_SECONDS: Final = 2.0
"""API servers give up on the webhook after three."""
AT_ONCE: Final = 16
"""Any caller may make up namespaces: most connections to the API server are for watches, passes and leases."""

log = structlog.get_logger(__name__)


def class_lookups(client: Client, store: ClassStore, users: Callable[[str], Sequence[str] | None]) -> ClassLookups:
    """Answers from the store, and from the API server for a namespace that is not there, or cannot be listed."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(namespace: str) -> Mapping[str, str]:
        return await labels_of(client, namespace, turns)

    return ClassLookups(find=store.find, labels=store.known_labels, ask=ask, users=users)


async def labels_of(client: Client, namespace: str, turns: asyncio.Semaphore) -> Mapping[str, str]:
    """The labels of a namespace.

    Raises:
        NamespaceUnknownError: if the API server does not answer.
    """
    try:
        syntax.namespace(namespace)
    except InvalidValue:
        return {}  # no API server sends such a review, and nothing can be stored there
    try:
        async with asyncio.timeout(ANSWER_SECONDS), turns:
            found = await client.get(NAMESPACES, namespace)
    except TimeoutError:
        raise NamespaceUnknownError(f"the API server did not answer within {ANSWER_SECONDS:g} s") from None
    except NotFound:
        return {}  # nothing can be stored there
    except Forbidden as error:
        log.warning("namespaces cannot be read: which of them take only classes is not known", error=error.message)
        return {}
    except KubeError as error:
        raise NamespaceUnknownError(error.message) from None
    labels = found["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}
