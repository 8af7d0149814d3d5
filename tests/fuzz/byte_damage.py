"""Damage to one file, byte by byte: what a disk, a copy that was cut off, or another program may do to it."""

from pathlib import Path
from random import Random


def damage_byte(path: Path, number: int) -> str:
    """Damage a file in one of many ways; the same number damages it the same. What was done."""
    data = bytearray(path.read_bytes())
    random = Random(f"{path.suffix} {number}")  # noqa: S311
    place = random.randrange(len(data)) if data else 0
    way = ("empty", "gone", "longer", "cut off")[number] if number < 4 else "a bit" if number % 2 else "a run of bytes"
    if way == "gone":
        path.unlink()
        return way
    if way == "longer":
        data += bytes(random.randrange(256) for _ in range(5))
    elif way in ("empty", "cut off"):
        del data[0 if way == "empty" else place :]
    elif way == "a bit" and data:
        data[place] ^= 1 << random.randrange(8)
    elif data:
        run = data[place : place + 8]
        data[place : place + 8] = bytes(byte ^ random.randrange(1, 256) for byte in run)
    path.unlink()  # who has the old file open keeps it
    path.write_bytes(data)
    return f"{way} at {place}"
