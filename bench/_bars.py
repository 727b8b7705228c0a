"""What a benchmark has to reach: printed beside what it did reach."""

from dataclasses import dataclass, field


@dataclass
class Bars:
    """Collects figures. A firm bar is one that does not depend on how fast or busy the machine is."""

    missed: list[str] = field(default_factory=list)

    def at_most(self, name: str, figure: float, bar: float, unit: str = "", *, firm: bool = True) -> None:
        """Prints a figure and whether it is within its bar."""
        fits = figure <= bar
        print(f"{name}: {figure:.4g}{unit} (at most {bar:g}{unit}{'' if fits else ', MISSED'})", flush=True)
        if not fits and firm:
            self.missed.append(name)

    def at_least(self, name: str, figure: float, bar: float, unit: str = "", *, firm: bool = True) -> None:
        """The same for a figure of which more is better."""
        fits = figure >= bar
        print(f"{name}: {figure:.4g}{unit} (at least {bar:g}{unit}{'' if fits else ', MISSED'})", flush=True)
        if not fits and firm:
            self.missed.append(name)

    def settle(self) -> None:
        """Ends the process with 1 if a firm bar was missed."""
        if self.missed:
            raise SystemExit(f"missed: {', '.join(self.missed)}")


def quantile(values: list[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
