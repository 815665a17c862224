"""The deployed worker function: checked to be there, its limits, and plans of what it will do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polarlambda.connect import WorkerLimits, worker_limits
from polarlambda.settings import Settings

if TYPE_CHECKING:
    import numpy as np

    from blockstore.manifest import Manifest
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
    _billings: dict[tuple[str, tuple[int, ...], str], Billing] = field(default_factory=dict)

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

    def billing(
        self, manifest: Manifest, x_shape: tuple[int, ...], x_dtype: np.dtype[Any]
    ) -> Billing:
        """Limits, prices and the planned figures of a product, which is known to fit the worker.

        Planned once for every shape and dtype of x. Raises `PlanRefused`.
        """
        from coordinator.planning import QUICK_ROUNDS, plan_multiply
        from coordinator.report import Billing

        key = (manifest.digest, x_shape, x_dtype.str)
        if key not in self._billings:
            plan = plan_multiply(
                manifest,
                x_shape,
                x_dtype,
                worker_memory_mb=self.limits.memory_mb,
                worker_timeout=self.limits.timeout,
                prices=self.limits.prices,
                rounds=QUICK_ROUNDS,
            )
            self._billings[key] = Billing(
                worker_memory_mb=self.limits.memory_mb,
                worker_timeout=self.limits.timeout,
                prices=self.limits.prices,
                planned=plan.to_json(),
            )
        return self._billings[key]

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

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
