"""Lambda handler of an objective: event -> values of a user's function -> an object."""

from __future__ import annotations

from typing import Any

from functions.threads import limit_threads

limit_threads()  # before NumPy is imported below

from blockstore.bucket import Bucket  # noqa: E402
from blockstore.connect import s3_client  # noqa: E402
from blockstore.errors import TaskRefused  # noqa: E402
from blockstore.evaluations import EvaluationTask  # noqa: E402
from blockstore.rounds import RoundStore  # noqa: E402
from functions import log  # noqa: E402
from functions.objective import evaluate  # noqa: E402
from functions.objective.settings import ObjectiveSettings  # noqa: E402

_bucket: Bucket | None = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Do one `EvaluationTask`. Returns {state: answered | late | stopped | failed | refused}.

    Idempotent: the first answer of a worker stays. Whatever the objective raises, SystemExit
    included, is an erasure with the objective's own words.
    """
    global _bucket
    try:
        task = EvaluationTask.from_event(event)
    except TaskRefused as exc:
        log.line("refused", message=str(exc))
        return {"state": "refused", "message": str(exc)}
    settings = ObjectiveSettings.read()
    _bucket = _bucket or Bucket(s3_client(pool=4), settings.bucket)
    store = RoundStore(_bucket, task.optimization, task.round)
    try:
        if task.objective != settings.objective:
            raise evaluate.ObjectiveMissing(f"this function evaluates {settings.objective}")
        objective = evaluate.load_objective(settings.objective)
        answer = evaluate.evaluate(store, task, objective)
        return {"state": "answered" if store.put_answer(answer) else "late"}
    except evaluate.RoundStopped:
        return {"state": "stopped"}
    except (Exception, SystemExit) as exc:  # noqa: BLE001 - it is the user's code that raised
        failure = evaluate.failure(task, exc)
    log.line("failed", round=task.round, **failure.to_json())
    store.put_failure(failure)
    return {"state": "failed", "type": failure.type, "message": failure.message}
