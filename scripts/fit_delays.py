"""Repeat the fit of the delay model `lambda-rare-tail` and print how well it describes the
measurements.

Usage: python scripts/fit_delays.py FOLDER     (the folder with the files
short-*-rare-long-tail.csv)

Every estimate is closed form, so the numbers in polarcodes/rare_tail.py can be checked by hand:
early share and mean from the values below EARLY seconds; log-logistic body by least squares of log
quantiles on logit(p); stalls (above STALL seconds) by moments: mu = mean count in rounds with a
stall - 1, share of stalled rounds = seen (1 + mu) / mu.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from polarcodes.delays import from_table
from polarcodes.rare_tail import FITTED_WORKERS, LambdaRareTail

EARLY = 0.25
STALL = 5.0
LONG = 32.0
BODY_QUANTILES = np.array(
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999]
)
DRAWS = 4000
LARGEST_OF = 64


def load(folder: Path) -> np.ndarray:
    """Excess seconds over the fastest worker of the round, (rounds, 256), all files stacked."""
    files = sorted(folder.glob("short-*-rare-long-tail.csv"))
    if not files:
        raise SystemExit(f"no short-*-rare-long-tail.csv in {folder}")
    return np.vstack([from_table(np.loadtxt(file, delimiter=",")).excess for file in files])


def fit(excess: np.ndarray) -> LambdaRareTail:
    """The model whose constants are shipped."""
    early = excess[excess < EARLY]
    body = excess[(excess >= EARLY) & (excess < STALL)]
    logit = np.log(BODY_QUANTILES / (1.0 - BODY_QUANTILES))
    slope, intercept = np.polyfit(logit, np.log(np.quantile(body, BODY_QUANTILES)), 1)
    counts = (excess > STALL).sum(axis=1)
    mu = counts[counts > 0].mean() - 1.0
    seen = (counts > 0).mean()
    waits = excess[excess > STALL]
    ordinary = excess[excess <= STALL].mean()
    return LambdaRareTail(
        early_share=float((excess < EARLY).mean()),
        early_mean=float(early.mean()),
        body_median=float(np.exp(intercept)),
        body_shape=float(1.0 / slope),
        stalled_rounds=float(seen * (1.0 + mu) / mu),
        stall_rate=float(mu / FITTED_WORKERS),
        short_wait=float(waits[waits < LONG].mean() - ordinary),
        long_wait=float(waits[waits >= LONG].mean() - ordinary),
        long_share=float((waits >= LONG).mean()),
    )


def quality(excess: np.ndarray, model: LambdaRareTail) -> list[tuple[str, float, float]]:
    """(what, data, model): quantiles of a worker, share of stalled rounds, largest of 64
    workers."""
    rows = [
        (f"{100 * p:g} % of the workers below", float(np.quantile(excess, p)), model.quantile(p))
        for p in (0.01, 0.1, 0.5, 0.9, 0.99, 0.995, 0.999)
    ]
    rows.append(("mean of a worker", float(excess.mean()), model.mean))
    rng = np.random.default_rng(0)
    rounds = model.sample(rng, DRAWS, FITTED_WORKERS)
    rows.append(
        (
            "share of rounds with a stall",
            float((excess > STALL).any(axis=1).mean()),
            float((rounds > STALL).any(axis=1).mean()),
        )
    )
    measured = from_table(excess).sample(rng, DRAWS, LARGEST_OF).max(axis=1)
    modelled = model.sample(rng, DRAWS, LARGEST_OF).max(axis=1)
    rows.append((f"largest of {LARGEST_OF}: mean", float(measured.mean()), float(modelled.mean())))
    rows += [
        (
            f"largest of {LARGEST_OF}: {100 * p:g} %",
            float(np.quantile(measured, p)),
            float(np.quantile(modelled, p)),
        )
        for p in (0.1, 0.5, 0.8, 0.9)
    ]
    return rows


def main(arguments: list[str]) -> int:
    """Print the fitted constants beside the shipped ones, then the quality table of the shipped
    model."""
    parser = argparse.ArgumentParser(description="Fit the delay model lambda-rare-tail.")
    parser.add_argument("folder", type=Path)
    excess = load(parser.parse_args(arguments).folder)
    shipped, fitted = LambdaRareTail(), fit(excess)
    print(f"{len(excess)} rounds of {excess.shape[1]} workers")
    print(f"{'constant':32}{'fitted':>10}{'shipped':>10}")
    for constant, value in vars(fitted).items():
        if constant != "name":
            print(f"{constant:32}{value:10.4g}{getattr(shipped, constant):10.4g}")
    print(f"\n{'seconds':32}{'data':>10}{'model':>10}")
    for what, data, model in quality(excess, shipped):
        print(f"{what:32}{data:10.3f}{model:10.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
