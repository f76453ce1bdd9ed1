"""The first sheet of a workbook is read as the same table in CSV is."""

import builtins
import io
import zipfile
from xml.sax.saxutils import escape

import numpy as np
import pytest
from typer.testing import CliRunner

from forel.cli.app import app
from forel.data import Malformed, read
from forel.data.peek import peek

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
ROWS = [["city", "price", "share", "day", "y"]] + [
    [("Rome", "Oslo, N", "Bäle")[k % 3], k * 1000.25 if k % 7 else None, k / 8, 45000 + k % 28, k % 2]
    for k in range(60)
]


def cell(value, place):
    if value is None:
        return ""
    if isinstance(value, str):
        kind = "e" if value.startswith("#") else "inlineStr"
        text = f"<v>{value}</v>" if kind == "e" else f"<is><t>{escape(value)}</t></is>"
        return f'<c r="{place}" t="{kind}">{text}</c>'
    return f'<c r="{place}" s="{int(isinstance(value, int) and value >= 45000)}"><v>{value!r}</v></c>'  # 1: a date


def workbook(rows):
    lines = "".join(
        f'<row r="{k}">{"".join(cell(value, f"{chr(65 + j)}{k}") for j, value in enumerate(row))}</row>'
        for k, row in enumerate(rows, 1)
    )
    root, book = '<?xml version="1.0" encoding="UTF-8"?>', f"{RELATIONS}/officeDocument"
    files = {
        "[Content_Types].xml": f'{root}<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{TYPES}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{TYPES}.styles+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{TYPES}.worksheet+xml"/></Types>',
        "_rels/.rels": f'{root}<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{book}" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{root}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>'
        '<sheet name="Data" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'{root}<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId2" Type="{RELATIONS}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'{root}<styleSheet xmlns="{MAIN}"><fonts count="1"><font/></fonts><fills count="1"><fill>'
        '<patternFill/></fill></fills><borders count="1"><border/></borders>'
        '<cellStyleXfs count="1"><xf/></cellStyleXfs>'
        '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": f'{root}<worksheet xmlns="{MAIN}"><sheetData>{lines}</sheetData></worksheet>',
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


@pytest.fixture
def path(tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "sales.xlsx").write_bytes(workbook(ROWS))
    return tmp_path / "sales.xlsx"


def as_csv():
    days = np.datetime64("1899-12-30") + np.array([row[3] for row in ROWS[1:]])
    lines = [
        f'"{city}",{"" if price is None else price},{share},{day},{y}'
        for (city, price, share, _, y), day in zip(ROWS[1:], days, strict=True)
    ]
    return "\n".join([",".join(ROWS[0]), *lines]).encode() + b"\n"


def test_a_sheet_has_the_blocks_of_the_same_csv(path):
    for options in ({"date": ["day"]}, {"categories": ["day"]}):
        found, expected = (
            list(read(source, label="y", bits=12, **options)) for source in (str(path), io.BytesIO(as_csv()))
        )
        for one, other in zip(found, expected, strict=True):
            for name in ("labels", "indices", "values", "indptr"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_workbook_becomes_a_model_with_the_command_that_peek_prints(path, monkeypatch, interpreted):
    monkeypatch.chdir(path.parent)
    arguments = peek(path.name).arguments()
    assert arguments == ["sales.xlsx", "--label", "y", "--date", "day", "--model", "model.forel"]
    run = CliRunner().invoke
    for words in (["train", *arguments, "--bits", "6", "--quiet"], ["evaluate", path.name, "--model", "model.forel"],
                  ["predict", path.name, "--model", "model.forel"]):  # fmt: skip
        done = run(app, words)
        assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == len(ROWS) - 1


def test_rows_keep_their_numbers_and_errors_of_formulas_are_missing(path):
    rows = [["x", "y"], [1, 0], [], ["#N/A", 1], [3, 0], ["two\nwords", 1]]
    path.write_bytes(workbook(rows))
    with pytest.raises(Malformed, match=r"line 6, column 'x': got 'two words'"):
        list(read(str(path), label="y"))
    (block,) = read(str(path), label="y", on_error="skip")
    assert (block.labels.tolist(), block.values.tolist()) == ([0, 1, 0], [1, 3])


def test_what_cannot_be_read_is_named_with_a_remedy(tmp_path, monkeypatch):
    path = tmp_path / "sales.xlsx"
    path.write_bytes(workbook(ROWS))
    find = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("openpyxl"):
            raise ModuleNotFoundError(name=name)
        return find(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match=r"expected the extra xlsx: pip install 'forel\[xlsx\]'; or a file in CSV"):
        peek(str(path))
    monkeypatch.undo()
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(ValueError, match="an old Excel, expected one in XLSX or CSV"):
        peek(str(path))
    pytest.importorskip("openpyxl")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook")
    with pytest.raises(ValueError, match="a damaged workbook"):
        peek(str(path))
