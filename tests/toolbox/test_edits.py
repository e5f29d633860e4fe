from tools.edits import Edit, EditMismatch, apply_edits

SOURCE = "def f(x):\n    a = x + 1\n    b = x + 2\n    return a + b\n"


def edited(*pairs: tuple[str, str]) -> str | EditMismatch:
    return apply_edits(SOURCE, [Edit(old=old, new=new) for old, new in pairs])


def test_edits_are_made_in_order_each_on_the_result_of_the_one_before():
    assert edited(("x + 1", "x * 3"), ("x * 3", "x * 4")) == SOURCE.replace("x + 1", "x * 4")


def test_an_empty_new_text_deletes():
    assert edited(("    b = x + 2\n", "")) == SOURCE.replace("    b = x + 2\n", "")


def test_an_old_text_that_occurs_twice_is_refused_with_its_places():
    result = edited(("x + ", "x - "))
    assert isinstance(result, EditMismatch)
    assert (result.edit, result.occurrences, result.lines) == (1, 2, [2, 3])


def test_the_second_edit_is_judged_on_what_the_first_left():
    result = edited(("x + 1", "x + 2"), ("x + 2", "x + 3"))
    assert isinstance(result, EditMismatch)
    assert (result.edit, result.occurrences) == (2, 2)


def test_a_missing_text_comes_with_the_passage_most_like_it():
    result = edited(("    b = x+2\n    return a+b", ""))
    assert isinstance(result, EditMismatch)
    assert result.occurrences == 0
    assert result.nearest_line == 3
    assert result.nearest == "    b = x + 2\n    return a + b"


def test_text_unlike_anything_gets_no_passage():
    result = edited(("QQQQQQQQQQQQQQQQQQQQ", ""))
    assert isinstance(result, EditMismatch)
    assert result.nearest is None


def test_a_large_source_is_searched_in_bounded_time():
    source = "\n".join(f"    value_{i} = load(x, {i}) * scale[{i % 7}];" for i in range(3000))
    result = apply_edits(source, [Edit(old="    value_1500 = load(x,1500) * scale[2];", new="")])
    assert isinstance(result, EditMismatch)
    assert result.nearest_line == 1501


def test_overlapping_occurrences_are_ambiguous():
    result = apply_edits("aaa", [Edit(old="aa", new="b")])
    assert isinstance(result, EditMismatch)
    assert result.occurrences == 2
