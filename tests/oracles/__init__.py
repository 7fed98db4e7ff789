"""The truth about compositions, by methods that share no code with `dpnotes`.

`laws` says what a mechanism is, `exact`, `contour` and `lattice` compute delta(epsilon), `truth`
chooses between them, `judge` compares an answer, `draws` makes queries up (`make attack`).
"""
