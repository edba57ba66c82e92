"""The two marks of a store: ``applied`` (how far the tree follows the log) and ``checkpoint`` (how far it is durable).

Both are 40 bytes: a magic, four numbers, a CRC-32.
"""

import struct
import zlib
from dataclasses import dataclass

MAGIC = b"BRM1"
MARK_BYTES = 40
_NUMBERS = struct.Struct(">4sQQQQ")
_CRC = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the log: behind record ``lsn``, in the segment that begins with record ``segment``, at ``offset``.

    ``applying`` is the record whose operations are being carried out. While it is above ``lsn`` the tree may be
    neither the old state nor the new one.
    """

    lsn: int
    segment: int
    offset: int
    applying: int

    @property
    def is_whole(self) -> bool:
        """Whether the tree is one whole state."""
        return self.applying <= self.lsn

    def while_applying(self, lsn: int) -> "Mark":
        """The same place, while records up to ``lsn`` are being carried out."""
        return Mark(self.lsn, self.segment, self.offset, lsn)

    def encode(self) -> bytes:
        """The 40 bytes of the mark."""
        body = _NUMBERS.pack(MAGIC, self.lsn, self.segment, self.offset, self.applying)
        return body + _CRC.pack(zlib.crc32(body))


def decode(data: bytes) -> Mark | None:
    """The mark in these bytes, or None where they are damaged."""
    if len(data) != MARK_BYTES or _CRC.unpack(data[36:])[0] != zlib.crc32(data[:36]):
        return None
    magic, lsn, segment, offset, applying = _NUMBERS.unpack(data[:36])
    return Mark(lsn, segment, offset, applying) if magic == MAGIC else None
