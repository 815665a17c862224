"""Every bad input ends in one line and exit code 2, with nothing written and nothing invoked."""

from __future__ import annotations

import io

import numpy as np
import pytest

from polarlambda.local import LocalStack


def npy(array, **options):
    body = io.BytesIO()
    np.save(body, array, **options)
    return body.getvalue()


def refused(done, *words):
    """The last line says why, and the lines before it, if any, tell of progress."""
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    *progress, line = done.stderr.strip().splitlines()
    assert line.startswith("polarlambda: ")
    assert not any(other.startswith(("polarlambda", "Traceback")) for other in progress)
    for word in words:
        assert word in line, line


BIG_HEADER = npy(np.zeros((4, 4)))[:128].replace(b"(4, 4)", b"(9, 9)")

MATRICES = [
    ("not 2-D", npy(np.zeros(4)), "two-dimensional"),
    ("three axes", npy(np.zeros((2, 2, 2))), "two-dimensional"),
    ("no rows", npy(np.zeros((0, 4))), "empty"),
    ("no columns", npy(np.zeros((4, 0))), "empty"),
    ("objects", npy(np.array([[None, 1]]), allow_pickle=True), "pickle"),
    ("text", npy(np.array([["a", "b"]])), "text"),
    ("bytes", npy(np.array([[b"a", b"b"]])), "text"),
    ("structured", npy(np.zeros((2, 2), [("r", "u1"), ("g", "u1")])), "structured"),
    ("dates", npy(np.zeros((2, 2), "M8[s]")), "dates"),
    ("complex", npy(np.zeros((2, 2), complex)), "complex"),
    ("NaN", npy(np.array([[0, 1], [2, np.nan], [np.nan, 0]])), "row 1"),
    ("Inf", npy(np.array([[0, 1], [2, 3], [-np.inf, 0]])), "row 2"),
    ("a pickle", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94.", "pickle"),
    ("an archive", b"PK\x03\x04 and so on", "npz"),
    ("no header", b"1,2\n3,4\n", "not an .npy file"),
    ("an empty file", b"", "truncated"),
    ("truncated data", npy(np.zeros((4, 4)))[:-5], "truncated"),
    ("a header that claims more", BIG_HEADER + b"\0" * 128, "truncated"),
    ("trailing bytes", npy(np.zeros((4, 4))) + b"more", "follow"),
]


@pytest.mark.parametrize(("body", "word"), [m[1:] for m in MATRICES], ids=[m[0] for m in MATRICES])
def test_a_matrix_that_cannot_be_encoded(cli, bucket, tmp_path, body, word):
    (tmp_path / "A.npy").write_bytes(body)
    refused(cli("encode", tmp_path / "A.npy", "a", "--workers", 8, "--data-blocks", 6), word)
    assert list(bucket.list("")) == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--workers 1", "workers"),
        ("--workers 0", "workers"),
        ("--workers -8", "workers"),
        ("--workers 8 --data-blocks 9", "data_blocks"),
        ("--workers 8 --data-blocks 0", "data_blocks"),
        ("--workers 8 --data-blocks 6 --redundancy 0.25", "redundancy"),
        ("--workers 8 --redundancy 1.5", "redundancy"),
        ("--workers 8 --redundancy nan", "redundancy"),
        ("--code magic", "magic"),
        ("--code uncoded --workers 8 --data-blocks 6", "must equal workers"),
        ("--seed -1", "seed"),
        ("--memory lots", "memory"),
        ("--memory 1kB", "memory"),
    ],
)
def test_a_code_or_a_memory_that_is_not_possible(cli, bucket, files, options, word):
    refused(cli("encode", files / "A.npy", "a", *options.split()), word)
    assert list(bucket.list("")) == []


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", ".a", "a.", "-", "ä", "a\tb", "x" * 101])
def test_a_name_that_keys_or_listings_mangle(cli, bucket, files, name):
    done = cli("encode", "--workers", 8, "--data-blocks", 6, "--", files / "A.npy", name)
    refused(done, "matrix name")
    assert list(bucket.list("")) == []


def test_a_name_that_is_taken_by_other_content(cli, encoded, bucket):
    before = sorted((info.key, info.etag) for info in bucket.list(""))
    np.save(encoded / "B.npy", np.ones((40, 7), np.uint8))
    done = cli("encode", encoded / "B.npy", "a", "--workers", 8, "--data-blocks", 6)
    refused(done, "'a'", "replace")
    assert sorted((info.key, info.etag) for info in bucket.list("")) == before


def test_a_matrix_file_that_is_not_there(cli, bucket, tmp_path):
    refused(cli("encode", tmp_path / "none.npy", "a"), "none.npy")
    assert list(bucket.list("")) == []


VECTORS = [
    ("too short", npy(np.zeros(6)), "7 columns"),
    ("lying", npy(np.zeros((1, 7))), "(1, 7)"),
    ("no columns", npy(np.zeros((7, 0))), "(7, 0)"),
    ("NaN", npy(np.array([0, 1, 2, np.nan, 4, 5, 6])), "row 3"),
    ("complex", npy(np.zeros(7, complex)), "complex"),
    ("objects", npy(np.array([None] * 7), allow_pickle=True), "pickle"),
    ("truncated", npy(np.zeros(7))[:-1], "56 bytes"),
    ("no array", b"hello", "not an .npy"),
]


@pytest.mark.parametrize("on", ["local", "lambda"])
def test_an_x_that_has_no_product(cli, encoded, bucket, local_stack, on):
    invocations = len(local_stack.invocations())
    output = encoded / "y.npy"
    for _, body, word in VECTORS:
        (encoded / "bad.npy").write_bytes(body)
        refused(cli("multiply", "a", encoded / "bad.npy", "-o", output, "--on", on), word)
    assert list(bucket.list("runs/")) == []
    assert len(local_stack.invocations()) == invocations
    assert not output.exists()


WISHES = [
    ("--until soon", "until"),
    ("--until error=-1", "positive"),
    ("--deadline -1", "deadline"),
    ("--deadline nan", "deadline"),
    ("-o no/such/folder/y.npy", "does not exist"),
    ("-o /proc/y.npy", "folder /proc"),
    ("-o .", "is a folder"),
]


def test_a_wish_that_cannot_be_met(cli, encoded, bucket):
    for options, word in WISHES:
        refused(cli("multiply", "a", encoded / "x.npy", *options.split()), word)
    assert list(bucket.list("runs/")) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("multiply a x.npy --on mars", "'mars'"),
        ("multiply a", "multiply --help"),
        ("encode A.npy a --workers many", "'many'"),
        ("runs show", "runs show --help"),
        ("local run", "local run --help"),
        ("nonsense", "'nonsense'"),
        ("--nonsense", "--help"),
    ],
)
def test_a_line_that_the_command_does_not_understand(cli, line, word):
    done = cli(*line.split())
    refused(done, word)
    assert len(done.stderr.splitlines()) == 1


def test_a_group_without_a_command_shows_its_help(cli):
    for line in ([], ["runs"], ["local"]):
        assert "Commands:" in cli(*line).output


def test_a_matrix_or_a_run_that_does_not_exist(cli, bucket, files):
    refused(cli("multiply", "nothing", files / "x.npy"), "no matrix 'nothing'")
    refused(cli("matrices", "show", "nothing"), "no matrix 'nothing'")
    refused(cli("matrices", "delete", "nothing"), "no matrix 'nothing'")
    for action in ("show", "watch", "resume", "cancel", "delete"):
        refused(cli("runs", action, "0" * 26), "no run")
        refused(cli("runs", action, "yesterday"), "run id 'yesterday'")
    assert list(bucket.list("")) == []


@pytest.mark.parametrize("on", ["local", "lambda"])
def test_a_reference_that_is_none(cli, encoded, bucket, on):
    x = encoded / "x.npy"
    refused(cli("multiply", "a", x, "--reference", "0" * 26, "--on", on), "reference", "no run")
    refused(cli("multiply", "a", x, "--reference", "last", "--on", on), "run id 'last'")
    assert list(bucket.list("runs/")) == []


def test_a_bucket_that_does_not_exist(cli, files, local_environment, monkeypatch):
    monkeypatch.setenv("POLARLAMBDA_BUCKET", "not-there")
    for line in (["encode", files / "A.npy", "a"], ["multiply", "a", files / "x.npy"]):
        refused(cli(*line), "not-there")


def test_a_function_that_does_not_exist(cli, encoded, bucket, monkeypatch):
    monkeypatch.setenv("POLARLAMBDA_WORKER", "NotThere")
    monkeypatch.setenv("POLARLAMBDA_COORDINATOR", "NotThere")
    for on in ("local", "lambda"):
        refused(cli("multiply", "a", encoded / "x.npy", "--on", on), "'NotThere' does not exist")
    assert list(bucket.list("runs/")) == []


@pytest.mark.parametrize("variable", ["WORKER", "COORDINATOR", "BUCKET"])
def test_a_setting_that_is_missing(cli, encoded, bucket, monkeypatch, variable):
    monkeypatch.delenv(f"POLARLAMBDA_{variable}")
    on = "lambda" if variable == "COORDINATOR" else "local"
    done = cli("multiply", "a", encoded / "x.npy", "--on", on)
    refused(done, "--stack NAME", f"POLARLAMBDA_{variable}")
    assert list(bucket.list("runs/")) == []


def test_no_credentials(cli, files, local_environment: LocalStack, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for line in (
        ["encode", files / "A.npy", "a"],
        ["multiply", "a", files / "x.npy"],
        ["matrices", "list"],
        ["runs", "list"],
    ):
        refused(cli(*line), "credentials")


def test_a_platform_that_does_not_answer_is_exit_code_4(cli, files, monkeypatch):
    for name, value in {
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "POLARLAMBDA_BUCKET": "bucket",
    }.items():
        monkeypatch.setenv(name, value)
    done = cli("matrices", "list")
    assert done.exit_code == 4
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("plan", "--shape"),
        ("plan --shape 10by10 --dtype u1", "--shape"),
        ("plan --shape 10x10", "dtype"),
        ("plan --shape 10x10 --dtype complex64", "complex"),
        ("plan --shape 0x10 --dtype u1", "empty"),
        ("plan --shape 10x10 --dtype u1 --columns 0", "x"),
        ("plan --shape 10x10 --dtype u1 --delays gremlins", "gremlins"),
        ("plan none.npy", "none.npy"),
        ("plan none.npy --dtype u1", "not both"),
    ],
)
def test_a_plan_of_nothing(cli, line, word):
    refused(cli(*line.split()), word)


def test_a_plan_that_cannot_fit_names_the_number_to_change(cli):
    huge = ("--shape", "2000000x100000", "--dtype", "f8")
    refused(cli("plan", *huge, "--workers", 8, "--data-blocks", 6), " = ", "would fit")
    refused(cli("plan", "--shape", "9x9", "--dtype", "u1", "--worker-memory", 12), "worker_memory")
