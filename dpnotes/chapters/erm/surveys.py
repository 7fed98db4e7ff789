"""Two surveys that statsmodels ships, scaled by the codes of their questionnaires and nothing else.

A code is public before anybody answers: what is done here to a row depends on that row alone, so
it costs no privacy. Rows have norm at most 1. Needs statsmodels, and is imported by pages, not by
`dpnotes` itself.
"""

import numpy as np

# lowest and highest code of each answer, from the codebooks (statsmodels' NOTE of each dataset)
VOTERS = {
    "TVnews": (0, 7), "selfLR": (1, 7), "ClinLR": (1, 7), "DoleLR": (1, 7),  # days; left to right
    "PID": (0, 6), "educ": (1, 7), "income": (1, 24),  # Democrat to Republican; grades; brackets
}  # fmt: skip
READERS = {
    "rate_marriage": (1, 5), "religious": (1, 4), "educ": (9, 20),
    "occupation": (1, 6), "occupation_husb": (1, 6),
}  # fmt: skip


def voters():
    """(x, y): 944 voters before the US election of 1996, y = 1 for Dole and -1 for Clinton.

    x (944, 8): seven coded answers, each mapped from its codes to [-1, 1], and a constant 1, all
    divided by sqrt(8). Age and town size have no codes and are left out.
    """
    from statsmodels.datasets import anes96

    answers = anes96.load_pandas().data
    return _scale(answers, VOTERS), np.where(answers["vote"] > 0, 1.0, -1.0)


def readers():
    """(x, y): 6,366 readers of a magazine (Fair 1978), y = 1 for those who had an affair.

    x (6366, 6): five coded answers in [-1, 1] and a constant 1, divided by sqrt(6).
    """
    from statsmodels.datasets import fair

    answers = fair.load_pandas().data
    return _scale(answers, READERS), np.where(answers["affairs"] > 0, 1.0, -1.0)


def _scale(answers, codes):
    low, high = np.array(list(codes.values()), float).T
    rows = (2 * answers[list(codes)].to_numpy() - low - high) / (high - low)
    rows = np.column_stack([np.clip(rows, -1, 1), np.ones(len(rows))])
    return rows / np.sqrt(rows.shape[1])
