"""JSON that is read a piece at a time has the values that json.loads gives, in little memory."""

import json
import random
import tracemalloc

import pytest

from cresset.serialization.json_pieces import Text


def whole(text):
    data = text if isinstance(text, bytes) else text.encode()
    return Text(lambda at, count: data[at : at + count], len(data)).whole()


def built(piece):
    """The value, made from pieces as deep as they go."""
    mark = piece.text.bytes(piece.at, 1)
    if mark == b"{":
        return {name: built(part) for name, part in piece.items()}
    return [built(part) for part in piece.elements()] if mark == b"[" else piece.value()


def random_value(rng, depth):
    kind = rng.randrange(8 if depth else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice([0, -1, 12345678901234567890, 1.5, -2e-30])
    if kind in (2, 3, 4):
        return "".join(rng.choice('ab"\\\n\u00e9\u4e2d\U0001f600{}[],: ') for _ in range(rng.choice([0, 3, 40, 9000])))
    count = rng.choice([0, 1, 3, 9])
    if kind in (5, 6):
        return [random_value(rng, depth - 1) for _ in range(count)]
    return {f"k{number}": random_value(rng, depth - 1) for number in range(count)}


@pytest.mark.parametrize("seed", range(40))
def test_pieces_have_the_values_that_json_has(seed):
    rng = random.Random(seed)
    value = [random_value(rng, 4) for _ in range(5)]
    text = json.dumps(value, ensure_ascii=seed % 2 == 0, indent=rng.choice([None, 0, 3]))
    assert built(whole(" " * (seed * 997) + text + "\n ")) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "[", "[1", "[1,", "[1,]", "[1 2]", "{", '{"a"', '{"a":', '{"a":1,}', "{1:2}", '{"a" 1}', '"a', "nul",
     "1 2", "}"],
)  # fmt: skip
@pytest.mark.parametrize("filling", ["", '"' + "x" * 10000 + '",'], ids=["short", "long"])
def test_what_is_no_json_is_an_error(text, filling):
    text = "[" + filling + text[1:] if filling and text.startswith("[") else text
    with pytest.raises(ValueError, match="JSON"):
        built(whole(text))


def test_a_string_without_an_end_and_bytes_that_are_no_text_are_errors():
    for text in (b'["' + b"x" * 20000, b'["\xff\xfe"]', b'["' + b"x" * 20000 + b'\xff"]', b"9" * 20000):
        with pytest.raises(ValueError, match="JSON|decode|encode|utf-8"):
            built(whole(text))


@pytest.mark.parametrize(
    "text",
    ["[" * 300_000, '{"":' * 100_000, "[" + "{}," * 40_000 + "0]", '{"a":' + "[[]," * 150_000,
     "[" + "0," * 40_000 + "0]"],
    ids=["lists in lists", "objects in objects", "many objects", "lists without an end", "many numbers"],
)  # fmt: skip
def test_a_text_of_many_values_takes_little_memory(text):
    data = text.encode()
    tracemalloc.start()
    try:
        piece = Text(lambda at, count: data[at : at + count], len(data)).whole()
        with pytest.raises(ValueError, match="takes more than 512 kB"):
            piece.value()
        assert sum(1 for _ in piece.elements()) == 40_001
    except ValueError as error:
        assert "nested" in str(error) or "no end" in str(error)  # noqa: PT017  (either is right)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1 << 20


def test_an_object_of_few_names_is_a_dict_of_pieces_and_one_of_many_is_refused():
    found = whole('{"a": {"b": [1, 2]}, "c": null}').fields()
    assert found["a"].value() == {"b": [1, 2]}
    assert list(found["c"].items()) == []
    with pytest.raises(ValueError, match="more than 1000 names"):
        whole(json.dumps({str(number): 0 for number in range(2000)})).fields()
    with pytest.raises(ValueError, match="expected a list"):
        list(whole("{}").elements())
