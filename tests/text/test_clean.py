"""The account of defects stays short and says where to look."""

from dragoman.text.clean import Kind, Report, find_defect, has_odd_break


def test_a_report_without_findings_has_nothing_to_say() -> None:
    assert Report().summary() == []


def test_summary_counts_and_names_places() -> None:
    report = Report()
    for line in (12, 40, 41):
        report.note(Kind.EMPTY, "train.de", line)
    report.note(Kind.CRLF, "train.en", 1)
    assert report.summary() == [
        "3 pairs set aside: empty side (train.de line 12, train.de line 40, train.de line 41)",
        "1 line ended in CRLF, carriage return removed (train.en line 1)",
    ]


def test_many_findings_take_no_more_room_than_a_few() -> None:
    report = Report()
    for line in range(10_000):
        report.note(Kind.TOO_LONG, "a", line)
    (sentence,) = report.summary()
    assert sentence.startswith("10000 pairs set aside: longer than text.max_len_chars (a line 0, ")
    assert sentence.endswith("a line 4, …)")


def test_defects() -> None:
    assert find_defect("Ein Satz.", 9) is None
    assert find_defect("Ein Satz.", 8) is Kind.TOO_LONG
    assert find_defect(None, 9) is Kind.INVALID_UTF8
    assert find_defect("a\0b", 9) is Kind.NUL
    assert find_defect("", 9) is find_defect(" \t\u00a0\u2028", 9) is Kind.EMPTY


def test_odd_breaks() -> None:
    assert not has_odd_break("one line, with\ttab and emoji 🦊")
    assert all(has_odd_break(f"a{c}b") for c in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
