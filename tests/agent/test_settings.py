from pathlib import Path

import pytest

from agent.settings import parse

IN_POD = {"NODE_NAME": "ws-1", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


def test_in_a_pod_nothing_needs_to_be_said():
    settings = parse([], IN_POD)
    assert settings.node == "ws-1"
    assert (settings.endpoint.host, settings.endpoint.port) == ("10.96.0.1", 6443)
    assert settings.endpoint.token_file == Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
    assert (settings.source, settings.poll_interval, settings.host_check) == ("auto", 0.25, "strict")
    assert not settings.match_pods


def test_the_command_line_outranks_the_environment():
    settings = parse(["--node=other", "--server=https://api.example:7443"], IN_POD)
    assert (settings.node, settings.endpoint.host, settings.endpoint.port) == ("other", "api.example", 7443)


def test_an_ipv6_service_address_is_understood():
    assert parse([], {**IN_POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}).endpoint.host == "fd00::1"


@pytest.mark.parametrize(
    ("argv", "env", "says"),
    [
        ([], {}, "set NODE_NAME"),
        ([], {"NODE_NAME": "ws-1"}, "KUBERNETES_SERVICE_HOST is not set"),
        (["--server=http://api.example"], IN_POD, "must be given as https://host:port"),
        (["--server=https://api.example/path"], IN_POD, "must be given as https://host:port"),
        (["--poll-interval=0"], IN_POD, "must be 0.05 to 60 seconds"),
        (["--poll-interval=fast"], IN_POD, "must be 0.05 to 60 seconds, not 'fast'"),
        (["--match"], IN_POD, "unrecognized arguments"),
        (["--refire-interval=-1"], IN_POD, "must be 0 to 3600 seconds"),
        (["--source=guess"], IN_POD, "invalid choice"),
        (["--host-check=maybe"], IN_POD, "invalid choice"),
    ],
)
def test_what_is_wrong_is_said_with_a_way_out(argv: list[str], env: dict[str, str], says: str, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(argv, env)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
