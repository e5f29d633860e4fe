import pytest

from prompts import formats


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1"),
        (3.14159, "3.14"),
        (0.05, "0.05"),
        (1234.5, "1234"),
        (12.0, "12"),
        (1e-4, "1.00e-04"),
        (5.2e-4, "5.20e-04"),
        (4.27e12, "4.27e+12"),
        (-2.5, "-2.5"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ("nan", "nan"),
    ],
)
def test_numbers_have_few_digits(value: float | str, text: str):
    assert formats.number(value) == text


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(1.3, "1.3 µs"), (3540.0, "3.54 ms"), (5_900_000.0, "5.9 s"), (0.05, "0.05 µs")],
)
def test_durations_choose_their_unit(microseconds: float, text: str):
    assert formats.duration(microseconds) == text


def test_quantities_take_a_prefix():
    assert formats.quantity(4.27e12, "B/s") == "4.27 TB/s"
    assert formats.quantity(12, "B") == "12 B"


def test_sizes_are_binary():
    assert formats.size(232448) == "227 KiB"
    assert formats.size(100) == "100 B"


def test_percentages():
    assert formats.percent(0.167) == "16.7%"


def test_tidy_leaves_one_empty_line_at_most_and_no_trailing_blanks():
    assert formats.tidy("\n\na  \n\n\n\nb\n\n") == "a\n\nb\n"


def test_output_stands_behind_a_fence_of_its_own_and_holds_no_controls():
    assert formats.fenced("plain") == "```\nplain\n```"
    assert formats.fenced("a\n````\nb") == "`````\na\n````\nb\n`````"
    assert formats.fenced("\x1b[1;31mred\x1b[0m\x1b]0;title\x07\tend\r\n") == "```\nred\tend\n\n```"
    assert formats.fenced("1%\r50%\rdone\r\nbell\x07") == "```\ndone\nbell\ufffd\n```"
