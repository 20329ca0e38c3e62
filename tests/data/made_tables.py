"""Text files that tests of tables write, and tables as plain values."""


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def plain(table):
    return {name: [None if v is None or v != v else v for v in table[name].tolist()] for name in table.columns}
