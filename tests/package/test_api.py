"""Examples in docstrings give what they say, and the page "API" shows all there is."""

import doctest

import numpy as np
import pytest

import dpnotes as dp
from pages import api
from public import PUBLIC

FINDER = doctest.DocTestFinder()  # of a class, the examples of its methods too


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_has_an_example_and_it_is_true(name):
    spaces = {"dp": dp, "np": np, **vars(dp.chapters)}
    examples = FINDER.find(PUBLIC[name], name, globs=spaces)
    assert examples[0].examples
    report, runner = [], doctest.DocTestRunner()
    for example in examples:
        assert not runner.run(example, out=report.append).failed, "".join(report)


def test_the_first_call_of_a_name_leads_to_the_page():
    called = '<span class="n">{}</span><span class="o">.</span><span class="n">{}</span>'.format
    known, unknown = called("composition", "advanced"), called("ax", "plot")
    link = f'<a href="api.html#dpnotes.chapters.composition.advanced">{known}</a>'
    assert api.link_first_calls(known + unknown + known, "api.html") == link + unknown + known


def test_the_page_lists_what_a_room_offers():
    assert {"gaussian", "composition.advanced", "erm.logistic_loss", "stopping.Filter"} < set(
        PUBLIC
    )
    assert not {name for name in PUBLIC if "_" in (name[0], name.split(".")[-1][0])}


def test_a_parameter_is_described_in_the_words_of_its_refusal():
    [line] = [line for line in api.parameters(dp.gaussian) if "sigma" in line]
    assert line == ":param sigma: a finite number > 0"
    [line] = [line for line in api.parameters(dp.PrivacyLoss.epsilon) if "delta" in line]
    assert line == ":param delta: a number in [0, 1], or an array of them"
    for call in PUBLIC.values():
        if hasattr(call, "__wrapped__"):
            taken = set(api.inspect.signature(call).parameters)
            said = {line.split(":")[1].removeprefix("param ") for line in api.parameters(call)}
            assert said >= taken - {"x", "y", "x_neighbour", "output"}, call
