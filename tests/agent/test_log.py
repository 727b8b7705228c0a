import io
import json
import sys

from agent.log import log


def test_a_line_is_one_json_object_whatever_it_says(capsys):
    log("info", "match", reason="two\nlines", data=b"\xff")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["level"], record["event"], record["reason"]) == ("info", "match", "two\nlines")
    assert record["time"].endswith("Z")


def test_a_line_is_written_in_one_piece_as_others_may_be_writing_too(monkeypatch):
    class Pieces(io.StringIO):
        def write(self, text):
            pieces.append(text)
            return len(text)

    pieces: list[str] = []
    monkeypatch.setattr(sys, "stderr", Pieces())
    log("info", "match")
    (piece,) = pieces
    assert piece.endswith("}\n")
