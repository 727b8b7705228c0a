"""The memory of a run as a table and as a small picture; `python -m bench._curve SAMPLES.jsonl [PICTURE.svg]`."""

import sys
from pathlib import Path
from typing import Any

import orjson

from bench._slope import Growth, growth
from bench._soak_result import MOST_SLOPE

WARM_UP = 1200.0
"""Twice as long as deleted objects are remembered: by then all that has a limit has reached it."""
WIDTH, HEIGHT, MARGIN = 640, 240, 40


def samples(path: Path) -> list[dict[str, Any]]:
    return [line for line in map(orjson.loads, path.read_bytes().splitlines()) if "uss" in line]


def judged(found: list[dict[str, Any]]) -> Growth | None:
    return growth([(line["at"], line["uss"]) for line in found], WARM_UP)


def table(found: list[dict[str, Any]], every: float = 600.0) -> str:
    """What the process alone uses, what is resident, and what the allocator has free, every ten minutes."""
    lines, due = ["| minute | unshared | resident | free in the heap | objects |", "|---|---|---|---|---|"], 0.0
    for line in found:
        if line["at"] >= due and "objects" in line:
            due = line["at"] + every - 60
            sizes = f"{line['uss']:.1f} MB | {line['rss']:.1f} MB | {line['glibc']['fordblks']:.1f} MB"
            lines.append(f"| {line['at'] / 60:.0f} | {sizes} | {line['objects']} |")
    return "\n".join(lines)


def picture(found: list[dict[str, Any]]) -> str:
    """An SVG of unshared memory over time."""
    longest = float(found[-1]["at"])
    highest = 1.2 * max(float(line["uss"]) for line in found)

    def x(at: float) -> float:
        return MARGIN + (WIDTH - MARGIN - 10) * at / longest

    def y(size: float) -> float:
        return HEIGHT - MARGIN + (20 - HEIGHT + MARGIN) * size / highest

    curve = " ".join(f"{x(line['at']):.1f},{y(line['uss']):.1f}" for line in found)
    marks: list[tuple[float, float, str]]
    marks = [(x(60 * minute), HEIGHT - 20, f"{minute} min") for minute in range(0, int(longest / 60) + 1, 20)]
    marks += [(4, y(size), f"{size} MB") for size in range(0, int(highest) + 1, 20)]
    labels = "".join(f'<text x="{at:.0f}" y="{top:.0f}" font-size="11">{text}</text>' for at, top, text in marks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f'<line x1="{x(WARM_UP):.0f}" x2="{x(WARM_UP):.0f}" y1="20" y2="{HEIGHT - MARGIN}" stroke="silver"/>'
        f'{labels}<polyline points="{curve}" fill="none" stroke="steelblue" stroke-width="1.5"/></svg>\n'
    )


def report(path: Path) -> Growth | None:
    """Prints the table and the verdict."""
    found = samples(path)
    print(table(found))
    verdict = judged(found)
    words = verdict.described(MOST_SLOPE) if verdict else f"cannot judge in {found[-1]['at'] / 60:.0f} minutes"
    print(f"after the warm-up of {WARM_UP / 60:.0f} minutes: {words}")
    return verdict


def main() -> None:
    source = Path(sys.argv[1])
    report(source)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(picture(samples(source)), encoding="utf-8")


if __name__ == "__main__":
    main()
