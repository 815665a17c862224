"""What `polarlambda plan` prints of encoding on Lambda and of putting the product together."""

from __future__ import annotations

import json

from click.testing import CliRunner

from polarlambda.cli import command

IMAGENET_64 = ("plan", "--shape", "1281167x12288", "--dtype", "uint8", "--workers", "512")
IMAGENET_64 += ("--data-blocks", "464")


def plan(*options: str) -> str:
    shown = CliRunner().invoke(command, [*IMAGENET_64, *options])
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def test_encoding_on_lambda_says_what_it_reads_and_which_memory_would_hold_whole_tiles():
    figures = json.loads(plan("--json"))["encoding"]["encode_on_lambda"]
    text = plan()
    assert f"{figures['scan_calls']} calls to check, {figures['write_calls']} to write" in text
    assert f"reads 31.5 GB by {figures['usage']['gets']} GET, writes 69.5 GB" in text
    enough = figures["full_memory_mb"]
    assert f"EncodeMemory={enough} would hold whole ones" in text
    assert "would hold whole ones" not in plan("--encode-memory", str(enough))
    assert "MB and 8.2 GB of disk each" in plan("--encode-disk", "10240")


def test_small_products_have_no_line_about_decoding_and_large_ones_two():
    assert "decode" not in plan()
    text = plan("--columns", "1000")
    assert "\ndecode           21.9 GB of memory" in text
    assert text.count("decode on Lambda") == 1 and "(--decode lambda)" in text
    windows = plan("--columns", "1000", "--coordinator-memory", "4GB")
    assert "\ndecode           3 windows of the answers in S3, within 4 GB" in windows
    functions = plan("--columns", "1000", "--decode", "lambda")
    assert "\ndecode           " not in functions and "decode on Lambda" in functions


def test_what_cannot_be_is_one_line():
    small = ("--columns", "1000", "--coordinator-memory", "100MB")
    for options, word in ((small, "would fit"), (("--encode-memory", "300"), "encode memory")):
        shown = CliRunner().invoke(command, [*IMAGENET_64, *options])
        assert shown.exit_code == 2 and word in shown.stderr
        assert shown.stderr.count("\n") == 1
