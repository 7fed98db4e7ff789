"""Every block of Python that the pages and the README print runs as it stands there.

Blocks of dpnotes and of dp-accounting run here. Those of other libraries run in an environment of
their own, made from tests/foreign.txt, by `make thorough`.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpnotes as dp
from dpnotes import plotting
from machine import ROOT, unable
from printed import run

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
IMPORTED = re.compile(r"^(?:from|import) (\w+)", re.M)
OURS = {"dpnotes", "dp_accounting", "numpy"}
NOT_TO_BE_HAD = {"dp_auditorium"}  # in no registry
HAS = {  # what a block takes from its reader
    "agreement": "agreement = [0.0, 1.0] * 500",
    "rows, labels": "import numpy as np; rows = np.eye(4)[[0, 1, 2, 3] * 50] / 2"
    "; labels = [0, 0, 1, 1] * 50",
    "scores_in": "import numpy as np; rng = np.random.default_rng(1)"
    "; scores_in, scores_out = rng.normal(size=(2, 500)) + [[1.0], [0.0]]",
    "optimizer=optimizer": """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.utils.data.TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
loader = torch.utils.data.DataLoader(rows, batch_size=16)
def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
""",
}
PRINTED = [
    pytest.param(
        block[1],
        id=f"{file.stem}-{number}",
        marks=[] if set(IMPORTED.findall(block[1])) <= OURS else pytest.mark.thorough,
    )
    for file in [*sorted((ROOT / "chapters").glob("*.md")), ROOT / "README.md"]
    for number, block in enumerate(BLOCK.finditer(file.read_text(encoding="utf-8")), 1)
    if not set(IMPORTED.findall(block[1])) & NOT_TO_BE_HAD
]


@pytest.fixture(scope="module")
def elsewhere():
    """The Python of an environment with the libraries of other people, made once."""
    asked = ROOT / "tests" / "foreign.txt"
    mark = hashlib.sha256(asked.read_bytes() + sys.version.encode()).hexdigest()[:12]
    home = Path.home() / ".cache" / "dpnotes" / f"foreign-{mark}"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        uv = [sys.executable, "-m", "uv"]
        install = [*uv, "pip", "install", "--quiet", "--python", python, "--requirement", asked]
        make = [*uv, "venv", "--quiet", "--clear", "--python", sys.executable, home]
        for step in (make, install):
            made = subprocess.run(step, capture_output=True, text=True)
            if made.returncode:
                unable(f"no environment for other libraries: {made.stderr[-300:]}")
        (home / "ready").touch()
    return python


@pytest.mark.parametrize("code", PRINTED)
def test_printed_code_runs_and_its_numbers_come_out(code, request):
    setup = "\n".join(names for word, names in HAS.items() if word in code)
    if set(IMPORTED.findall(code)) <= OURS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert run(code, setup)[0] == []
        return
    asked = json.dumps({"code": code, "setup": setup})
    script = [request.getfixturevalue("elsewhere"), "-W", "ignore", ROOT / "tests" / "printed.py"]
    home = {**os.environ, "PYTHONPATH": str(ROOT)}  # dpnotes, beside the libraries of others
    ran = subprocess.run(script, input=asked, capture_output=True, text=True, cwd=ROOT, env=home)
    assert not ran.returncode, ran.stderr[-1500:]
    faults, _ = json.loads(ran.stdout.splitlines()[-1])
    assert faults == []


LIBRARIES = {  # as pages write them: their name where they are installed
    r"Opacus": "opacus", r"dp[-_]accounting": "dp-accounting", r"OpenDP": "opendp",
    r"JAX Privacy": "jax-privacy", r"diffprivlib": "diffprivlib", r"riskcal": "riskcal",
    r"TensorFlow Privacy": None, r"autodp": None, r"Tumult Core": None,
}  # fmt: skip
RUN_HERE = dict(
    line.split("==")
    for line in (ROOT / "tests" / "foreign.txt").read_text().split()
    if "==" in line
)
NOT_SAID = re.compile(
    r"^(```+).*?^\1$|\{cite[^`]*`[^`]*`|`[^`\n]*test_\w+`|^.*/issues/.*$", re.M | re.S
)


def unversioned(text):
    """The libraries of which a page speaks without saying which version, that whose code runs."""
    said = NOT_SAID.sub("", text)
    for name, installed in LIBRARIES.items():
        found = re.findall(rf"{name}[`*]*(?:\]\(\S+?\))?,? \(?(?:version )?(\d+(?:\.\d+)+)", said)
        known = RUN_HERE.get(installed)
        if re.search(name, said) and not any(
            known is None or f"{known}.".startswith(f"{v}.") for v in found
        ):
            yield f"{name.replace('[-_]', '_')} {known or '(which version?)'}"


@pytest.mark.parametrize(
    "file", sorted((ROOT / "chapters").glob("*.md")), ids=lambda file: file.stem
)
def test_a_page_says_which_version_of_a_library_it_speaks_of(file):
    assert list(unversioned(file.read_text(encoding="utf-8"))) == []


def test_a_library_without_its_version_is_found():
    assert list(unversioned("Opacus draws, autodp bounds.")) == [
        "Opacus 1.6.0",
        "autodp (which version?)",
    ]
    assert list(unversioned("[OpenDP](https://opendp.org) (0.15) is old.")) == ["OpenDP 0.16.0"]
    for said in ("`dp_accounting` (0.6)", "[OpenDP](https://opendp.org) 0.16", "**Opacus** (1.6)"):
        assert list(unversioned(f"So is {said}.")) == []


def test_what_a_library_reports_is_quoted_right():
    import dp_accounting as other
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    step = other.PoissonSampledDpEvent(1 / 29, other.GaussianDpEvent(1.0))
    rdp = RdpAccountant().compose(step, 87).get_epsilon(1e-5)
    mu = 87**0.5 / 29 * (np.e - 1) ** 0.5  # the central limit of Opacus' accountant "gdp"
    full = other.TruncatedSubsampledGaussianDpEvent
    cut = {
        size: PLDAccountant().compose(full(60_000, 256 / 60_000, size, 1.1), 2000).get_epsilon(1e-5)
        for size in (300, 256)
    }
    page = (ROOT / "chapters" / "practice.md").read_text(encoding="utf-8")
    page = re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)  # a cell may say them, too
    for words, value in {
        r"it says $\eps = 2.75$": rdp,
        "reported as `2.75`": rdp,
        "it says `1.65`": dp.gaussian(1 / mu).epsilon(1e-5),
        "gives `2.08`": cut[300],
        "and `5.44` with": cut[256],
    }.items():
        assert page.count(words) == 1
        plotting.says({words: value})


def test_a_number_that_does_not_come_out_is_found():
    assert run("2.0 / 3    # 0.6667: two thirds") == ([], 1)
    assert run("2.0 / 3    # 0.6666...") == ([], 1)
    (fault,), _ = run("2.0 / 3, 1.0    # 0.66 and 1.0")
    assert fault.startswith("0.66 is printed and 0.666")
    with pytest.raises(NameError):
        run("odp.m    # import opendp.prelude as odp")
