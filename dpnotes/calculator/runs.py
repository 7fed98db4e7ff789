"""A run: mechanisms one after the other, each on Poisson samples of the data, each many times."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from .. import mechanisms
from ..accountant import PrivacyLoss, discrete_gaussian, discrete_laplace, finite, gaussian
from ..accountant import laplace, randomized_response, subsample
from ..chapters.composition import dominating_pair
from ..checks import count, positive, probability, scalar, within
from .typed import Typed, number


@dataclass(frozen=True)
class Mechanism:
    """What is known of a mechanism. A new one is a row of MECHANISMS: calculator, command line, the
    page's form and the test of loss, sampler and claim follow.

    If its noise can be asked for, `question` is the command line's word, and `asks` what it finds.
    """

    parameter: str  # its name in a query: what says how private one step is
    option: str  # of the command line
    words: str  # what --help says of it
    loss: Callable  # of the parameter: the loss of one step on all of the data
    sampler: Callable | None  # draws what may be published; None for "any mechanism that ..."
    claim: str | None  # what says how private the sampler is, in its docstring, too
    call: str  # the loss as Python, to copy
    epsilon: Callable | None = None  # of the parameter: of one step; None if it depends on delta
    form: str | None = None  # its name in the page's form
    question: str | None = None
    asks: str = ""
    whole: bool = False  # its noise is a whole number, drawn exactly
    sampled: tuple[float, float] | None = None  # the range of the parameter where the rate is < 1

    def is_noise(self):
        """Its parameter is the size of a noise: more is more private."""
        return self.parameter != "epsilon"


MECHANISMS = {
    "gaussian": Mechanism(
        "sigma", "sigma",
        "Gaussian noise: its standard deviation, in units of what one person can change (l2). For"
        " DP-SGD that is the noise multiplier, noise / clipping norm",
        gaussian, mechanisms.gaussian_mechanism, "T-def-gaussian",
        "dp.gaussian(sigma={})", form="Gaussian noise",
        question="sigma", asks='the least Gaussian noise (pages "gaussian" and "accounting")',
        sampled=(0.01, 1e4),
    ),
    "laplace": Mechanism(
        "scale", "scale",
        "Laplace noise: its scale, in units of what one person can change (l1). One step is"
        " (1/scale)-DP",
        laplace, mechanisms.laplace_mechanism, "T-laplace", "dp.laplace(scale={})",
        lambda b: 1 / b, "Laplace noise",
        "scale", 'the least Laplace noise (page "pure-dp")',
    ),
    "discrete_gaussian": Mechanism(
        "sigma", "discrete-sigma",
        "Gaussian noise on one whole number that a person moves by at most 1",
        discrete_gaussian, mechanisms.discrete_gaussian_mechanism, "X-discrete-gaussian",
        "dp.discrete_gaussian(sigma={})", form="discrete Gaussian noise", whole=True,
    ),
    "discrete_laplace": Mechanism(
        "scale", "discrete-scale",
        "Laplace noise on one whole number that a person moves by at most 1",
        discrete_laplace, mechanisms.discrete_laplace_mechanism, "X-discrete-laplace",
        "dp.discrete_laplace(scale={})", lambda b: 1 / b, "discrete Laplace noise", whole=True,
    ),
    "response": Mechanism(
        "epsilon", "response", "randomized response with this epsilon",
        randomized_response, mechanisms.randomized_response_mechanism, "F-randomized-response",
        "dp.randomized_response(epsilon={})", float, "randomized response",
    ),
    "pure": Mechanism(
        "epsilon", "pure", "any mechanism that is epsilon-DP: the worst there is",
        randomized_response, None, None, "dp.randomized_response(epsilon={})",
        float, "any ε-DP mechanism",
        "each", 'the largest epsilon of each step, whatever it is (page "composition")',
    ),
    "approximate": Mechanism(
        "epsilon", "approximate", "any mechanism that is (epsilon, delta)-DP",
        randomized_response, None, None, "dp.randomized_response(epsilon={})", float,
    ),
}  # fmt: skip
ASKED = {known.question: name for name, known in MECHANISMS.items() if known.question}


@dataclass(frozen=True)
class Part:
    """One mechanism of a run: its parameter, the rate of its Poisson sample, how often it runs.

    `leak` is the delta of one step of an approximate mechanism, before sampling.
    """

    mechanism: str
    parameter: float
    rate: float = 1.0
    steps: int = 1
    leak: float = 0.0

    def __post_init__(self):
        name = self.known.parameter
        checked = {
            "parameter": _kept(name, self.parameter, positive),
            "rate": _kept("rate", self.rate, probability, positive),
            "steps": count("steps", number("steps", self.steps)),
            "leak": _kept("leak", self.leak, probability),
        }
        for field, value in checked.items():
            object.__setattr__(self, field, value)
        if self.rate < 1 and self.known.sampled:
            within(name, self.parameter, *self.known.sampled)

    @property
    def known(self):
        """The row of MECHANISMS."""
        return MECHANISMS[self.mechanism]

    def unsampled_loss(self):
        """The loss of one step on all of the data."""
        if self.leak:
            return finite(*dominating_pair(self.parameter, self.leak))
        return self.known.loss(self.parameter)

    def code(self, value):
        """The same as Python, its parameter written as `value`."""
        if self.leak:
            return f"dp.finite(*dp.dominating_pair({value}, {self.leak!r}))"
        return self.known.call.format(value)

    def run(self) -> PrivacyLoss:
        """The loss of all steps."""
        return subsample(self.unsampled_loss(), self.rate).compose(self.steps)

    def needs_delta(self):
        """Its steps have an epsilon only together with a delta that may be chosen."""
        return self.known.epsilon is None

    def epsilon(self, delta):
        """epsilon of one step on all of the data, at `delta` where it needs one."""
        if self.needs_delta():
            return self.unsampled_loss().epsilon(min(delta, 1.0))
        return self.known.epsilon(self.parameter)


def _kept(name, value, *checks):
    """A number that passes the checks: as a float, or as it was typed."""
    value = scalar(name, number(name, value))
    for check in checks:
        check(name, value)
    return value if isinstance(value, Typed) else float(value)


def total(parts):
    """The loss of all parts together."""
    return sum((part.run() for part in parts[1:]), parts[0].run())


@lru_cache(maxsize=8)  # an answer and its rows ask for the same one
def epsilon_interval(parts: tuple[Part, ...], delta: float) -> tuple[float, float]:
    """(low, high) around the epsilon of all parts together.

    Steps that are pure never lose more than the sum of their epsilons (T-10), to the last digit.
    """
    low, high = total(parts).epsilon_interval(delta)
    if not any(part.needs_delta() or part.leak for part in parts):
        added = sum(part.steps * part.epsilon(0.0) for part in parts)
        high = min(high, max(added, low))
    return low, high
