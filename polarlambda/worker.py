"""The deployed worker function: checked to be there, its limits, and plans of what it will do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polarlambda.connect import WorkerLimits, account_concurrency, worker_limits
from polarlambda.settings import Settings

if TYPE_CHECKING:
    import numpy as np

    from blockstore.manifest import Manifest
    from blockstore.pairs import MatrixPair, Subject
    from blockstore.records import RunSpec
    from coordinator.decode_options import DecodeOptions
    from coordinator.decode_wish import DecodeWish
    from coordinator.invoker import LambdaInvoker
    from coordinator.planning import SeriesPlan
    from coordinator.ports import Invoker
    from coordinator.report import Billing

INVOKE_THREADS = 32


@dataclass
class DeployedWorker:
    """A function, a client for it, and its limits. What was asked once is not asked again."""

    client: Any
    function: str
    limits: WorkerLimits
    dispatch: str = ""  # name of the dispatch function, if there is one
    _billings: dict[tuple[Any, ...], Billing] = field(default_factory=dict)

    @classmethod
    def find(cls, settings: Settings) -> DeployedWorker:
        """The worker that the settings name. Cost: two requests.

        Raises `SettingMissing`, `FunctionMissing`, `InvokeDenied`, `InvokeUnavailable`.
        """
        from coordinator.invoker import LambdaInvoker, lambda_client

        function = settings.need("worker")
        client = lambda_client(pool=INVOKE_THREADS)
        LambdaInvoker(client, function).check()
        return cls(client, function, worker_limits(client, function), settings.dispatch)

    def invoker(self) -> Invoker:
        """For one product: closing it leaves the client open."""
        from coordinator.fan_out import make_invoker

        return make_invoker(
            self.client, self.function, self.dispatch, threads=INVOKE_THREADS, checked=True
        )

    def direct_invoker(self) -> LambdaInvoker:
        """The same without the dispatch function, for the few invocations of resident workers."""
        from coordinator.invoker import LambdaInvoker

        return LambdaInvoker(self.client, self.function, threads=INVOKE_THREADS, checked=True)

    def billing(
        self,
        manifest: Manifest,
        x_shape: tuple[int, ...],
        x_dtype: np.dtype[Any],
        wish: DecodeWish | None = None,
    ) -> Billing:
        """Limits, prices and the planned figures of a product, which is known to fit the worker.

        Planned once for every shape and dtype of x, and way of decoding. Raises `PlanRefused`.
        """
        from coordinator.planning import QUICK_ROUNDS, Platform, plan_multiply

        key = (manifest.digest, x_shape, x_dtype.str, wish)
        if key not in self._billings:
            concurrency = self._concurrency(manifest.workers)
            plan = plan_multiply(
                manifest,
                x_shape,
                x_dtype,
                worker_memory_mb=self.limits.memory_mb,
                worker_timeout=self.limits.timeout,
                prices=self.limits.prices,
                wish=wish,
                platform=Platform(concurrency=concurrency),
                rounds=QUICK_ROUNDS,
            )
            self._billings[key] = self._billed(plan.to_json())
        return self._billings[key]

    def _concurrency(self, workers: int) -> int:
        """Workers that may be under way at once: what is reserved, else what the account may run,
        which is asked only where it matters."""
        if self.limits.reserved is not None:
            return max(1, self.limits.reserved)
        from coordinator.platform import Platform

        default = Platform().concurrency
        return default if workers <= default else account_concurrency(self.client)

    def series_plan(
        self, manifest: Manifest, x_shape: tuple[int, ...], x_dtype: np.dtype[Any]
    ) -> SeriesPlan:
        """What a product of a series takes and costs in both modes. Raises `PlanRefused`."""
        from coordinator.planning import plan_series

        return plan_series(
            manifest,
            x_shape,
            x_dtype,
            worker_memory_mb=self.limits.memory_mb,
            prices=self.limits.prices,
        )

    def check_resident(self, manifest: Manifest, plan: SeriesPlan) -> None:
        """Raise `PlanRefused` unless all workers can stay, with their blocks, at the same time."""
        from coordinator.planning import check_resident

        check_resident(plan, self._concurrency(manifest.workers))

    def pair_billing(self, pair: MatrixPair, wish: DecodeWish | None = None) -> Billing:
        """The same for a product of two encoded matrices."""
        from coordinator.pair_plan import plan_pair
        from coordinator.planning import QUICK_ROUNDS

        plan = plan_pair(
            pair,
            worker_memory_mb=self.limits.memory_mb,
            worker_timeout=self.limits.timeout,
            prices=self.limits.prices,
            wish=wish,
            rounds=QUICK_ROUNDS,
        )
        return self._billed(plan.to_json())

    def subject_billing(self, subject: Subject, spec: RunSpec, options: DecodeOptions) -> Billing:
        """The same for a run that is to be gone on with."""
        import numpy as np

        from blockstore.pairs import MatrixPair
        from coordinator.decode_options import decode_wish

        wish = decode_wish(spec.decode, spec.result, options)
        if isinstance(subject, MatrixPair):
            return self.pair_billing(subject, wish)
        return self.billing(subject, spec.x_shape, np.dtype(spec.x_dtype), wish)

    def _billed(self, planned: dict[str, Any]) -> Billing:
        from coordinator.report import Billing

        return Billing(
            worker_memory_mb=self.limits.memory_mb,
            worker_timeout=self.limits.timeout,
            prices=self.limits.prices,
            planned=planned,
            concurrency=self._concurrency(int(planned["workers"])),
        )

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
