"""Numbers with signs of currency and percent, and with thousands separators, are numbers where a column agrees."""

import io
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import forel
from forel.data import Malformed, read
from forel.learner.settings import Settings

ROWS = [  # price, rate, sales: as written, and what an oracle reads
    ("$2.39", "12.5 %", "999", "2.39", "12.5", "999"),
    ("-$1,000.50", "3%", "1,234,567", "-1000.50", "3", "1234567"),
    ("$0", "", "12,345,678.25", "0", None, "12345678.25"),
    ("17", "NA", "-7", "17", None, "-7"),
]
TEXT = "price,rate,sales,y\n" + "".join(f'"{a}","{b}","{c}",{k % 2}\n' for k, (a, b, c, *_) in enumerate(ROWS))


def values(source, *args, **options):
    blocks = list(read(source, *args, label="y", bits=12, **options))
    return [list(block.values[block.indptr[k] : block.indptr[k + 1]]) for block in blocks for k in range(len(block))]


@pytest.mark.parametrize("chunk", [1 << 20, 16])
def test_amounts_of_csv_are_the_decimals_that_people_read(chunk):
    expected = [[np.float32(Decimal(cell)) for cell in row[3:] if cell is not None] for row in ROWS]
    assert values(io.BytesIO(TEXT.encode()), "csv", block_bytes=chunk) == expected
    european = TEXT.translate(str.maketrans(",.", ".,")).replace('"."', '";"').replace('".', '";').replace("$", "€")
    european = european.replace("price.rate.sales.y", "price;rate;sales;y")
    assert values(io.BytesIO(european.encode()), "csv", decimal=",", block_bytes=chunk) == expected


def test_frames_of_strings_are_read_as_csv():
    frame = pd.read_csv(io.StringIO(TEXT), dtype=str)
    assert values(frame) == values(io.BytesIO(TEXT.encode()), "csv")
    assert values(frame.astype("category")) == values(frame)
    labels = frame.assign(y=["$1", "$2", "$1,000", "$3.5"])
    assert next(iter(read(labels, label="y"))).labels.tolist() == [1, 2, 1000, 3.5]
    mixed = read(frame.assign(price=["$1", "€1", "$1", "$1"]), label="y")
    assert list(mixed)
    assert mixed.kinds.known["price"] == "category"


@pytest.mark.parametrize(
    ("first", "later"), [("$5", "€5"), ("5", "$5"), ("5%", "$5"), ("$5", "five"), ("1,000", "0,5")]
)
def test_a_row_that_does_not_agree_is_named_with_a_remedy(first, later):
    text = f'p,y\n"{first}",1\n' + f'"{first}",0\n' * 50 + f'"{later}",1\n'
    for chunk in (1 << 20, 16):
        with pytest.raises(Malformed, match=r"line 53, column 'p': .*categories=\['p'\]"):
            list(read(io.BytesIO(text.encode()), "csv", label="y", block_bytes=chunk))
        rows = read(io.BytesIO(text.encode()), "csv", label="y", block_bytes=chunk, on_error="skip")
        assert sum(map(len, rows)) == 51


@pytest.mark.parametrize("words", [("0,512", "1,5"), ("$", "%"), ("$5€", "5$"), ("1,23,456", "7"), ("--5", "$5")])
def test_other_words_are_no_amounts(words):
    source = io.BytesIO(b"p,y\n" + "".join(f'"{word}",{k}\n' for k, word in enumerate(words)).encode())
    reader = read(source, "csv", label="y")
    with warnings.catch_warnings(action="ignore"):
        assert list(reader)
    assert reader.kinds.known == {"p": "category"}


def test_a_model_reads_amounts_as_it_learned_them(tmp_path):
    rows = "".join(f'"${k},000.50",{k % 7}%,{k % 2}\n' for k in range(1, 60))
    trained = forel.train(io.BytesIO(b"p,r,y\n" + rows.encode()), Settings(alpha=1.0), format="csv", label="y", bits=12)
    trained.save(tmp_path / "m.forel")
    model = forel.load(tmp_path / "m.forel")
    assert model.read_options.kinds == {"p": "number $", "r": "number %"}
    plain = model.predict_one({"p": 7000.5, "r": 3})
    for row in ({"p": "$7,000.50", "r": "3 %"}, {"p": "7000.5", "r": "3%"}):
        assert model.predict_one(row) == pytest.approx(plain, rel=1e-6)
        assert model.predict([row])[0] == pytest.approx(plain, rel=1e-6)
        assert model.predict(pd.DataFrame([row]))[0] == pytest.approx(plain, rel=1e-6)
    csv = io.BytesIO(b'p,r\n7000.5,3\n"$7,000.50",3 %\n')
    assert model.predict(csv, format="csv") == pytest.approx([plain, plain], rel=1e-6)
