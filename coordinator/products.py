"""Makes a run's estimates and its product, in memory or by windows."""

from __future__ import annotations

from blockstore import keys
from coordinator import events
from coordinator.answers import DecisiveAnswerLost
from coordinator.context import RunContext
from coordinator.decode import Decoding, decode
from coordinator.decode_options import x_bytes
from coordinator.decode_stored import StoredDecoder
from coordinator.estimate import ProductEstimate
from coordinator.estimate_stored import StoredEstimator
from coordinator.signals import Decoded, Published, Signal, TimeLimitNear
from coordinator.state import State
from coordinator.stored_answers import AnswerLost, StoredAnswers
from coordinator.targets import write_product

__all__ = ["Products"]


class Products:
    """What becomes of the answers of one run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context

    def publish(self, state: State, name: str) -> Signal:
        """Publish the estimate of what has arrived.

        Of answers that stay in the store only the error is published while the run goes on; the
        value is computed by windows when it ends with an estimate.
        """
        context = self._context
        began = context.clock.now()
        tasks = state.rules.until.kind == "tasks"
        if isinstance(context.answers, StoredAnswers):
            known = self._estimate_stored(context.answers, state, name, tasks)
        else:
            known = self._estimate(state, tasks)
        if tasks:
            context.missing_rows = context.recovered.missing(state.arrived)
        context.estimate = known
        if known.value is not None:
            context.store.put_estimate(known.value)
            context.estimate_key = keys.estimate_key(context.store.run)
        context.put_status(name, state.attempt)
        seconds = context.clock.now() - began
        context.spend("estimate", seconds)
        context.emit(
            events.Estimated,
            error=known.error,
            value=known.value,
            error_upper=known.error_upper,
            method=known.method,
        )
        return Published(context.clock.now(), seconds)

    def decode(self, decisive: tuple[int, ...]) -> Signal:
        """Decode the product from a decisive set, check it and write it."""
        context = self._context
        began = context.clock.now()
        if isinstance(context.answers, StoredAnswers):
            made = self._decode_stored(context.answers, decisive)
            if made is None:
                return TimeLimitNear(context.clock.now())
            found, key = made
            decoded = context.clock.now()
        else:
            found = decode(context.code, context.answers, decisive)
            if context.reference is not None:
                found = context.reference.complete(found)
            decoded = context.clock.now()
            key = ""
            if found.contradiction is None and found.value is not None:
                kind = context.journal.spec.result
                key = write_product(context.store, kind, found.value)
                context.spend("write", context.clock.now() - decoded)
        context.decoding = found
        context.spend("decode", decoded - began)
        if found.contradiction is None:
            context.result_key = key
            context.emit(
                events.Decoded,
                error=0.0,
                verified=found.verified,
                verification=found.verification,
                seconds=decoded - began,
                method=found.method,
                rounding=found.error,
            )
        return Decoded(context.clock.now(), found.contradiction, found.how)

    def _estimate(self, state: State, tasks: bool) -> ProductEstimate:
        context = self._context
        known = context.estimates.of(state.arrived)
        found = context.recovered.estimate(context.answers, state.arrived) if tasks else None
        if found is not None:
            known = context.reference.shift(found) if context.reference else found
        return known

    def _estimate_stored(
        self, answers: StoredAnswers, state: State, name: str, tasks: bool
    ) -> ProductEstimate:
        context, spec = self._context, self._context.journal.spec
        estimator = StoredEstimator(
            context.store.bucket,
            context.code,
            answers,
            spec.run,
            spec.estimator,
            spec.metric,
            context.recovered if tasks else None,
        )
        if name == "running" or state.decisive is not None:
            return estimator.errors(state.arrived)
        known = estimator.write(state.arrived, context.options.budget, x_bytes(spec))
        context.estimate_key = keys.estimate_key(spec.run)
        return known

    def _decode_stored(
        self, answers: StoredAnswers, decisive: tuple[int, ...]
    ) -> tuple[Decoding, str] | None:
        context, spec = self._context, self._context.journal.spec
        options = context.options
        context.put_status("decoding", spec.attempt)  # it may take a while
        decoder = StoredDecoder(
            bucket=context.store.bucket,
            code=context.code,
            answers=answers,
            run=spec.run,
            kind="zarr" if spec.result == "zarr" else "npy",
            clock=context.clock,
            memory=options.budget,
            x_bytes=x_bytes(spec),
            functions=options.functions if spec.decode == "lambda" else None,
            time_left=options.seconds_left,
        )
        try:
            return decoder.decode(decisive)
        except AnswerLost as lost:
            whose = answers.form.shares.describe(lost.place)
            raise DecisiveAnswerLost(
                f"run {spec.run}: the answer of {whose} was decided upon and is gone or damaged "
                f"({lost}); start a new run"
            ) from lost
        finally:
            context.decode_usage += decoder.usage
