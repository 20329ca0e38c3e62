"""Tables in files, and their columns as features."""

import csv
import datetime
import gzip
import json
import subprocess
import sys
import warnings

import numpy as np
import polars as pl
import pytest
from tests.data.made_tables import plain, write
from tests.examples import looped

from treewright.data.tables.codes import MAX_LEVELS
from treewright.data.tables.columns import why_text
from treewright.data.tables.encoder import Surprises, TableEncoder
from treewright.data.tables.files import Table, read_cells, read_table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.data.tables.writing import write_table
from treewright.exceptions import InvalidInputError, ModelFileError


def text(values):
    return np.array(values, dtype=object)


# ---------------------------------------------------------------------- reading


@looped("delimiter", [",", ";", "\t", "|"])
@looped("name", ["a.csv", "a.tsv", "a.txt", "a.CSV"])
def test_delimiter_is_found(tmp_path, delimiter, name):
    lines = [["age", "region"], ["31", "north"], ["45.5", "south"]]
    path = write(tmp_path / name, "\n".join(delimiter.join(line) for line in lines) + "\n")
    assert plain(read_table(path)) == {"age": [31.0, 45.5], "region": ["north", "south"]}


def test_decimal_commas_do_not_mislead_the_delimiter(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "x;y\n1,5;2\n2,5;3\n"))
    assert plain(table) == {"x": ["1,5", "2,5"], "y": [2.0, 3.0]}


def test_quotes_bom_line_ends_and_blank_lines(tmp_path):
    path = write(tmp_path / "a.csv", '\ufeff"a, b",c\r\n"x ""y""\nz",1\r\n\r\nw, 2 \r\n')
    assert plain(read_table(path)) == {"a, b": ['x "y"\nz', "w"], "c": [1.0, 2.0]}


def test_missing_values(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "n,t,e\n1,x,\nNA,null,\n,NaN,na\n-2e3,None,\n"))
    assert plain(table) == {
        "n": [1.0, None, None, -2000.0],
        "t": ["x", None, None, "None"],
        "e": [None, None, None, None],
    }
    assert table.is_numeric("n") and not table.is_numeric("t")
    assert table.missing("n").tolist() == [False, True, True, False]
    assert table.missing("t").tolist() == [False, True, True, False]
    assert table.n_rows == 4


def test_more_missing_values(tmp_path):
    path = write(tmp_path / "a.csv", "n,t\n1,N/A\nn/a,x\n#N/A,?\n<NA>,.\n-99,y\n")
    assert plain(read_table(path)) == {"n": [1.0, None, None, None, -99.0], "t": [None, "x", "?", ".", "y"]}
    assert plain(read_table(path, na=["?", " -99 ", "Y"])) == {
        "n": [1.0, None, None, None, None],
        "t": [None, "x", None, ".", "y"],
    }


def test_more_missing_values_of_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    write_table(path, {"n": [1.0, -99.0], "t": text(["?", "x"])})
    assert plain(read_table(path, na=["?", "-99"])) == {"n": [1.0, None], "t": [None, "x"]}


def test_cells_are_what_is_written(tmp_path):
    path = write(tmp_path / "a.csv", "\ufeffa ;b\n 1;1.0\n;x,y\n")
    assert read_cells(path) == (["a", "b"], [["1", "1.0"], ["", "x,y"]])
    with pytest.raises(InvalidInputError, match="expected a text table"):
        read_cells(tmp_path / "a.parquet")


@looped(
    "values, says",
    [
        (["1", "2", "3", "."], "'a' is text because of '.' in row 4; 3 of 4 values are numbers"),
        (["x", "1", "2", None, "y"], "because of 'x' in row 1 and 1 other value; 2 of 4 values are numbers"),
        (["x", "1", "y"], ""),
        (["x", "y", None], ""),
        (["1,5", "2,25"], "because of decimal commas, such as '1,5' in row 1; write decimal points"),
        (["3", "1.234,5", "x"], "because of decimal commas, such as '1.234,5' in row 2"),
        (["a,1", "b,2"], ""),
        (["2024-01-31", "2024-02-01 12:00"], "looks like dates, such as '2024-01-31'"),
        (["31.1.24", "1.2.24", "later"], "looks like dates, such as '31.1.24'"),
        (["2024-01/31", "12-13"], ""),
    ],
)
def test_why_a_column_is_text(values, says):
    table = Table({"a": text(values), "n": np.arange(float(len(values)))})
    assert says in why_text(table, "a") and bool(why_text(table, "a")) == bool(says)
    assert why_text(table, "n") == ""


def test_numbers_that_float_would_blur_stay_text(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "id,code,big\n9007199254740993,1_0,1e300\n9007199254740992,2_0,2\n"))
    assert plain(table)["id"] == ["9007199254740993", "9007199254740992"]
    assert plain(table)["code"] == ["1_0", "2_0"]
    assert plain(table)["big"] == [1e300, 2.0]


def test_single_column(tmp_path):
    assert plain(read_table(write(tmp_path / "a.csv", "x\n1\n2\n"))) == {"x": [1.0, 2.0]}


def test_gzip(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n1,a\n"))
    assert plain(read_table(path)) == {"x": [1.0], "y": ["a"]}


@looped(
    "content, says",
    [
        ("", "no rows"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n3\n", "line 3 has 1 fields, the header has 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields"),
        ("a,b,a\n1,2,3\n", "same name: 'a'"),
        ("a,,c\n1,2,3\n", "column 2 of 3 has no name"),
        ('a,b\n1,"2\n', "line 2: unexpected end of data"),
    ],
)
def test_bad_text_files(tmp_path, content, says):
    with pytest.raises(InvalidInputError, match=says):
        read_table(write(tmp_path / "a.csv", content))


@pytest.mark.parametrize(
    ("encoding", "content", "used"),
    [
        ("cp1252", "größe,y\n€,1\n", "cp1252"),
        ("latin-1", "gr\x81öße,y\nä,1\n", "latin-1"),  # a byte that cp1252 does not have
    ],
)
def test_what_is_not_utf8_is_read_with_a_warning(tmp_path, encoding, content, used):
    path = write(tmp_path / "a.csv", content, encoding)
    with pytest.warns(UserWarning, match=rf"not UTF-8 in line 1; read as {used} .* which it is \(encoding\)"):
        assert list(csv.reader(content.splitlines())) == [read_table(path).columns, [*content.split()[1].split(",")]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_table(path, encoding=encoding)
    name = content.partition(",")[0]
    assert plain(found) == {name: [content.split()[1][0]], "y": [1.0]}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp437", "utf-8"])
def test_encodings_that_are_named(tmp_path, encoding, recwarn):
    path = write(tmp_path / "a.csv", "größe,y\nä,1\n", encoding)
    assert plain(read_table(path, encoding=encoding)) == {"größe": ["ä"], "y": [1.0]}
    if encoding in ("utf-8-sig", "utf-16", "utf-8"):  # the file says it
        assert plain(read_table(path)) == {"größe": ["ä"], "y": [1.0]}
    assert not recwarn.list


def test_encodings_that_do_not_fit(tmp_path):
    path = write(tmp_path / "a.csv", "a,y\nok,1\nä,1\n", "latin-1")
    with pytest.raises(InvalidInputError, match="not UTF-8 in line 3"):
        read_table(path, encoding="utf-8")
    with pytest.raises(InvalidInputError, match="'klingon' is no known encoding"):
        read_table(path, encoding="klingon")
    with pytest.raises(InvalidInputError, match="'rot13' is no known encoding"):
        read_table(path, encoding="rot13")
    with pytest.raises(InvalidInputError, match="zero bytes.*utf-16"):
        read_table(write(tmp_path / "b.csv", "a,y\nä,1\n", "utf-16-le"))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.parquet")
    with pytest.raises(InvalidInputError, match="name, which must end in"):
        read_table(write(tmp_path / "a.doc", "a\n1\n"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match="cannot be read: Is a directory"):
        read_table(tmp_path / "folder.csv")
    for content in (b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n")[:-9]):
        (tmp_path / "a.csv.gz").write_bytes(content)
        with pytest.raises(InvalidInputError, match="cannot be read"):
            read_table(tmp_path / "a.csv.gz")
    with pytest.raises(InvalidInputError, match="not a parquet file"):
        read_table(write(tmp_path / "a.parquet", "hello"))


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.parquet"])
def test_round_trip(tmp_path, name):
    columns = {
        "whole": [1, 2, 3],
        "real": [0.1 + 0.2, np.nan, -1e-300],
        "text": text(["a,b", None, 'say "ü"\n']),
    }
    write_table(tmp_path / name, columns)
    assert plain(read_table(tmp_path / name)) == {
        "whole": [1.0, 2.0, 3.0],
        "real": [0.1 + 0.2, None, -1e-300],
        "text": ["a,b", None, 'say "ü"' if name != "a.parquet" else 'say "ü"\n'],
    }
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_parquet_types(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table(
        {
            "i": arrow.array([1, None], arrow.int32()),
            "big": arrow.array([2**53 + 1, 2**53]),
            "b": arrow.array([True, None]),
            "d": arrow.array(["x", "y"]).dictionary_encode(),
            "n": arrow.nulls(2),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    assert plain(read_table(tmp_path / "a.parquet")) == {
        "i": [1.0, None],
        "big": ["9007199254740993", "9007199254740992"],
        "b": ["true", None],
        "d": ["x", "y"],
        "n": [None, None],
    }
    parquet.write_table(arrow.table({"l": [[1], [2]]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match="column 'l' has values of type list"):
        read_table(tmp_path / "b.parquet")


def test_tables_need_no_other_package(tmp_path):
    write(tmp_path / "a.csv", "x\n1\n")
    code = (
        "import sys; sys.modules.update(pyarrow=None, pandas=None, fastexcel=None)\n"
        "from treewright.data.tables.files import read_table\n"
        "from treewright.data.tables.writing import write_table\n"
        "write_table('a.parquet', {'x': read_table('a.csv')['x']}); assert read_table('a.parquet')['x'][0] == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write(tmp_path / "a.csv", "old")

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr("treewright.data.tables.files.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_table(path, {"x": [1.0]})
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_columns_of_different_lengths(tmp_path):
    with pytest.raises(InvalidInputError, match="different lengths"):
        write_table(tmp_path / "a.csv", {"x": [1.0], "y": [1.0, 2.0]})


# ---------------------------------------------------------------------- encoding


@pytest.fixture
def table():
    return Table(
        {
            "age": np.array([31.0, 45.0, 28.0]),
            "region": text(["south", "north", "south"]),
            "member": text(["True", "false", "TRUE"]),
        }
    )


def test_encode(table):
    encoder = TableEncoder.fit(table, ["region", "age", "member"])
    matrix, names = encoder.transform(table)
    assert names == ["region=north", "age", "member=true"]  # south is more frequent
    assert matrix.tolist() == [[0, 31, 1], [1, 45, 0], [0, 28, 1]]
    assert matrix.dtype == np.float64 and encoder.columns == ["region", "age", "member"]


def test_encoder_as_plain_data(table):
    encoder = TableEncoder.fit(table, list(table.columns))
    assert TableEncoder.from_dict(encoder.to_dict()) == encoder


def test_unknown_levels_are_zero_and_warned_of(table):
    encoder = TableEncoder.fit(table, ["region", "member"])
    other = Table({"region": text(["west", "west", "north"]), "member": text(["maybe", "true", "false"])})
    with pytest.warns(UserWarning) as caught:
        matrix, _ = encoder.transform(other)
    assert matrix.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert "'west' (2 rows); they count as 'south'" in str(caught[0].message)
    assert "'maybe' (1 row); they count as 'false'" in str(caught[1].message)


def test_codes_read_as_numbers_match_levels_read_as_text(tmp_path):
    with pytest.warns(UserWarning, match="'code' is text because of 'x' in row 3; 2 of 3 values are numbers"):
        encoder = TableEncoder.fit(read_table(write(tmp_path / "a.csv", "code\n1\n2\nx\n")), ["code"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix, _ = encoder.transform(read_table(write(tmp_path / "b.csv", "code\n2\n1\n")))
    assert encoder.feature_names == ["code=2", "code=x"] and matrix.tolist() == [[1, 0], [0, 0]]


def test_gaps_are_filled_in_where_that_is_asked_for():
    table = Table(
        {
            "n": [1.0, np.nan, 7.0, 3.0],
            "t": text(["a", "b", None, "b"]),
            "b": text(["true", None, "false", "true"]),
            "e": [np.nan] * 4,
            "full": [0.0, 1.0, 2.0, 9.0],
        }
    )
    with pytest.warns(UserWarning) as caught:
        encoder = TableEncoder.fit(table, table.columns, fill_gaps=True)
    said = [str(warning.message) for warning in caught]
    assert "without any value are left out: 'e'" in said[0] and len(said) == 2
    assert "'n' (1 of them, by 3), 't' (1 of them, as no level), 'b' (1 of them" in said[1]
    with pytest.warns(UserWarning, match="filled in: 'n' .*; features named like 'n is missing' tell where"):
        matrix, names = encoder.transform(table)
    assert names == ["n", "n is missing", "t=a", "t is missing", "b=true", "b is missing", "full"]
    assert matrix.tolist() == [
        [1, 0, 1, 0, 1, 0, 0],
        [3, 1, 0, 0, 0, 1, 1],
        [7, 0, 0, 1, 0, 0, 2],
        [3, 0, 0, 0, 1, 0, 9],
    ]
    # gaps where the fit had none: the median, 1 (the lower of two)
    full = Table({"n": [1.0], "t": text(["a"]), "b": text(["true"]), "full": [np.nan]})
    with pytest.warns(UserWarning, match=r"'full' \(1 of them, by 1\)$"):
        assert encoder.transform(full)[0].tolist() == [[1, 0, 1, 0, 1, 0, 1]]
    assert TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


DAY = datetime.date(1970, 1, 1)


@looped("form", ["%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"])
def test_dates_become_days(form):
    dates = [DAY + datetime.timedelta(days=k) for k in (-40_000, 0, 19, 20_000)]
    table = Table({"born": text([*(day.strftime(form) for day in dates), None])})
    with pytest.warns(UserWarning, match="'born' has dates, which become numbers: days since 1970-01-01"):
        encoder = TableEncoder.fit(Table({"born": table["born"][:4]}), ["born"])
        mixed = MixedEncoder.fit(table, ["born"])
    assert encoder.transform(Table({"born": table["born"][:4]}))[0].ravel().tolist() == [-40_000, 0, 19, 20_000]
    assert mixed.transform(table)[0].ravel()[:4].tolist() == [-40_000, 0, 19, 20_000] and not mixed.categorical
    typed = Table({"born": pl.Series([dates[1], dates[3]])})
    assert encoder.transform(typed)[0].ravel().tolist() == [0, 20_000]
    for known in (encoder, mixed):
        assert type(known).from_dict(json.loads(json.dumps(known.to_dict()))) == known
        with pytest.raises(InvalidInputError, match="'born' has 'soon' in row 2, where .* dates such as"):
            known.transform(Table({"born": text([dates[0].strftime(form), "soon"])}))


def test_times_are_parts_of_days(tmp_path):
    times = [datetime.datetime(1970, 1, 2, 6), datetime.datetime(1969, 12, 31, 12, 0, 0)]
    for form in ("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"):
        table = Table({"at": text([time.strftime(form) for time in times])})
        with pytest.warns(UserWarning, match="dates"):
            encoder = TableEncoder.fit(table, ["at"])
        assert encoder.transform(table)[0].ravel().tolist() == [1.25, -0.5]
    pl.DataFrame({"at": times}).write_parquet(tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet")
    assert found["at"].tolist()[0].startswith("1970-01-02 06:00") and not found.is_numeric("at")
    assert encoder.transform(found)[0].ravel().tolist() == [1.25, -0.5]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["1/2/2024", "3/4/2024"], "days and months cannot be told apart"),
        (["31.1.24", "1.2.24"], "a year of four digits"),
        (["2024-02-30", "2024-01-01"], "looks like dates, such as '2024-02-30', and is text"),
    ],
)
def test_what_is_no_date_stays_text(values, says):
    with pytest.warns(UserWarning, match=says):
        encoder = TableEncoder.fit(Table({"a": text(values)}), ["a"])
    assert encoder.codes["a"].kind == "text"


def test_what_transform_refuses(table):
    encoder = TableEncoder.fit(table, ["age", "region"])
    with pytest.raises(InvalidInputError, match="lacks 'region', which the model was fitted with"):
        encoder.transform(Table({"age": table["age"]}))
    holes = Table({"age": np.array([1.0, np.nan, np.nan]), "region": table["region"]})
    with pytest.raises(InvalidInputError, match=r"'age' has 2 missing values, first in row 2; .*--drop age"):
        encoder.transform(holes)
    with pytest.raises(InvalidInputError, match="'age' has the text 'old' in row 2"):
        encoder.transform(Table({"age": text(["3", "old", "4"]), "region": table["region"]}))
    with pytest.raises(InvalidInputError, match="'3,5' in row 1, .* write decimal points"):
        encoder.transform(Table({"age": text(["3,5", "4", "4"]), "region": table["region"]}))
    with pytest.raises(InvalidInputError, match="'age' has inf in row 3"):
        encoder.transform(Table({"age": np.array([1.0, 2.0, np.inf]), "region": table["region"]}))


def test_what_fit_refuses(table):
    with pytest.raises(InvalidInputError, match="no column is left"):
        TableEncoder.fit(table, [])
    with pytest.raises(InvalidInputError, match="no column 'height'; columns: 'age', 'region', 'member'"):
        TableEncoder.fit(table, ["height"])
    many = Table({"id": text([f"p{i}" for i in range(MAX_LEVELS + 1)])})
    said = "'id' has 51 different values, none of them in 10 rows or more, and is left out"
    with pytest.warns(UserWarning, match=said), pytest.raises(InvalidInputError, match="no column is left"):
        TableEncoder.fit(many, ["id"])
    mostly = Table({"x": text([*(str(i) for i in range(MAX_LEVELS)), "?"])})
    with pytest.raises(InvalidInputError, match=r"different values .* because of '\?' in row 51; 50 of 51"):
        TableEncoder.fit(mostly, ["x"])
    clash = Table({"a": text(["b", "c"]), "a=c": np.array([1.0, 2.0])})
    with pytest.raises(InvalidInputError, match="same name: 'a=c'"):
        TableEncoder.fit(clash, ["a", "a=c"])
    with pytest.raises(InvalidInputError, match="'a' have one value only"):
        TableEncoder.fit(Table({"a": text(["b", "b"])}), ["a"])


def test_all_columns_that_cannot_be_used_are_named_at_once(table):
    many = text([*(str(i) for i in range(59)), "p"])
    wide = Table({"id": many, "a, b": many[::-1], "x": np.arange(60.0), "gap": np.where(np.arange(60) > 8, 1, np.nan)})
    with pytest.raises(InvalidInputError) as said:
        TableEncoder.fit(wide, wide.columns)
    for part in ("'gap' has 9 missing values", "'id' has 60 different", "'a, b' has 60", '--drop gap,id,"a, b")'):
        assert part in str(said.value)
    encoder = TableEncoder.of_numbers(["x", "id", "a, b", "gap"])
    with pytest.raises(InvalidInputError) as said:
        encoder.transform(wide)
    for part in (
        "'id' has the text 'p' in row 60",
        "'a, b' has the text 'p' in row 1",
        "'gap' has 9 missing",
        "--drop gap)",
    ):
        assert part in str(said.value)


NUMBER = {"name": "a", "kind": "number", "gaps": False, "fill": None}
TEXT = {"name": "a", "kind": "text", "gaps": False, "levels": ["x", "y"], "base": "x"}


def test_the_pieces_of_bad_plain_data_are_good():
    assert TableEncoder.from_dict({"columns": [NUMBER, TEXT | {"name": "b"}], "fills": False}).feature_names == [
        "a",
        "b=y",
    ]


@looped(
    "data",
    [
        None,
        [],
        {},
        {"columns": [NUMBER]},
        {"fills": False},
        {"columns": [], "fills": False},
        {"columns": [NUMBER], "fills": False, "more": 1},
        {"columns": [NUMBER], "fills": 1},
        {"columns": [NUMBER], "fills": True},
        {"columns": [NUMBER | {"fill": 1.0}], "fills": False},
        {"columns": [NUMBER | {"fill": float("inf")}], "fills": True},
        *(
            {"columns": columns, "fills": False}
            for columns in (
                [["a", None]],
                [NUMBER | {"gaps": True}],
                [NUMBER | {"gaps": 1}],
                [NUMBER | {"kind": "thing"}],
                [NUMBER | {"format": "%Y"}],
                [NUMBER | {"name": ""}],
                [NUMBER | {"name": 1}],
                [NUMBER | {"kind": "date"}],
                [NUMBER | {"kind": "date", "format": "%s"}],
                [TEXT | {"base": "z"}],
                [TEXT | {"base": ["x"]}],
                [TEXT | {"levels": []}],
                [TEXT | {"levels": ["y", "x"]}],
                [TEXT | {"levels": ["x", "x"]}],
                [TEXT | {"levels": ["x", 1]}],
                [TEXT | {"levels": "xy"}],
                [TEXT | {"levels": [*(f"{i:03}" for i in range(MAX_LEVELS)), "x"]}],
                [TEXT | {"fill": 1.0}],
                [TEXT, TEXT],
                [TEXT, NUMBER | {"name": "a=y"}],
            )
        ),
    ],
)
def test_bad_plain_data(data):
    with pytest.raises(ModelFileError, match="table"):
        TableEncoder.from_dict(data)


# ---------------------------------------------------------------------- rows that are written out some at a time


def test_encoded_rows_are_those_of_the_whole_table():
    rng = np.random.default_rng(0)
    n = 5000  # more than are written at once
    table = Table(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "region": rng.choice(np.array(["north", "south", "west", None], dtype=object), n),
            "born": [None if i % 7 == 0 else f"{1 + i % 28}.{1 + i % 12}.19{10 + i % 80}" for i in range(n)],
            "flag": rng.choice(["true", "False"], n),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = TableEncoder.fit(table, table.columns, fill_gaps=True)
        whole, names = encoder.transform(table)
    # each cell by itself, from the text of the table
    level = table["region"]
    assert np.array_equal(whole[:, names.index("region is missing")], [v is None for v in level])
    for name in ("north", "south", "west"):
        if f"region={name}" in names:
            assert np.array_equal(whole[:, names.index(f"region={name}")], [v == name for v in level])
    born = [np.nan if v is None else datetime.datetime.strptime(v, "%d.%m.%Y").toordinal() for v in table["born"]]
    day = whole[:, names.index("born")] + datetime.date(1970, 1, 1).toordinal()
    known = np.isfinite(born)
    assert np.array_equal(day[known], np.array(born)[known])
    middle = (known.sum() - 1) // 2
    ten = np.sort(np.array(born)[known])[middle - 4 : middle + 6]
    assert set(day[~known]) == {round(ten.mean())}  # no one's day

    surprises = Surprises()
    rows = encoder.encoded(table, surprises)
    assert surprises.gaps == {name: int(table.missing(name).sum()) for name in ("age", "region", "born")}
    some = np.sort(rng.choice(n, 1700, replace=False))
    assert np.array_equal(rows.features(), whole) and np.array_equal(rows.features(some), whole[some])
    assert np.array_equal(rows.features(slice(4000, 9000)), whole[4000:])
    two = {name: encoder.codes[name] for name in ("region", "age")}
    place = [names.index(f) for name, code in two.items() for f in code.feature_names(name)]
    assert np.array_equal(rows.of_columns(two).features(slice(10, 2000)), whole[10:2000][:, place])
