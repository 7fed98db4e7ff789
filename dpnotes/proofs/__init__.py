"""Proofs that a run is (epsilon, delta)-DP: short files, which anybody can check.

``prove`` plans in floating point (``plan``) and lets ``check`` prove what it planned, in ball
arithmetic (``checker``, ``sampled``, ``replaced``). These three files are all that a reader has to
trust, beside python-flint: ``pip install dpnotes[proof]``. The theorems are on the page `jumps`.
"""

from .proof import Proof, check, prove

__all__ = ["Proof", "check", "prove"]
