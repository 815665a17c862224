"""Search schedules for the paper's delays and print the table of polarcodes/schedules/searched.py.

    python scripts/search_schedules.py [K r TOLERANCE CANDIDATES] [--max-degree D]

Without these four numbers, all entries of the table are searched again; the same seed finds the
same ones. Only entries that beat CPGC, RCSC, UC-MMC and MCC on rounds they were not searched on
belong in the table; the script says which do.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from polarcodes.schedules import search_schedule, shifted_exponential

# K, r, tolerance, candidates
ENTRIES = [(20, 3, tolerance, 1000) for tolerance in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)]
ENTRIES += [(32, 4, tolerance, 150) for tolerance in (0.0, 0.05)]  # ten times the work for each


def main() -> int:
    """Print one entry per search, ready to be pasted, with what it was compared with."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("entry", nargs="*", type=float, metavar="K r TOLERANCE CANDIDATES")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--max-degree", type=int)
    options = parser.parse_args()
    if len(options.entry) not in (0, 4):
        parser.error("give K, r, a tolerance and a number of candidates, or none of them")
    entries = ENTRIES
    if options.entry:
        workers, load, tolerance, candidates = options.entry
        entries = [(int(workers), int(load), tolerance, int(candidates))]
    for workers, load, tolerance, candidates in entries:
        found = search_schedule(
            workers,
            load,
            shifted_exponential,
            tolerance=tolerance,
            candidates=candidates,
            rounds=options.rounds,
            max_degree=options.max_degree,
        )
        print(f"    ({workers}, {load}, {tolerance:g}): (")
        for base in found.bases:
            signed = (f"{'-' if sign < 0 else '+'}{shift}" for shift, sign in sorted(base.items()))
            print(f'        "{" ".join(signed)}",')
        rivals = ", ".join(f"{name} {mean:.4f}" for name, mean in found.rivals.items())
        print(f"    ),  # {found.seconds:.4f} s; {rivals}{'' if found.kept else '; NOT KEPT'}")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
