"""Mechanisms as plain data: what the oracles read, and the line of Python that dpnotes is given."""

from dataclasses import dataclass
from functools import cached_property

from .laws import LAWS, finite_law

__all__ = ["NAMES", "Part", "expression", "finite_law", "rename"]

NAMES = {"response": "randomized_response"}  # kinds that dpnotes calls otherwise
SHORT = {
    "gaussian": "G",
    "laplace": "L",
    "response": "RR",
    "finite": "F",
    "discrete_gaussian": "dG",
    "discrete_laplace": "dL",
    "bounded_range": "BR",
    "best_of_loss": "Best",
}
MANY = 8  # different steps: a schedule


@dataclass(frozen=True)
class Part:
    """k rounds of one step: "gaussian" (sigma), "laplace" (scale), "response" (epsilon),
    "finite" (p, q), "discrete_gaussian" (sigma, sensitivity), "discrete_laplace" (scale,
    sensitivity), "bounded_range" (epsilon, points) or "best_of_loss" (p, q, mean), run on a Poisson
    sample of this rate; or, with the sampler "subsample_substitution", on any sample of this rate,
    under substitution."""

    kind: str
    value: tuple
    k: int = 1
    rate: float = 1.0
    sampler: str = "subsample"

    def expression(self):
        values = [repr(x) for x in self.value]
        if self.kind == "best_of_loss":
            values[-1] = f"dp.geometric_runs({values[-1]})"
        text = f"dp.{NAMES.get(self.kind, self.kind)}({', '.join(values)})"
        if self.rate < 1:
            text = f"dp.{self.sampler}({text}, {self.rate!r})"
        return text if self.k == 1 else f"{text}.compose({self.k})"

    @property
    def swapped(self):
        """Whether neighbours replace one person's value."""
        return self.rate < 1 and self.sampler == "subsample_substitution"

    @property
    def counted(self):
        """Whether the loss takes finitely many values."""
        return self.kind in LAWS

    @property
    def sensitivity(self):
        """Of integer noise."""
        return self.value[1]

    @cached_property
    def size(self):
        """How many outcomes it counts."""
        return len(finite_law(self, 1))

    @property
    def symmetric(self):
        """Whether both directions have the same law."""
        return self.swapped or self.rate == 1 and self.kind not in ("finite", "best_of_loss")

    @property
    def plain_laplace(self):
        return self.kind == "laplace" and self.rate == 1

    @property
    def plain_gaussian(self):
        return self.kind == "gaussian" and self.rate == 1


def expression(parts):
    return " + ".join(part.expression() for part in parts)


def rename(parts):
    """The class that a mechanism is reported under."""
    names = set()
    for part in parts:
        name = SHORT[part.kind]
        if part.kind == "finite" and 0.0 in part.value[0] + part.value[1]:
            name += "0"
        names.add(("w" if part.swapped else "s" if part.rate < 1 else "") + name)
    rounds = sum(part.k for part in parts)
    size = "k=1" if rounds == 1 else "few" if rounds <= 12 else "many" if rounds <= 1e4 else "vast"
    schedule = "schedule " if len(parts) > MANY else ""
    return f"{schedule}{'+'.join(sorted(names))} {size}"
