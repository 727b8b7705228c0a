"""The event loop of asynchronous tests."""

import asyncio

PATIENCE = 5.0


class PatientLoop(asyncio.SelectorEventLoop):
    """Is closed only when connections that are ending have ended.

    Where a call is given up, its TLS connection takes leave of the server, and on a busy machine the answer may come
    after the end of the test. What is not closed is still there when the time is up, and fails the test as usual.
    """

    def close(self) -> None:
        if not self.is_closed():
            self.run_until_complete(self._settled())
        super().close()

    async def _settled(self) -> None:
        deadline = self.time() + PATIENCE
        while self._connected() and self.time() < deadline:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.001)

    def _connected(self) -> bool:
        # There is no public way to ask; without it, the test only waits longer.
        transports = getattr(self, "_transports", {})
        return any(getattr(transport, "_sock", None) is not None for transport in list(transports.values()))
