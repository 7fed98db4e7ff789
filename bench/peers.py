"""The accountants that bench/run.py compares, each behind the same call, in a process of its own.

    <python of its environment> bench/peers.py <name>

reads one JSON query a line and answers each with one JSON line: the value and the milliseconds of
processor time (the machine may be shared; everything runs on one thread). A query is
``{"kind": "gaussian" | "laplace" | "response", "noise": ..., "rate": ..., "k": ..., "delta": ...}``
with sensitivity 1, Poisson sampling, neighbours by adding or removing one person; ``noise`` is the
standard deviation, the scale, or the epsilon of randomized response. With ``"epsilon"`` it asks for
the noise that meets this target, with ``"curve"``, a list of epsilons, for their deltas, with
``"fpr"`` for the best attack's true positives. Every query builds new objects.
"""

import functools
import gc
import json
import logging
import os
import resource
import sys
import time
import warnings
from math import exp

MEMORY = 6 * 2**30  # bytes of address space: a peer that wants more fails instead of swapping


def dpnotes():
    import dpnotes as dp

    kinds = {"gaussian": dp.gaussian, "laplace": dp.laplace, "response": dp.randomized_response}

    def loss(kind, noise, rate, k):
        step = kinds[kind](noise)
        return (dp.subsample(step, rate) if rate < 1 else step).compose(k)

    def answer(
        kind, rate, k, delta=None, noise=None, epsilon=None, interval=False, curve=None, fpr=None
    ):
        if curve:
            return loss(kind, noise, rate, k).delta(curve).tolist()
        if fpr is not None:
            return loss(kind, noise, rate, k).tpr(fpr)
        if epsilon is not None:
            return dp.calibrate(lambda s: loss(kind, s, rate, k), epsilon, delta)
        run = loss(kind, noise, rate, k)
        return list(run.epsilon_interval(delta)) if interval else run.epsilon(delta)

    return answer


def event(kind, noise, rate, k):
    import dp_accounting as da

    if kind == "response":
        step = da.RandomizedResponseDpEvent(2 / (1 + exp(noise)), 2)
    else:
        step = {"gaussian": da.GaussianDpEvent, "laplace": da.LaplaceDpEvent}[kind](noise)
    return da.SelfComposedDpEvent(da.PoissonSampledDpEvent(rate, step) if rate < 1 else step, k)


def dp_accounting(accountant):
    import dp_accounting as da

    replaced = da.NeighboringRelation.REPLACE_ONE

    def answer(kind, rate, k, delta, noise=None, epsilon=None):
        fresh = functools.partial(accountant, *[replaced] * (kind == "response"))
        if epsilon is not None:
            return da.calibrate_dp_mechanism(
                fresh,
                lambda s: event(kind, s, rate, k),
                epsilon,
                delta,
                da.LowerEndpointAndGuess(0.5, 1.0),
            )
        book = fresh()
        if not book.supports(event(kind, noise, rate, k)):
            raise NotImplementedError
        return book.compose(event(kind, noise, rate, k)).get_epsilon(delta)

    return answer


def dp_accounting_pld():
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.pld.privacy_loss_distribution import from_randomized_response

    by_events = dp_accounting(PLDAccountant)

    def answer(kind, rate, k, delta, noise=None, epsilon=None, curve=None):
        if curve:  # the accountant passes a list on to its distribution, which takes one
            return PLDAccountant().compose(event(kind, noise, rate, k)).get_delta(curve).tolist()
        if kind == "response" and k > 1:  # PLDAccountant 0.6.0 counts repeated responses once
            once = from_randomized_response(2 / (1 + exp(noise)), 2)
            return once.self_compose(k).get_epsilon_for_delta(delta)
        return by_events(kind, rate, k, delta, noise, epsilon)

    return answer


def dp_accounting_rdp():
    from dp_accounting.rdp import RdpAccountant

    return dp_accounting(lambda *relation: RdpAccountant(None, *relation))


def opacus_prv():
    from opacus.accountants import PRVAccountant

    def answer(kind, rate, k, delta, noise=None, epsilon=None):
        if kind != "gaussian" or epsilon is not None:
            raise NotImplementedError
        book = PRVAccountant()
        book.history = [(noise, rate, k)]  # what k calls of step() leave: their time is not counted
        return book.get_epsilon(delta)

    return answer


def riskcal():
    from riskcal.accountants import CTDAccountant

    def answer(kind, rate, k, noise, fpr):
        book = CTDAccountant()
        book.history = [(noise, rate, k)]  # what k calls of step() leave: their time is not counted
        return 1 - book.get_beta(alpha=fpr)

    return answer


def autodp_rdp():
    from autodp import mechanism_zoo as zoo
    from autodp.transformer_zoo import AmplificationBySampling, ComposeGaussian, Composition

    def answer(kind, rate, k, delta, noise=None, epsilon=None):
        if epsilon is not None:
            raise NotImplementedError
        if kind == "gaussian" and rate < 1:
            params = {"prob": rate, "sigma": noise, "coeff": k}
            return zoo.SubsampleGaussianMechanism(params).get_approxDP(delta)
        if kind == "gaussian":
            return ComposeGaussian()([zoo.ExactGaussianMechanism(noise)], [k]).get_approxDP(delta)
        truth = 1 / (1 + exp(-noise))
        one = zoo.LaplaceMechanism(noise) if kind == "laplace" else zoo.RandresponseMechanism(truth)
        if rate < 1:
            one = AmplificationBySampling()(one, rate, improved_bound_flag=True)
        return Composition()([one], [k]).get_approxDP(delta)

    return answer


def serve(answer):
    """Answers queries until the input ends; whatever the library prints is dropped."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print("ready", file=channel, flush=True)
    for line in sys.stdin:
        query, reply = json.loads(line), {}
        gc.collect()
        start = time.process_time()
        try:
            value = answer(**query)
            reply["value"] = value if isinstance(value, list) else float(value)
        except NotImplementedError:
            reply["error"] = ""
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:150]
        reply["ms"] = 1e3 * (time.process_time() - start)
        print(json.dumps(reply), file=channel, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    serve(globals()[sys.argv[1]]())
