"""The epsilons of `page_proofs`, which pages print, have files that prove them."""

import pytest

import dpnotes as dp
from dpnotes.chapters.practice import RUNS
from dpnotes.proofs.proof import steps_of
from evidence import at_most
from page_proofs import FOLDER, PRINTED


def test_each_file_belongs_to_a_run_of_a_page():
    assert {file.stem for file in FOLDER.iterdir()} == set(PRINTED)


def test_each_published_number_has_a_file():
    assert len(RUNS) > 10 and all((FOLDER / f"practice-{key}.json").exists() for key in RUNS)


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_is_proved(name):
    """Checked anew, for the run and the delta of the page; epsilon is nearly the least one."""
    run, delta = PRINTED[name]
    proof = dp.Proof.read((FOLDER / f"{name}.json").read_text(encoding="utf8"))
    at_most(dp.check(proof), delta)
    low, high = run.epsilon_interval(delta)
    epsilon = float(proof.epsilon)
    at_most([low, epsilon], [epsilon, high], rtol=1e-8)
    assert (proof.steps, float(proof.delta)) == (steps_of(run), delta)


def test_a_published_run_has_as_many_steps_as_it_says():
    """Whole epochs of the length that is assumed, rounded to a whole number of steps."""
    told = [row for row in RUNS.values() if "steps an epoch" in row.assumed]
    for row in told:
        an_epoch = float(row.assumed.split()[0])
        epochs = round(row.steps / an_epoch)
        assert abs(row.steps - epochs * an_epoch) <= 0.5, row
    assert len(told) > 8
