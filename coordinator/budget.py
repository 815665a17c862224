"""How much memory a coordinator needs, and what it can do with less (docs/cost.md)."""

from __future__ import annotations

from blockstore.memory import RUNTIME_BYTES
from coordinator.answers import CHUNK_BYTES
from coordinator.cut import PART_BYTES, PartRule
from coordinator.form import AnswerForm
from coordinator.refusals import PlanRefused
from coordinator.stored_answers import READERS
from coordinator.targets import WRITERS

__all__ = [
    "chunk_memory",
    "least_memory",
    "row_bytes",
    "share_of",
    "whole_memory",
    "window_rows",
]

WORK = 6  # float64 arrays of a chunk that a decoder and its check hold at once, at most
COPIES = 2 * 2 * PART_BYTES  # of a part on its way out: its body, and what the client makes of it
PER_ANSWER = 4096  # bytes kept of an answer that stays in the store
FUNCTION_SHARE = 0.9  # of a function's memory setting, which is planned with
LEAST_SHARE = 64 << 20  # bytes of answers that are worth an invocation
READ_BYTES = 512 << 10  # of a GET under way, beside the memory that it fills


def whole_memory(form: AnswerForm, x_bytes: int) -> int:
    """Peak bytes of a coordinator that holds every answer and decodes them in memory.

    Runtime + x + N answers + the product + one chunk at work.
    """
    answers = form.shares.count * form.answer_bytes
    product = form.data_blocks * form.answer_bytes
    return RUNTIME_BYTES + x_bytes + answers + product + WORK * CHUNK_BYTES


def chunk_memory(form: AnswerForm, x_bytes: int) -> int:
    """Peak bytes of a coordinator that leaves the answers in the store, besides the window.

    Runtime + x + what is known of N answers + one chunk at work + transfers under way. It does not
    depend on the size of an answer.
    """
    transfers = WRITERS * COPIES + READERS * READ_BYTES
    known = PER_ANSWER * form.shares.count
    return RUNTIME_BYTES + x_bytes + known + WORK * CHUNK_BYTES + transfers


def row_bytes(form: AnswerForm, answers: int) -> int:
    """Bytes of one row of every block: answers decoded where they lie, copied once for a grid."""
    copies = 1 if form.layout.across == 1 else 2
    rows = max(answers, form.data_blocks)
    return rows * form.layout.block_columns * form.dtype.itemsize * copies


def least_memory(form: AnswerForm, x_bytes: int) -> int:
    """Bytes with which a coordinator can decode at all: one row of every block at a time."""
    return chunk_memory(form, x_bytes) + row_bytes(form, form.shares.count)


def share_of(form: AnswerForm, answers: int, functions: int, most: int, rule: PartRule) -> int:
    """Rows of every block for each of at most `functions` functions, at most the `most` that fit
    into the memory of one: enough to be worth one, and to be written as parts of the product at
    once where `rule` asks for long ones and blocks and memory allow them."""
    layout, itemsize = form.layout, form.dtype.itemsize
    worth = -(-LEAST_SHARE // (answers * layout.block_columns * itemsize))
    rows = max(-(-layout.block_rows // functions), worth)
    part = -(-rule.least // (layout.columns * itemsize))
    if rows < part <= layout.block_rows:
        direct = -(-layout.block_rows // (layout.block_rows // part))
        rows = direct if direct <= most else rows
    return min(rows, most)


def window_rows(form: AnswerForm, answers: int, memory: int, x_bytes: int) -> int:
    """Rows of every block that fit into `memory` at a time, of that many answers.

    Raises `PlanRefused`, with the memory needed, if not even one row does.
    """
    room = memory - chunk_memory(form, x_bytes)
    rows = room // row_bytes(form, answers)
    if rows < 1:
        needed = least_memory(form, x_bytes)
        raise PlanRefused(
            "memory", memory, needed, "bytes hold not even one row of every block of the product"
        )
    return rows
