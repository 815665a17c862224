"""What whoever trains should know of the data: columns that leave the solution open."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blockstore.derived import Derived

SHOWN = 8


def column_notes(derived: Derived | None, *, l2: float) -> tuple[str, ...]:
    """Notes on constant and collinear columns; none with ridge, which decides among solutions.

    Descent from zero stays in the row space of X, so it converges to the solution of least norm and
    never to NaN; but coefficients of such columns mean nothing by themselves.
    """
    if derived is None or l2 > 0:
        return ()
    notes = []
    constant = derived.constant_columns
    if constant:
        named = ", ".join(map(str, constant[:SHOWN])) + (", ..." if len(constant) > SHOWN else "")
        notes.append(f"constant columns, which say no more than an intercept: {named} (from 0)")
    others = (derived.dependent_columns or 0) - len(constant)
    if others > 0:
        notes.append(
            f"columns that follow from the others and a constant: {others} (a category with a "
            "column for each of its values makes one)"
        )
    if notes:
        notes.append(
            "the solution is not unique: this one has the least norm. Ridge (--model ridge --l2 "
            "1e-6) makes it unique, and converges faster"
        )
    return tuple(notes)
