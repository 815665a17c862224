"""Files that are whole, progress for people and for logs, and which errors are explained."""

from __future__ import annotations

import numpy as np
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from polarlambda import download
from polarlambda.cli.errors import explain
from polarlambda.cli.progress import BarProgress, PlainProgress, Quiet, make_progress
from polarlambda.download import write_product
from polarlambda.errors import BadInput, PlatformError


def test_an_array_is_written_whole_and_readable_by_others(tmp_path):
    path = tmp_path / "y.npy"
    for array in (np.arange(3.0), np.arange(8).reshape(4, 2)):
        write_product(path, array)
        np.testing.assert_array_equal(np.load(path), array)
    other = tmp_path / "other"
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "y.npy"
    write_product(path, np.arange(3))

    def fail(rows):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "byte_view", fail)
    with pytest.raises(OSError, match="No space"):
        write_product(path, np.ones(9))
    np.testing.assert_array_equal(np.load(path), np.arange(3))
    assert list(tmp_path.iterdir()) == [path]


def test_a_log_gets_what_is_due_important_or_last(capsys):
    with PlainProgress(every=1000) as progress:
        progress.update(1, 10, "first")
        progress.update(2, 10, "too soon")
        progress.update(3, 10, "important", important=True)
        progress.note("a note")
        progress.update(10, 10, "last")
    captured = capsys.readouterr()
    assert captured.err.split("\n") == ["first", "important", "a note", "last", ""]
    assert captured.out == ""


def test_a_bar_prints_text_as_it_is(capsys):
    with BarProgress() as progress:
        progress.note("[red]worker 3[/red] failed")
        progress.update(1, 2, "1 of 2 [answers]")
    captured = capsys.readouterr()
    assert "[red]worker 3[/red] failed" in captured.err
    assert "1 of 2 [answers]" in captured.err
    assert captured.out == ""


def test_quiet_is_quiet(capsys):
    with make_progress(quiet=True) as progress:
        assert isinstance(progress, Quiet)
        progress.note("note")
        progress.update(1, 1, "text", important=True)
    assert capsys.readouterr() == ("", "")


def test_what_is_no_terminal_gets_lines():
    assert isinstance(make_progress(), PlainProgress)


DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetObject")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("x"), 2),
        (NoCredentialsError(), 2),
        (PlatformError("x"), 4),
        (DENIED, 4),
        (EndpointConnectionError(endpoint_url="http://nowhere"), 4),
        (OSError(28, "No space left on device"), 4),
    ],
)
def test_known_errors_are_explained(error, code):
    assert explain(error)[1] == code


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("run"), ZeroDivisionError()])
def test_a_bug_keeps_its_traceback(error):
    assert explain(error) is None
