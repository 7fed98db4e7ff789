"""Epsilons that papers and repositories print, each with the parameters that they print beside it.

The section "Published numbers, recomputed" of the page `practice`; `proofs/` has a proof of each.
"""

from typing import NamedTuple

from ..accountant import PrivacyLoss, gaussian, subsample

MNIST, CIFAR, IMAGENET = 60_000, 50_000, 1_281_167  # pictures to train with


class Published(NamedTuple):
    """A printed epsilon, and the run of which it is said; ``RUNS`` has some twenty.

    ``sigma`` is the noise in units of the clipping norm, ``rate`` the share of examples in a batch.
    ``assumed`` is what the parameters do not say: which number of steps or of people is meant.

    >>> first = practice.RUNS["abadi-1"]
    >>> first.epsilon, round(first.run().epsilon(first.delta), 4)
    (1.26, 0.9469)
    """

    name: str
    source: str
    epsilon: float
    delta: float
    sigma: float
    rate: float
    steps: int
    assumed: str = ""

    def run(self) -> PrivacyLoss:
        """The run, with Poisson sampling; neighbours differ in one example.

        >>> round(practice.RUNS["dpsda-meant"].run().epsilon(1e-5), 4)
        3.3414
        """
        return subsample(gaussian(self.sigma), self.rate).compose(self.steps)


def _mnist(name, source, epsilon, sigma, epochs, an_epoch=234):
    steps, rate = round(epochs * an_epoch), 256 / MNIST
    return Published(name, source, epsilon, 1e-5, sigma, rate, steps, f"{an_epoch} steps an epoch")


def _opacus(name, epsilon, sigma, epochs, source="Opacus, examples/mnist_README.md"):
    return Published(name, source, epsilon, 1e-5, sigma, 0.004, 250 * epochs, "250 steps an epoch")


_TF, _GDP = "TensorFlow Privacy, tutorials/README.md", "Bu, Dong, Long and Su (2020), figure 4"
_ISSUE = "Opacus, issue 153"
_EPOCH = MNIST / 256  # where the last batch of an epoch is not whole
RUNS = {
    "abadi-1": Published("MNIST, 100 epochs", "Abadi et al. (2016)", 1.26, 1e-5, 4, 0.01, 10_000),
    "abadi-2": Published("MNIST, 400 epochs", "Abadi et al. (2016)", 2.55, 1e-5, 4, 0.01, 40_000),
    "tf-1": _mnist("MNIST, 60 epochs", _TF, 2.92, 1.12, 60),
    "tf-2": _mnist("MNIST, 30 epochs", _TF, 9.74, 0.6, 30),
    "tf-3": _mnist("MNIST, 10 epochs", _TF, 1.20, 1.2, 10),
    "opacus-1": _opacus("MNIST, 45 epochs", 7.10, 0.7, 45),
    "opacus-2": _opacus("MNIST, 60 epochs", 3.01, 1.1, 60),
    "opacus-3": _opacus("MNIST, 15 epochs", 1.19, 1.3, 15),
    "opacus-issue-1": _opacus("the first of these", 6.859, 0.7, 45, _ISSUE),
    "opacus-issue-2": _opacus("the second", 2.905, 1.1, 60, _ISSUE),
    "opacus-names": Published(
        "names, 50 epochs", "Opacus, examples/char-lstm_README.md", 11.83, 8e-5, 1, 0.05, 1000,
    ),
    "gdp-1": _mnist("MNIST, 20 epochs, by moments", _GDP, 1.34, 1.3, 20, _EPOCH),
    "gdp-2": _mnist("the same by Gaussian DP", _GDP, 1.34, 1.06, 20, _EPOCH),
    "gdp-3": _mnist("MNIST, 70 epochs, by moments", _GDP, 8.68, 0.7, 70, _EPOCH),
    "gdp-4": _mnist("the same by Gaussian DP", _GDP, 8.68, 0.638, 70, _EPOCH),
    "de-cifar": Published(
        "CIFAR-10", "De et al. (2022), their configuration", 1, 1e-5, 10, 4096 / CIFAR, 725,
    ),
    "de-imagenet": Published(
        "ImageNet", "De et al. (2022), their configuration", 8, 8e-7, 2.5, 16_384 / IMAGENET,
        71_589, "all pictures, of which a part may be kept for validation",
    ),
    "tan-cifar": Published(
        "CIFAR-10", "Sander, Stock and Sablayrolles (2022), README", 8, 1e-5, 3, 4096 / CIFAR, 2500,
        "the delta: the README has none",
    ),
    "tan-imagenet": Published(
        "ImageNet", "Sander, Stock and Sablayrolles (2022), README", 8, 8e-7, 2.5,
        32_768 / IMAGENET, 18_000, "the delta: the README has none",
    ),
    "dpsda-printed": Published(
        "images by an API, figure 5", "DPSDA, as printed", 3.34, 1e-5, 2**0.5, 1, 20,
    ),
    "dpsda-meant": Published(
        "the same", "DPSDA, issue 6, as its author says it was", 3.34, 1e-5, 8**0.5, 1, 5,
    ),
}  # fmt: skip
