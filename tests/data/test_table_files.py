"""Hostile and unusual files, against Python's csv and pandas; tables in parts; Excel."""

import csv
import datetime
import gzip
import io
import warnings
import zipfile

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.made_tables import plain, write
from tests.examples import looped

from treewright.data.tables import files as table_files
from treewright.data.tables import text_files
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table, read_cells, read_table, table_batches
from treewright.data.tables.large import FileTable, open_table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.data.tables.writing import write_batches, write_table
from treewright.exceptions import InvalidInputError

# ---------------------------------------------------------------------- text

HOSTILE = {
    "newlines in cells": 'a,b\n"x\ny",1\n"p\r\nq",2\n',
    "quotes in quotes": 'a,b\n"x ""y"" z",1\n"""",2\n"""""",3\n',
    "quotes within a cell": 'a,b\n5" pipe,1\n6"" x,2\n7" nail,3\n',
    "a space before a quote": 'a,b\n "x",1\n"y",2\n',
    "delimiters in cells": 'a,b\n"x,y",1\n",",2\n',
    "quoted header": '"a","b\nc"\n1,2\n3,4\n',
    "a carriage return in the header": '"a","b\rc"\n1,2\n3,4\n',
    "old line ends": "a,b\r1,x\r2,y\r",
    "line ends of Windows": "a,b\r\n1,x\r\n2,y\r\n",
    "no line end": "a,b\n1,x\n2,y",
    "blank lines": "\n\na,b\n1,x\n\n\n2,y\n\n\n",
    "blank lines of Windows": "\r\na,b\r\n1,x\r\n\r\n2,y\r\n\r\n",
    "blank lines at the end": "a,b\n1,x\n2,y\n\n\n\n",
    "empty cells": 'a,b\n,\n"",""\n1,x\n',
    "one column": 'a\n1\n""\n2\n',
    "a mark": "\ufeffa,b\n1,x\n",
    "a mark and quotes": '\ufeff"a",b\n"1",x\n',
    "long cells": "a,b\n" + "x" * 2_000 + ",1\ny,2\n",
    "many short rows": "a,b\n" + "1,2\n" * 200,
    "letters of all alphabets": "größe,年齢\nä,سن\n€,🙂\n",
}


def cells_of(content):
    """What Python's own reader has: header and rows, without blanks around cells."""
    rows = [row for row in csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline=""), strict=True) if row]
    return rows[0], [[cell.strip() for cell in row] for row in rows[1:]]


@pytest.mark.parametrize("chunk", [1 << 23, 11])
@looped("content", HOSTILE.values())
def test_hostile_text_is_read_as_csv_reads_it(tmp_path, monkeypatch, content, chunk):
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    path = write(tmp_path / "a.csv", content)
    header, rows = cells_of(content)
    assert read_cells(path) == ([name.strip() for name in header], rows)
    table = read_table(path, text=header)
    assert table.columns == header
    assert [list(row) for row in zip(*(table[name] for name in header), strict=True)] == [
        [cell or None for cell in row] for row in rows
    ]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content.encode()))
    assert plain(read_table(tmp_path / "a.csv.gz")) == plain(read_table(path))


BAD = {
    "a short row": ("a,b\n1,2\n3\n4\n", "line 3 has 1 fields, the header has 2 .*; 1 other lines differ"),
    "a long row": ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields"),
    "a delimiter at the end": ("a,b\n1,2,\n", "line 2 has 3 fields"),
    "a short row after a cell of two lines": ('a,b\n"x\ny",2\n3\n', "line 4 has 1 fields"),
    "a short row after blank lines": ("a,b\n1,2\n\n3\n", "line 4 has 1 fields"),
    "a short row at the end": ("a,b\n1,2\n3", "line 3 has 1 fields"),
    "a blank that is none": ("a,b\n1,2\n \n", "line 3 has 1 fields"),
    "an open quote": ('a,b\n1,"2\n3,4\n', "line 3: unexpected end of data"),
    "text after a quote": ('a,b\n"x"y,2\n3,4\n', "line 2: ',' expected after '\"'"),
    "an open quote in the header": ('a,"b\n1,2\n', "unexpected end of data"),
    "same names": ("a,b,a,b\n1,2,3,4\n", "same name: 'a', 'b'"),
    "no names": ("a,,b, \n1,2,3,4\n", "columns 2, 4 have no name"),
    "no names and same names": ("a,,a\n1,2,3\n", "column 2 of 3 has no name in the header; .* same name: 'a'"),
    "nothing": ("", "no rows"),
    "blanks": ("\n\n\n", "no rows"),
    "a mark alone": ("\ufeff", "no rows"),
    "a header": ("a,b", "no rows"),
    "a header and blanks": ("a,b\n\n\n", "no rows"),
}


@pytest.mark.parametrize("chunk", [1 << 23, 11])
@looped("content, says", BAD.values())
def test_bad_text(tmp_path, monkeypatch, content, says, chunk):
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    path = write(tmp_path / "a.csv", content)
    with pytest.raises(InvalidInputError, match=says):
        read_table(path)
    with pytest.raises(InvalidInputError, match=says):
        list(table_batches(path, batch_rows=1))


cell = st.text(st.sampled_from('ab1.,;"\n\r \tä'), max_size=5)


@settings(max_examples=40, deadline=None)
@given(st.text(st.sampled_from('a1,"\n\r '), max_size=24), st.integers(3, 12))
def test_any_text_is_read_as_csv_reads_it_or_refused(tmp_path_factory, tail, chunk):
    content = "h,k\n" + tail
    path = write(tmp_path_factory.mktemp("t") / "a.csv", content)
    try:
        header, rows = cells_of(content)
        fine = rows and all(len(row) == 2 for row in rows)
    except csv.Error:
        fine = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_CHUNK", chunk)
        patch.setattr(text_files, "_delimiter", lambda text, preferred: ",")
        if not fine:
            with pytest.raises(InvalidInputError):
                read_table(path)
        else:
            assert read_cells(path) == (header, rows)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(cell, cell, st.floats(allow_infinity=False)), min_size=1, max_size=8))
def test_what_is_written_is_read(tmp_path_factory, rows):
    columns = {"t": [r[0] for r in rows], "u": [r[1] for r in rows], "n": [r[2] for r in rows]}
    path = tmp_path_factory.mktemp("t") / "a.csv"
    with warnings.catch_warnings():  # of text that begins with a tab or a carriage return
        warnings.simplefilter("ignore", UserWarning)
        write_table(path, columns)
    with path.open(newline="", encoding="utf-8") as file:
        assert [row[:2] for row in csv.reader(file)][1:] == [list(r[:2]) for r in rows]
    found = read_table(path, text=["t", "u"])
    assert plain(found)["t"] == [None if r[0].strip().lower() in ("", "na") else r[0].strip() for r in rows]
    if np.all(np.abs(columns["n"]) < 2**53):  # larger whole numbers are text
        assert np.array_equal(found["n"], columns["n"], equal_nan=True)


NUMBERS = ["1,5", "1_0", "0x1", "1e5", ".5", "5.", "+7", "-0", "inf", "-Infinity", "1e400", "nan", "-", ".", "e", "1e"]
NUMBERS += ["007", "1d2", "١", "9007199254740993", "1e16", "true", "1-2"]


@looped("text", NUMBERS)
def test_numbers_are_those_of_python(tmp_path, text):
    """But for underscores and digits of other alphabets; whole numbers that float64 blurs and codes are text."""
    path = write(tmp_path / "a.csv", f"x;y\n1;2\n{text};3\n")
    try:
        number = float(text)
    except ValueError:
        number = None
    if "_" in text or not text.isascii() or text in ("9007199254740993", "007"):
        number = None
    table = read_table(path)
    assert table.is_numeric("x") == (number is not None)
    if number is not None:
        assert np.array_equal(table["x"], [1.0, number], equal_nan=True)


def test_rows_below_the_first_look_change_what_a_column_is(tmp_path, monkeypatch):
    monkeypatch.setattr("treewright.data.tables.files.LOOK", 3)
    rows = [f"{i},{i},{i},{i},007" for i in range(9)]
    rows[7] = "x,NA, 7 ,9007199254740993,8"
    table = read_table(write(tmp_path / "a.csv", "text,gap,blank,large,id\n" + "\n".join(rows)), text=["id"])
    assert table["text"].tolist()[6:] == ["6", "x", "8"] and np.isnan(table["gap"][7])
    assert table["blank"].tolist() == [float(i) for i in range(9)]
    assert table["large"].tolist()[6:] == ["6", "9007199254740993", "8"]
    assert table["id"].tolist()[6:] == ["007", "8", "007"]
    rows[7] = "7,7,7,7,-99"
    path = write(tmp_path / "b.csv", "text,gap,blank,large,id\n" + "\n".join(rows))
    assert read_table(path)["id"][7] == "-99"
    assert read_table(path, na=["-99"])["id"].tolist()[6:] == ["007", None, "007"]
    rows[7] = "7,7,7,9007199254740993,-99"
    path = write(tmp_path / "c.csv", "text,gap,blank,large,id\n" + "\n".join(rows))
    found = read_table(path)
    assert found["large"][7] == "9007199254740993" and found.is_numeric("gap")


@looped("zeros", [0, 7, 8])
@looped("na", [[], ["-99"]])
def test_codes_with_zeros_in_front_stay_text_wherever_they_stand(tmp_path, monkeypatch, zeros, na):
    """As numbers, 01 and 1 are one code, and the zeros are lost: rows that are joined by it find no partner."""
    monkeypatch.setattr("treewright.data.tables.files.LOOK", 3)
    rows = [f"{i},{i},{i}.0,{i}" for i in range(10, 19)]
    rows[zeros] = "05, 007,05,-5"
    path = write(tmp_path / "a.csv", "code,blank,real,signed\n" + "\n".join(rows))
    table = read_table(path, na=na)
    assert [table.is_numeric(name) for name in table.columns] == [False, False, True, True]
    assert table["code"][zeros] == "05" and table["blank"][zeros] == "007" and table["real"][zeros] == 5
    assert plain(read_table(path, na=na))["code"][1 if zeros == 0 else 0] == str(11 if zeros == 0 else 10)
    monkeypatch.setattr("treewright.data.tables.large._TEXT_BYTES", 0)
    monkeypatch.setattr("treewright.data.tables.large.LOOK", 3)
    with open_table(path, na=na) as large:
        assert isinstance(large, FileTable)
        assert [large.is_numeric(name) for name in large.columns] == [False, False, True, True]
        parts = [part["code"].tolist() for part in large.batches(["code"], 2)]
    assert sum(parts, []) == table["code"].tolist()


def test_codes_that_the_fit_had_as_numbers_are_numbers_and_the_other_way_round(tmp_path):
    numbers = read_table(write(tmp_path / "a.csv", "code,text\n7,7\n12,x\n9,12\n"))
    codes = read_table(write(tmp_path / "b.csv", "code,text\n007,007\n012,x\n009,12\n"))
    assert numbers.is_numeric("code") and not codes.is_numeric("code")
    for kind in (TableEncoder, MixedEncoder):
        encoder = kind.fit(numbers, ["code"])
        assert encoder.transform(codes)[0][:, 0].tolist() == [7, 12, 9]
        assert np.array_equal(encoder.transform(codes)[0], encoder.transform(numbers)[0])
    encoder = TableEncoder.fit(numbers, ["text"])
    with pytest.warns(UserWarning, match=r"levels that the model has not seen: '007' \(1 row\)"):
        encoder.transform(codes)  # 007 is not the level 7
    said = "column 'code' is text, as it has codes with zeros in front, such as '007' in row 1"
    with pytest.warns(UserWarning, match=said):
        encoder = TableEncoder.fit(codes, ["code"])
    assert encoder.codes["code"].levels == ("007", "009", "012")
    with pytest.warns(UserWarning, match="codes with zeros in front"):
        MixedEncoder.fit(codes, ["code"])


def test_the_first_look_can_end_the_reading(tmp_path, monkeypatch):
    monkeypatch.setattr("treewright.data.tables.files.LOOK", 2)
    seen = []

    def look(first):
        seen.append(plain(first))
        raise InvalidInputError("no")

    path = write(tmp_path / "a.csv", "a,b\n1,x\n2,y\n3,z\n")
    for file in (path, tmp_path / "a.parquet"):
        if file.suffix == ".parquet":
            write_table(file, {"a": [1, 2, 3], "b": ["x", "y", "z"]})
        with pytest.raises(InvalidInputError, match="^no$"):
            read_table(file, look=look)
    assert seen == [{"a": [1.0, 2.0], "b": ["x", "y"]}] * 2


def test_a_table_as_pandas_reads_it(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 300
    frame = pandas.DataFrame(
        {
            "real": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) * 10.0 ** rng.integers(-5, 6, n)),
            "whole": rng.integers(-1000, 1000, n),
            "text": rng.choice(["north", "so,uth", 'e"ast', "we\nst"], n),
            "code": rng.choice(["007", "x1", "8"], n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "text"] = None
    for name in ("a.csv", "a.tsv", "a.parquet"):
        path = tmp_path / name
        if name == "a.parquet":
            pl.DataFrame(frame.to_dict("list"), strict=False).write_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if name == "a.tsv" else ",")
        table = read_table(path)
        for column in frame:
            expected = [None if v is None or v != v else v for v in frame[column].tolist()]
            assert plain(table)[column] == expected, (name, column)


# ---------------------------------------------------------------------- in parts


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_parts_are_the_whole(tmp_path, name, rows):
    rng = np.random.default_rng(0)
    text = rng.choice(["x", 'y"\n', None], 10)
    columns = {"n": np.where(rng.random(10) < 0.3, np.nan, rng.normal(size=10)), "t": text, "c": ["007", "1"] * 5}
    write_table(tmp_path / name, columns)
    whole = read_table(tmp_path / name, text=["c"])
    parts = list(table_batches(tmp_path / name, text=["t", "c"], batch_rows=rows))
    assert [part.first_row for part in parts] == list(range(1, 11, rows))
    for column in columns:
        assert [v for part in parts for v in plain(part)[column]] == plain(whole)[column]
    some = next(table_batches(tmp_path / name, columns=lambda names: names[1:]))
    assert some.columns == ["t", "c"]


@pytest.mark.parametrize("chunk", [1 << 23, 7])
@looped("content", HOSTILE.values())
def test_parts_of_hostile_text_are_the_whole(tmp_path, monkeypatch, content, chunk):
    for module in (text_files, table_files):
        monkeypatch.setattr(module, "STRIDE", 3)
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    path = write(tmp_path / "a.csv", content)
    header, rows = cells_of(content)
    for batch_rows in (2, 7):
        parts = list(table_batches(path, text=header, batch_rows=batch_rows))
        assert all(part.n_rows <= batch_rows for part in parts)
        assert [part.first_row - 1 for part in parts] == np.cumsum([0, *(part.n_rows for part in parts[:-1])]).tolist()
        found = [list(row) for part in parts for row in part.frame.rows()]
        assert found == [[cell or None for cell in row] for row in rows]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.parquet"])
def test_parts_are_written_as_the_whole(tmp_path, name):
    columns = {"n": [1.0, np.nan, 0.5], "t": [None, "x", "y"], "i": [1, 2, 3]}
    write_table(tmp_path / name, columns)
    parts = ({key: values[k : k + 1] for key, values in columns.items()} for k in range(3))
    write_batches(tmp_path / f"b{name}", parts)
    assert plain(read_table(tmp_path / name)) == plain(read_table(tmp_path / f"b{name}"))
    if name == "a.csv":
        assert (tmp_path / name).read_bytes() == (tmp_path / f"b{name}").read_bytes()


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_part_that_fails_leaves_the_old_file(tmp_path, name):
    write(tmp_path / name, "old")

    def parts():
        yield {"a": [1]}
        raise InvalidInputError("row 2 is bad")

    with pytest.raises(InvalidInputError, match="^row 2 is bad$"):
        write_batches(tmp_path / name, parts())
    assert (tmp_path / name).read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_formulas_of_all_parts_are_warned_of_once(tmp_path):
    with pytest.warns(UserWarning, match="formulas .*'=A1', '=B2';") as caught:
        write_batches(tmp_path / "a.csv", ({"t": [text]} for text in ("=B2", "x", "=A1", "-5")))
    assert len(caught) == 1


# ---------------------------------------------------------------------- types

BOOK = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    '<sheet name="People" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" '
    'Target="worksheets/sheet1.xml"/></Relationships>',
}


def sheet(path, rows):
    """A minimal .xlsx: numbers, and all else as text."""

    def cell(value):
        if value is None:
            return "<c/>"
        number = isinstance(value, int | float)
        return f"<c><v>{value}</v></c>" if number else f'<c t="inlineStr"><is><t>{value}</t></is></c>'

    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    files = BOOK | {
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_excel(tmp_path):
    pytest.importorskip("fastexcel")
    rows = [["age", "region", "code"], [31, "north", "x"], [45.5, None, "n/a"], [None, "south", "?"]]
    path = sheet(tmp_path / "people.xlsx", rows)
    expected = {"age": [31.0, 45.5, None], "region": ["north", None, "south"], "code": ["x", None, None]}
    assert plain(read_table(path, na=["?"])) == expected
    parts = list(table_batches(path, na=["?"], batch_rows=2))
    assert {k: [v for part in parts for v in plain(part)[k]] for k in expected} == expected
    with pytest.raises(InvalidInputError, match="no rows"):
        read_table(sheet(tmp_path / "b.xlsx", rows[:1]))
    with pytest.raises(InvalidInputError, match=r"not an Excel file|cannot be read"):
        read_table(write(tmp_path / "c.xlsx", "a,b\n1,2\n"))
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "d.xlsx")


def test_excel_without_its_reader(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match=r'pip install "treewright\[excel\]"'):
        read_table(tmp_path / "a.xlsx")
    with pytest.raises(InvalidInputError, match=r"must end in .csv, .tsv or .txt \(.gz may follow\) or in .parquet$"):
        write_table(tmp_path / "a.xlsx", {"x": [1.0]})


def test_all_columns_of_parquet_that_cannot_be_used_are_named(tmp_path):
    frame = pl.DataFrame({"l": [[1], [2]], "x": [1, 2], "s": [{"a": 1}, {"a": 2}], "b": [b"1", b"2"]})
    frame.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(
        InvalidInputError, match="'l' has values of type list.*'s' has values.*'b' has values of type b"
    ):
        read_table(tmp_path / "a.parquet")


def test_columns_of_many_types_as_text_and_numbers():
    table = Table(
        {
            "whole": pl.Series([1, None], dtype=pl.UInt8),
            "exact": pl.Series([2**60 + 1, 0]),
            "flag": [True, False],
            "level": pl.Series(["a", None], dtype=pl.Categorical),
            "day": [datetime.date(2024, 1, 31), None],
            "clock": [datetime.time(12), None],
            "gone": [None, None],
            "objects": np.array([1, None], dtype=object),
            "mixed": np.array([1, "x"], dtype=object),
        }
    )
    assert plain(table) == {
        "whole": [1.0, None],
        "exact": [str(2**60 + 1), "0"],
        "flag": ["true", "false"],
        "level": ["a", None],
        "day": ["2024-01-31", None],
        "clock": ["12:00:00", None],
        "gone": [None, None],
        "objects": [1.0, None],
        "mixed": ["1", "x"],
    }
    assert table.missing("day").tolist() == [False, True]
