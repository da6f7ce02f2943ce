"""A configuration file is read strictly and completely, or refused with a line."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config.arguments import ARGUMENT_BYTES_MAX, command_fault, total_bytes_max
from shared.config.loader import load, parse
from shared.config.starter import starter_text
from shared.errors import ConfigError
from shared.model.settings import Binding, Config, Grant, RetryPolicy, SandboxConfig, ScopeConfig, Settings

S = 1_000_000

WHOLE = """\
# the shape of the design
[settings]
concurrency = 5
job_concurrency = 0
lease = "90s"
timeout = "2h"
output_max = "1GB"
slots = 8
[scope."ops"]
concurrency = 2
binding = "backup"
[scope."ops/backup"]
[binding.backup]
executor = "shell"
command = ["./backup.sh", "--full"]
cwd = "jobs"
env = { B = "2", A = "" }
timeout = "30m"
grace = "5s"
retry = { delays = ["5m", "10m"], on = ["timeout", "failure"] }
replay = "safe"
output_max = 0
sandbox = { write = ["/srv//data/", "/opt"], network = true, tmp = false }
[binding.backup.secrets]
PASSWORD = "file:/run/secrets/backup"
API_KEY = "env:BACKUP_KEY"
[binding.backup.grant.publish]
env = { TARGET = "public" }
secrets = { TOKEN = "env:TOKEN" }
write = ["/srv/www"]
"""


def read(text: str) -> Config:
    return parse(text, source="tenure.toml", folder=Path("/etc/x"))


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    return caught.value


def test_the_whole_shape_is_read() -> None:
    assert read(WHOLE) == Config(
        settings=Settings(
            concurrency=5, job_concurrency=0, lease_us=90 * S, timeout_us=7200 * S, output_max_bytes=10**9, slots=8
        ),
        scopes=(ScopeConfig("ops", 2, "backup"), ScopeConfig("ops/backup")),
        bindings=(
            Binding(
                name="backup",
                command=("./backup.sh", "--full"),
                env=(("A", ""), ("B", "2")),
                cwd="/etc/x/jobs",
                timeout_us=1800 * S,
                grace_us=5 * S,
                retry=RetryPolicy(delays_us=(300 * S, 600 * S), on=("failure", "timeout")),
                replay="safe",
                secrets=(("API_KEY", "env:BACKUP_KEY"), ("PASSWORD", "file:/run/secrets/backup")),
                sandbox=SandboxConfig(("/",), ("/opt", "/srv/data"), network=True, private_tmp=False),
                output_max_bytes=0,
                grants=(
                    Grant(
                        "publish",
                        env=(("TARGET", "public"),),
                        secrets=(("TOKEN", "env:TOKEN"),),
                        writable=("/srv/www",),
                    ),
                ),
            ),
        ),
    )


def test_order_comments_and_spelling_of_the_file_do_not_change_the_configuration() -> None:
    other = (
        'binding."b" = { command = ["x"] }\nbinding.a.command = [\'y\',]\n'
        '[settings]\r\nlease = "1m30s" # 90s\r\n'
    )  # fmt: skip
    same = '[settings]\nlease = "90s"\n[binding.a]\ncommand = ["y"]\n[binding.b]\ncommand = ["x"]'

    assert read(other).digest == read(same).digest


@pytest.mark.req("E01")
@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "[settings]", "[scope]\n[binding]"])
def test_an_empty_file_is_the_defaults(text: str) -> None:
    assert read(text) == Config()


@pytest.mark.req("R14")
def test_a_sandbox_that_says_nothing_shows_everything_lets_nothing_be_changed_and_has_no_network() -> None:
    binding = read(BINDING + "sandbox = {}").bindings[0]

    assert binding.sandbox == SandboxConfig(read_only=("/",), writable=(), network=False, private_tmp=True)
    assert read(BINDING).bindings[0].sandbox is None, "control"


BINDING = '[binding.a]\ncommand = ["x"]\n'


def test_of_several_faults_the_first_in_the_file_is_named_and_the_others_counted() -> None:
    error = refusal('[binding.b]\ncommand = ["x"]\ntimeout = "5"\n[schedule]\n[settings]\nx = 1\n[binding.a]\n')

    assert error.key == "binding.b.timeout"
    assert str(error).endswith("(and 3 more faults in this file)")


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        ('[schedule.nightly]\ncron = "0 2 * * *"', 1, "schedule"),
        ("\n\n[executor.docker]", 3, "executor"),
    ],
)
def test_what_a_later_version_brings_is_refused_by_name_never_ignored(text: str, line: int, name: str) -> None:
    error = refusal(text)

    assert (error.line, error.key, error.code) == (line, name, "unsupported")
    assert "is not supported yet" in str(error)
    assert refusal("[shedule]").code == "config"


def test_nesting_beyond_reason_is_a_refusal_not_a_crash() -> None:
    assert "nested too deep" in str(refusal("x = " + "[" * 20_000))


def test_an_error_survives_pickling() -> None:
    error = refusal('[settings]\nlease = "2"')

    again = pickle.loads(pickle.dumps(error))

    assert (str(again), again.line, again.key) == (str(error), error.line, error.key)


@pytest.mark.parametrize("sign", ["x", "é"])
def test_one_argument_may_be_as_long_as_the_kernel_takes_and_no_longer(sign: str) -> None:
    size = len(sign.encode())
    longest = sign * (ARGUMENT_BYTES_MAX // size)

    assert read(f'[binding.a]\ncommand = ["x", "{longest}"]').bindings[0].command[1] == longest
    error = refusal(f'[binding.a]\ncommand = ["x",\n"{longest}{sign}"]')

    assert (error.line, error.key) == (3, "binding.a.command[1]")
    assert "131,071 in one argument" in str(error)


def test_one_environment_entry_counts_with_its_name() -> None:
    longest = "x" * (ARGUMENT_BYTES_MAX - len("A="))

    read(BINDING + f'env = {{ A = "{longest}" }}')
    error = refusal(BINDING + f'env = {{ A = "{longest}x" }}')

    assert (error.line, error.key) == (3, "binding.a.env.A")
    assert "A=… is 131,072 bytes" in str(error)


def test_all_arguments_together_must_fit_too() -> None:
    count = total_bytes_max() // ARGUMENT_BYTES_MAX
    word = f'"{"x" * ARGUMENT_BYTES_MAX}", '

    read(f'[binding.a]\ncommand = ["x", {word * (count - 1)}]')
    error = refusal(f'[binding.a]\ncommand = ["x", {word * (count + 1)}]')

    assert error.key == "binding.a.command"
    assert "bytes together" in str(error)


@pytest.mark.parametrize(
    ("command", "env", "fault"),
    [
        ((), (), "the command is empty"),
        (("",), (), "the program's name is empty"),
        (("x", "\0"), (), "argument 1 contains a NUL byte"),
        (("x", "y" * 131_072), (), "argument 1 is 131,072 bytes"),
        (("x",), (("1A", ""),), '"1A" is no name'),
        (("x",), (("A", "y" * 131_072),), "A=… is 131,074 bytes"),
        (("x", *["y" * 100_000] * 70), (), "bytes together"),
    ],
)
def test_a_command_line_is_judged_like_a_file(
    command: tuple[str, ...], env: tuple[tuple[str, str], ...], fault: str
) -> None:
    found = command_fault(command, env)

    assert found is not None
    assert fault in found
    assert command_fault(("x", "", "y\udcff"), (("A", "="),)) is None


def test_load_reads_a_file_from_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "tenure.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BINDING.replace("\n", "\r\n").encode() + b'cwd = "w"')

    assert load(path).bindings[0].cwd == str(tmp_path / "w")


def test_a_file_that_is_no_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "tenure.toml"
    path.write_bytes(b'# a\n# b\nx = "\xff"\n')

    with pytest.raises(ConfigError, match="is not UTF-8 text") as caught:
        load(path)

    assert (caught.value.line, caught.value.source) == (3, str(path))


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file") as caught:
        load(tmp_path / "none.toml")

    assert "tenure init" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_plain_file_is_refused_without_being_opened(tmp_path: Path, kind: str) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)

    with pytest.raises(ConfigError, match="is not a regular file"):
        load(path)


def test_a_file_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "tenure.toml"
    path.symlink_to(path)

    with pytest.raises(ConfigError, match="cannot be read: Too many levels of symbolic links"):
        load(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "tenure.toml"
    path.touch(mode=0o000)

    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        load(path)


def test_the_starter_file_loads_strictly_and_backs_up_this_home() -> None:
    text = starter_text(["/opt/te nure/bin/tenure"], '/srv/a"b')

    config = read(text)

    assert {binding.name for binding in config.bindings} == {"disk", "backup"}
    backup = config.binding("backup")
    assert backup is not None
    assert backup.command[:3] == ("/opt/te nure/bin/tenure", "--home", '/srv/a"b')
    assert config.settings == Settings()


def test_everything_the_starter_file_only_mentions_loads_too() -> None:
    mentioned = starter_text(["/bin/tenure"], "/h").split("when it does not:\n#\n")[1]

    report = read("".join(line.removeprefix("# ") + "\n" for line in mentioned.splitlines())).binding("report")

    assert report is not None
    assert [grant.name for grant in report.grants] == ["publish"]
    assert report.secrets
    assert report.sandbox is not None
    assert report.retry == RetryPolicy()
    assert report.grace_us == Binding("", ()).grace_us


values = st.recursive(
    st.integers() | st.booleans() | st.sampled_from(["30s", "5", "shell", "x"]),
    lambda inner: st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(map(toml, items))}]"),
    max_leaves=3,
)


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not value.startswith("["):
        return f'"{value}"'
    return str(value)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "[settings]",
                    "[binding.a]",
                    "[scope.x]",
                    "[[budget]]",
                    "[binding.a.retry]",
                    "[y]",
                    "[binding.a.sandbox]",
                    "[binding.a.grant]",
                    "[binding.a.grant.g]",
                    "[binding.a.secrets]",
                ]
            ),
            st.sampled_from(
                [
                    "command",
                    "lease",
                    "delays",
                    "concurrency",
                    "timeout",
                    "retry",
                    "settings",
                    "env",
                    "binding",
                    "secrets",
                    "sandbox",
                    "grant",
                    "write",
                    "tmp",
                    "output_max",
                ]
            ),
            values,
        ),
        max_size=4,
    )
)
def test_any_toml_is_read_or_refused_with_a_line(parts: list[tuple[str, str, object]]) -> None:
    text = "".join(f"{header}\n{key} = {toml(value)}\n" for header, key, value in parts)
    lines = range(1, 2 * len(parts) + 1)
    try:
        config = read(text)
    except ConfigError as error:
        line = error.line
    else:
        assert Config.from_json(config.to_json()) == config
        return
    assert line in lines
