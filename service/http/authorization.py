"""Asks the API server what a user may do, for the webhook of overrides."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from crds import names
from service.kube.client import Client
from service.kube.errors import KubeError
from service.kube.resource import SUBJECT_ACCESS_REVIEWS
from webhooks.overrides import RightsUnknownError, User

ANSWER_SECONDS: Final = 2.0
"""API servers give up on the webhook after three."""
AT_ONCE: Final = 32
"""Questions of all reviews that wait for an answer together: connections are for watches and passes, too."""
KNOWN: Final = ("uid", "groups", "extra")


class Authorizer:
    """Asks by SubjectAccessReviews, one for each machine."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def denied(self, user: User, namespace: str, machines: Sequence[str]) -> Sequence[str]:
        """Those of the machines that the user may not override; the name "" stands for all machines of the namespace.

        Raises:
            RightsUnknownError: if the API server does not answer in time, or does not let us ask.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                asked = (self._may_override(user, namespace, each) for each in machines)
                answers = await asyncio.gather(*asked)
        except TimeoutError:
            raise RightsUnknownError(f"the API server did not answer within {ANSWER_SECONDS:g} s") from None
        except KubeError as error:
            raise RightsUnknownError(error.message) from None
        return [each for each, may in zip(machines, answers, strict=True) if not may]

    async def _may_override(self, user: User, namespace: str, machine: str) -> bool:
        async with self._turns:
            answer = await self._client.create(SUBJECT_ACCESS_REVIEWS, _question(user, namespace, machine))
        status = answer.get("status")
        return isinstance(status, dict) and status.get("allowed") is True


def _question(user: User, namespace: str, machine: str) -> dict[str, Any]:
    attributes = {
        "namespace": namespace,
        "verb": names.OVERRIDE_VERB,
        "group": names.GROUP,
        "version": names.VERSION,
        "resource": names.PLURAL,
    }
    if machine:
        attributes["name"] = machine
    about = {key: user[key] for key in KNOWN if user.get(key)}
    spec = {"user": user.get("username", ""), **about, "resourceAttributes": attributes}
    return {**SUBJECT_ACCESS_REVIEWS.envelope(), "spec": spec}
