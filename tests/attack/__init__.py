"""The attack on the accountant: random mechanisms and queries against oracles that share no code
with `dpnotes`. `python -m tests.attack --settings 5000 --seed 1`, or `make attack`."""
