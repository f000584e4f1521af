"""Timetables of ferries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Trip:
    """One crossing."""

    start: str
    end: str
    minutes: int = 30
    stops: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.minutes <= 0:
            raise ValueError(f"a trip of {self.minutes!r} minutes")

    @property
    def title(self) -> str:
        return f"{self.start} – {self.end}"


def connections(trips: list[Trip], start: str, *, limit: int = 3) -> Iterator[tuple[Trip, ...]]:
    """Ways to go on from a place, shortest first."""
    todo = [(trip,) for trip in trips if trip.start == start]
    while todo and limit > 0:
        way = todo.pop(0)
        yield way
        limit -= 1
        for trip in trips:
            if trip.start == way[-1].end and trip not in way:
                todo.append((*way, trip))
    else:
        return


async def announce(trips: dict[str, Trip], speed: float = 1.0) -> int:
    said = 0
    try:
        async with asyncio.timeout(60):
            for name, trip in sorted(trips.items(), key=lambda item: item[1].minutes):
                await asyncio.sleep(trip.minutes / speed)
                print(name, trip.title, sep=": ", end="😋\n")
                said += 1
    except TimeoutError as error:
        match said:
            case 0:
                raise RuntimeError("nothing left") from error
            case _:
                pass
    return said
