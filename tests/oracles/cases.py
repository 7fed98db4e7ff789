"""Queries that were once answered wrongly or slowly: asked again in every attack.

A line is the method, the point, and the parts: (g)aussian, (l)aplace, (r)esponse or (f)inite with
its parameters, k rounds, sampled at a rate or (swap) under substitution.
"""

from ast import literal_eval

from .judge import Query
from .laws import Part

LETTERS = {"g": "gaussian", "l": "laplace", "r": "response", "f": "finite"}
LINES = """
delta 0.1287288191965111: l 7.768268257298666
delta 2.169999999999999: r 0.31 k=7
delta 1.0059365397297196e-09: r 1.7343733443615856e-11 k=58
delta 7.7097: l 2984.5 + l 0.08368
delta 0.0: l 0.00058 + l 17.4 k=2
delta 4.2386: l 30.295 k=2 + l 0.4793 k=2
delta 54.809: f (0.5,0.3,0.2) (0.3,0.6999999969999999,3e-09) k=3
epsilon 0.999999999: f (0.8,0.2) (0.9,0.1) k=50
epsilon 0.999999999: f (0.5,0.499999999,1e-09) (1e-09,0.5,0.499999999) k=9
delta 0.69: f (0.8,0.2) (0.9,0.1) + r 3.4e-14 k=5000
delta 1.0: g 1.027 k=2.1e10 rate=0.00118 + l 3.0
delta 1.0: g 3627.0 k=1752 rate=1.7e-06 + g 2.69e-05 k=2786761 + g 2.69 k=2 rate=6.5e-06
epsilon 1.5e-144: g 502243.0 k=294 rate=2.49e-09
tradeoff 0.31: g 202647.0 k=27629 rate=1.3e-09
delta 0.5: g 2e-05 k=1e6 + l 1.0
epsilon 1e-144: g 500000.0 k=300 rate=2.5e-09
renyi 1e+300: g 1.0 rate=0.01
epsilon 1e-06: r 1e-06 k=1e12
delta 1.0: g 0.01495 k=1.4e10 rate=1.03e-05
epsilon 1e-200: g 0.2 k=300 rate=0.999999
epsilon 1e-05: g 100.0 rate=0.001 + l 5.0 rate=0.01
delta 0.002: g 100.0 rate=0.001 + l 5.0 rate=0.01
renyi 100001.0: l 10.0 rate=0.01
delta 0.0: l 10.0 k=2 rate=0.1
delta 0.0004185: l 10.0 k=2 rate=0.1
delta 0.0: l 1.0 k=2 rate=0.0001
epsilon 4.14e-05: l 1.0 k=2 rate=0.0001
epsilon 9.3e-07: l 18.9 k=2 rate=0.000134
delta 0.0: g 2.0 k=2 rate=0.0001
delta 999.7: g 3.0 + l 0.001
epsilon 1e-06: g 313070.0 k=1e11 rate=0.99
delta 0.01: g 1.25 k=500 rate=2e-05
delta 0.03: g 1.25 k=500 rate=2e-05
delta 0.1: g 1.25 k=500 rate=2e-05
epsilon 1e-16: g 1.25 k=500 rate=2e-05
epsilon 1e-300: g 0.23116525265781734 k=1e6 rate=0.3813095052091621
epsilon 2.4e-290: r 1.62e-05 k=1e10
delta 1.0: r 1e-05 k=1e11
delta 0.5: l 5.0 k=3
epsilon 1e-20: l 5.0
renyi inf: l 5.0 k=3
tradeoff 0.8: g 20000.0 k=300000 rate=5e-10
tradeoff 0.05: g 8.66 k=3 rate=0.00025 + l 8.0 rate=0.1
tradeoff 0.01: g 0.7071 k=2 rate=0.0025
tradeoff 5.9e-12: l 7917.7 k=513225 rate=0.04652 + l 5206.8 k=48499882385
delta 1.0: l 10.0 rate=0.02 + l 2.0 k=2
epsilon 4.1e-18: g 14.58 k=3 rate=0.01 + l 0.738 k=2 rate=0.01
epsilon 1.06e-07: g 31.77798884282259 k=3 rate=5.6e-06 + l 0.9094520179696644 k=2 + r 0.03334
delta 3801380.3386565335: l 0.08216855122505384 k=335981
delta 32.585575283661726: g 0.21278599266179757 k=2 + r 2.052 k=51
epsilon 0.00011719816577230845: g 0.9682083884977412 rate=2.7680059185043686e-05 +
 l 115.365032489636 k=55 rate=0.0024794801656324614
delta 3.0: g 1.0 + f (0.5,0.4,0.1) (0.5,0.5,0.0)
delta 6738.7059973447585: g 2.589172704413985 k=59069
delta 173.57398615547206: g 0.18496295490030046 swap=4.4911313189902256e-07
tradeoff 0.05: f (0.36,0.31,0.33) (0.36,0.64,0.0) k=25
delta 0.0098: g 5.0 k=23 rate=0.002
epsilon 1e-11: l 8.0 k=6e11 rate=0.0008
epsilon 0.0164: l 5.075 k=4231987 + f (0.17,0.83) (0.47,0.53) k=230313755782
delta 17181.61847038675: g 0.08322224165798689 k=14716 rate=0.00223750829280995 +
 l 31.63246668163973 k=5 rate=1.2548648489813614e-07
epsilon 1e-05: f (0.39,0.39,0.22) (0.35,0.65,0.0) k=1e11
delta 0.654: f (0.39,0.39,0.22) (0.35,0.65,0.0) k=637938081
delta 1.0: g 0.01 k=100000 rate=0.0001
delta 3.55e-09: g 0.287 k=2 rate=1.8e-07
epsilon 1e-05: f (0.39,0.49,0.12) (0.09,0.2,0.71) k=1.5e11
delta 7.5: g 0.6 k=1500 rate=0.01 + l 223600.0 k=2e11 rate=0.2
epsilon 5.85e-12: l 13.75 k=3 rate=4.11e-07
epsilon 0.0001143: g 1.03 k=11055 swap=0.0001523
delta 0.16: g 1.5 k=2 swap=0.0008 + g 4.0 rate=0.06
epsilon 0.7798616537159856: f (0.9999999999977038,2.296202e-12) (0.11690224,0.88309776) k=2
delta 0.0: l 1e8 k=3
epsilon 1e-291: r 0.01 k=2000
"""


def _part(text):
    letter, *words = text.split()
    named = dict(word.split("=") for word in words if "=" in word)
    value = tuple(literal_eval(word) for word in words if "=" not in word)
    sampler = "subsample_substitution" if "swap" in named else "subsample"
    rate = float(named.get("rate", named.get("swap", 1)))
    return Part(LETTERS[letter], value, int(float(named.get("k", 1))), rate, sampler)


def _query(line):
    question, parts = line.split(": ")
    method, point = question.split()
    return Query(tuple(_part(part) for part in parts.split(" + ")), method, float(point))


CASES = [_query(line) for line in LINES.strip().replace("+\n", "+").split("\n")]
CASES.append(Query(tuple(Part("response", (0.1 + 0.01 * i,)) for i in range(30)), "epsilon", 1e-6))
