import json

from agent.log import log


def test_a_line_is_one_json_object_whatever_it_says(capsys):
    log("info", "match", reason="two\nlines", data=b"\xff")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["level"], record["event"], record["reason"]) == ("info", "match", "two\nlines")
    assert record["time"].endswith("Z")
