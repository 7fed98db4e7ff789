"""The checks that the claims rest on can fail, and note what they saw."""

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.chapters import gaussian
from evidence import at_most, claim, equal, holds, must_fail, recording, slip


def test_checks_fail_when_they_should():
    for check, arguments in [
        (at_most, ([1.0, 2.0], [1.0, 1.9])),
        (at_most, (np.nan, 1.0)),
        (at_most, (0.0, np.nan)),
        (equal, (1.0, 1.0 + 1e-9)),
        (equal, (np.nan, np.nan)),
        (equal, (np.inf, 1.0)),
        (holds, (np.array([True, False]),)),
    ]:
        with pytest.raises(AssertionError):
            check(*arguments)


def test_the_record_counts_instances_and_keeps_the_tightest():
    with recording({}) as record:
        at_most([1.0, 1.0], [2.0, 4.0])
        at_most(np.zeros(3), 0.0)
        equal([1.0, 2.0], [1.0, 2.0 * (1 + 1e-14)])
        holds([True])
        must_fail(lambda: at_most(2.0, 1.0))
        slip("T-9", "so")
    assert record["instances"] == 8 and record["caught"] == 1
    assert record["slack"] == 0.5 and 0 < record["error"] < 1e-13
    assert record["slips"] == [["T-9", "so"]]


def test_infinite_bounds_hold_and_do_not_count_as_slack():
    with recording({}) as record:
        at_most(1.0, np.inf)
        equal(np.inf, np.inf)
    assert "slack" not in record and record["error"] == 0.0


def test_a_claim_names_what_its_test_calls():
    @claim("T-9")
    def chapter():
        return gaussian.loss_tail, dp.kl, np.log, dp

    @claim("T-9", of=dp.kl)
    def package(kl):
        return [lambda: dp.gaussian]

    named = [test.pytestmark[0].kwargs["by"] for test in (chapter, package)]
    assert named == [["gaussian.loss_tail"], ["accountant.gaussian", "divergences.kl"]]
