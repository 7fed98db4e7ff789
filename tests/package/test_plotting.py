"""Figures: described in words, the same each time, coloured by the page."""

import re

import numpy as np
import pytest

from dpnotes import plotting


def drawn(points=50):
    fig, (left, right) = plotting.figure(1, 2, sharey=True)
    left.plot(np.linspace(0, 1, points), np.linspace(0, 1, points) ** 2, label="square")
    right.scatter([0, 1], [1, 0], color=plotting.COLORS[1])
    left.set(xlabel="x", ylabel="y")
    return plotting.show(fig, alt="A parabola on the left, two points on the right.").markup


def test_the_same_figure_is_the_same_text_and_labels_have_a_key():
    assert drawn() == drawn() and "legend_1" in drawn() and "legend_2" not in drawn()


@pytest.mark.parametrize("alt", ["", "plot", "a b", None, 3])
def test_a_figure_without_description_is_refused(alt):
    fig, _ = plotting.figure()
    with pytest.raises(ValueError, match="alt must describe"):
        plotting.show(fig, alt=alt)


def test_the_description_is_the_label_and_is_escaped():
    fig, _ = plotting.figure()
    markup = plotting.show(fig, alt='An empty plot of "a" < b').markup
    assert 'aria-label="An empty plot of &quot;a&quot; &lt; b"' in markup
    assert 'role="img"' in markup and markup.startswith("<figure")


def test_every_colour_is_a_variable_with_its_light_value():
    markup = drawn()
    colors = re.findall(r"#[0-9a-f]{6}\b(?!-)", re.sub(r'(id="|href="#|url\(#)[^")]*', "", markup))
    variables = re.findall(r"var\(--dpn-[a-z0-9]+, (#[0-9a-f]{6})\)", markup)
    assert variables and sorted(colors) == sorted(variables)
    for name in ("--dpn-ink", "--dpn-muted", "--dpn-c0", "--dpn-c1"):
        assert f"var({name}," in markup


def test_ids_of_two_figures_do_not_collide():
    one, two = (set(re.findall(r'\bid="([^"]+)"', drawn(points))) for points in (50, 51))
    assert one and not one & two


def test_no_pyplot_state_and_no_size_in_points():
    markup = drawn()
    assert not re.search(r'<svg[^>]*\swidth="', markup) and "viewBox" in markup
    assert repr(plotting.Drawing(markup)) == "<figure>"
    assert plotting.Drawing(markup)._repr_html_() == markup


SAID = {  # words of a text: what they may stand for, and what they may not
    "falls to 0.67": (2 / 3, [0.66, 0.676]),
    "40 women": (39.6, [39.4]),
    "costs 41 percent": (100 * (2**0.5 - 1), [0.41, 42]),
    "60{,}000 rows": (60_000, [61_000]),
    r"$1.5 \cdot 10^{-6}$": (1.52e-6, [1.6e-6]),
    "at $-3$": (-3, [3]),
    "1.5 million people": (1_520_000, [1.5]),
    "Eleven of them": (11, [12]),
    "two thirds": (0.66, [0.6]),
    "twice as much": (2.05, [2.2]),
    "about a hundred": (91, [89, 111]),
    "more than fifty times": (98, [49, 101]),
    "at most 27 rounds": (26.5, [27.1, 13]),
    "from 1.83 to 2.84": ((1.83, 2.84), [(2.84, 1.83), 1.83]),
    "no number": ((), [1]),
}


@pytest.mark.parametrize("words", SAID)
def test_numbers_of_the_text_are_checked_to_their_digits(words):
    true, false = SAID[words]
    plotting.says({words: true})
    for value in [*false, np.nan] if words != "from 1.83 to 2.84" else false:
        with pytest.raises(ValueError, match="numbers must"):
            plotting.says({words: value})


@pytest.mark.parametrize("aspect", ["auto", "equal"])
def test_on_a_phone_the_key_lies_below_the_name_of_the_axis(aspect):
    fig, axes = plotting.figure(width=4.6, height=4.2)
    axes.plot([0, 1], [0, 1], label="a line")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect=aspect)
    plotting.show(fig, alt="A line from one corner to the other.")  # the narrow one is left
    fig.draw_without_rendering()
    key, name = axes.get_legend(), axes.xaxis.label
    assert key.get_window_extent().y1 <= name.get_window_extent().y0
