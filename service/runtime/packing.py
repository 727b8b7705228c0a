"""Objects as compact JSON; of many of one kind, compressed, as they have most of their text in common."""

import zlib
from typing import Any, Final

import orjson

MANY: Final = 128
"""Of fewer objects none is compressed: what compresses them needs 50 KB itself."""
SMALL: Final = 256
"""Shorter texts stay as they are."""
_RENEWED: Final = 8
_LEVEL: Final = 2
_MEMORY_LEVEL: Final = 5
_WINDOW_BITS: Final = 13
_WINDOW: Final = 1 << _WINDOW_BITS
_RAW: Final = -_WINDOW_BITS
"""Without header and checksum: what is in memory needs none."""


def packed(value: Any) -> bytes:
    """As compact JSON, to be kept: orjson leaves its whole buffer behind a result, several times its length."""
    return bytes(memoryview(orjson.dumps(value)))


class PackingSample:
    """An object by which others are compressed: what they have in common with it takes hardly any room."""

    def __init__(self, text: bytes) -> None:
        known = text[-_WINDOW:]
        strategy = zlib.Z_DEFAULT_STRATEGY
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, _MEMORY_LEVEL, strategy, known)
        self._decompressor = zlib.decompressobj(_RAW, known)

    def compressed(self, text: bytes) -> bytes:
        """The text without what the sample says too."""
        # A copy knows the sample already; telling a new one takes half as long as all the rest.
        made = self._compressor.copy()
        return made.compress(text) + made.flush()

    def restored(self, compressed: bytes) -> bytes:
        """The text again."""
        return self._decompressor.copy().decompress(compressed)


class Packing:
    """Packs the objects of one cache, and takes a sample from among them now and then, as they change over time.

    Without `compress` a packed object is as long as its JSON, so that its length bounds what it costs besides.
    """

    def __init__(self, *, compress: bool = True) -> None:
        self._compress = compress
        self._packed = 0
        self._renew_at = MANY
        self._sample: PackingSample | None = None

    def pack(self, value: Any, kept: int) -> tuple[bytes, PackingSample | None]:
        """The object and the sample that it was compressed by, if it was; `kept` is how many objects the cache has.

        Raises:
            orjson.JSONEncodeError: if it is nested too deep.
        """
        text = orjson.dumps(value)
        self._packed += 1
        if not self._compress or kept < MANY or len(text) < SMALL:
            return bytes(memoryview(text)), None
        if self._sample is None or self._packed >= self._renew_at:
            self._sample = PackingSample(text)
            self._renew_at = self._packed * _RENEWED
        return self._sample.compressed(text), self._sample


def unpacked(content: bytes, sample: PackingSample | None) -> Any:
    """The object that was packed."""
    return orjson.loads(content if sample is None else sample.restored(content))
