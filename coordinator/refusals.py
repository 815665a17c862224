"""The planner's refusal: a plan that cannot work names the number to change."""

from __future__ import annotations


class PlanRefused(ValueError):
    """The plan cannot fit the platform.

    `argument` is the number to change, `value` what it is now, `fits` the value that would fit
    (None when no value of this argument alone would). The message says the rule and the fix.
    """

    def __init__(self, argument: str, value: object, fits: object | None, reason: str) -> None:
        fix = f"; {argument} = {fits} would fit" if fits is not None else ""
        super().__init__(f"{argument} = {value}: {reason}{fix}")
        self.argument = argument
        self.value = value
        self.fits = fits
