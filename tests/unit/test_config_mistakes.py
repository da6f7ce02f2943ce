"""Each mistake a user makes in the configuration gets one line that names its place, and the file without it loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.config.loader import parse
from shared.errors import ConfigError
from shared.model.settings import Config


def read(text: str) -> Config:
    return parse(text, source="tenure.toml", folder=Path("/etc/x"))


BUDGET = '[[budget]]\nunit = "usd"\nmax = 20\n'
BINDING = '[binding.a]\ncommand = ["x"]\n'

# (faulty text, line, key, part of the message, part of the hint, the same text without the fault)
MISTAKES = [
    # unknown keys, and the likely one
    ('[settings]\nlese = "60s"', 2, "settings.lese", 'unknown key "lese" in settings', '"lease"', '[settings]\nlease = "60s"'),
    ("[settings]\nconcurency = 1", 2, "settings.concurency", "unknown key", '"concurrency"', "[settings]\nconcurrency = 1"),
    ("[settings]\nConcurrency = 1", 2, "settings.Concurrency", "unknown key", '"concurrency"', "[settings]\nconcurrency = 1"),
    ("concurrency = 4", 1, "concurrency", 'unknown key "concurrency"', "[settings]", "[settings]\nconcurrency = 4"),
    (BINDING + 'lease = "9s"', 3, "binding.a.lease", "unknown key", "[settings]", BINDING + 'timeout = "9s"'),
    ("[settings]\nreplay = 1", 2, "settings.replay", "unknown key", "[binding.NAME]", "[settings]\nslots = 1"),
    ('[bindings.a]\ncommand = ["x"]', 1, "bindings", 'unknown key "bindings"', '"binding"', BINDING),
    ('[scopes."a"]', 1, "scopes", "unknown key", '"scope"', '[scope."a"]'),
    ("[scope.ops.backup]\nconcurrency = 1", 1, "scope.ops.backup", "unknown key", '[scope."ops/backup"]', '[scope."ops/backup"]\nconcurrency = 1'),
    (BINDING + 'retry = { delay = ["5m"] }', 3, "binding.a.retry.delay", "unknown key", '"delays"', BINDING + 'retry = { delays = ["5m"] }'),
    ("[xyzzy]", 1, "xyzzy", "unknown key", "settings, scope, binding", ""),
    ('[settings]\n"" = 1', 2, 'settings.""', "unknown key", "known here", "[settings]"),
    # written twice
    ("[settings]\nslots = 1\n# x\nslots = 2", 4, "settings.slots", "defined twice, first on line 2", "keep one", "[settings]\nslots = 1"),
    (BINDING + '[scope.x]\n[binding."a"]', 4, "binding.a", "defined twice, first on line 1", "keep one", BINDING + "[scope.x]"),
    ("[settings]\n[settings]", 2, "settings", "defined twice, first on line 1", "keep one", "[settings]"),
    (BINDING + 'env = { A = "1", A = "2" }', 3, "binding.a.env.A", "defined twice", "keep one", BINDING + 'env = { A = "1" }'),
    # units
    ('[settings]\nlease = "30"', 2, "settings.lease", '"30" needs a unit, e.g. "30s"', None, '[settings]\nlease = "30s"'),
    ("[settings]\nlease = 30", 2, "settings.lease", 'with its unit, e.g. "30s", not 30', None, '[settings]\nlease = "30s"'),
    ("[settings]\nlease = 30s", 2, None, "not TOML", '"30s"', '[settings]\nlease = "30s"'),
    ('[settings]\nlease = "1 min"', 2, "settings.lease", "is no duration", '"1m"', '[settings]\nlease = "1m"'),
    (BINDING + "timeout = 1.5", 3, "binding.a.timeout", "with its unit", None, BINDING + 'timeout = "1500ms"'),
    (BINDING + "timeout = true", 3, "binding.a.timeout", "with its unit", None, BINDING + 'timeout = "1h"'),
    (BINDING + 'retry = { delays = ["5m",\n"10"] }', 4, "binding.a.retry.delays[1]", "needs a unit", None, BINDING + 'retry = { delays = ["5m", "10s"] }'),
    # budgets
    ('[[budget]]\nunit = "usd"', 1, "budget[0].max", "budget[0] has no max", "max = 20", BUDGET),
    ('[[budget]]\nmax = 20', 1, "budget[0].unit", "budget[0] has no unit", 'unit = "usd"', BUDGET),
    (BUDGET + "per = 'user'", 4, "budget[0].per", 'must be "work" or "scope" or "all"', None, BUDGET + 'per = "work"'),
    (BUDGET + 'period = "month"', 4, "budget[0].period", 'must be "life" or "day" or "week"', None, BUDGET + 'period = "week"'),
    ('[[budget]]\nunit = "USD"\nmax = 1', 2, "budget[0].unit", 'is no name for a unit: "USD"', "usd", BUDGET),
    ('[[budget]]\nunit = "usd"\nmax = 0', 3, "budget[0].max", "must be above 0", None, BUDGET),
    ('[[budget]]\nunit = "usd"\nmax = -1', 3, "budget[0].max", "must be above 0", None, BUDGET),
    ('[[budget]]\nunit = "usd"\nmax = nan', 3, "budget[0].max", "must be a number", None, BUDGET),
    ('[[budget]]\nunit = "usd"\nmax = 1e308', 3, "budget[0].max", "at most 1000000000000", None, BUDGET),
    ('[[budget]]\nunit = "usd"\nmax = "lots"', 3, "budget[0].max", "must be a number", None, BUDGET),
    ('[[budget]]\nunit = "usd"\nmax = true', 3, "budget[0].max", "must be a number", None, BUDGET),
    ('[[budget]]\nunit = "usd"\nmax = 0.0000000000001', 3, "budget[0].max", "more than 12 decimals", None, BUDGET),
    (BUDGET + "warn_at = 1", 4, "budget[0].warn_at", "between 0 and 1", None, BUDGET + "warn_at = 0.99"),
    (BUDGET + "warn_at = 0", 4, "budget[0].warn_at", "between 0 and 1", None, BUDGET + "warn_at = 0.01"),
    (BUDGET + 'per = "all"\nscope = "ops"', 5, "budget[0].scope", "shared by every scope", None, BUDGET + 'per = "all"'),
    (BUDGET + 'scope = "o p"', 4, "budget[0].scope", "is no name for a scope", None, BUDGET + 'scope = "ops"'),
    (BUDGET + "[[budget]]\nunit = 'usd'\nmax = 5", 4, "budget[1]", "counts the same as the first budget", "keep the lower", BUDGET),
    (BUDGET + "limit = 5", 4, "budget[0].limit", "unknown key", None, BUDGET),
    ('[budget]\nunit = "usd"\nmax = 1', 1, "budget", "budget must be a list", "[[budget]]", BUDGET),
    # approval
    (BINDING + 'approval = "yes"', 3, "binding.a.approval", "must be true or false", None, BINDING + "approval = true"),
    ('[settings]\napproval = ["jobs"]', 2, "settings.approval[0]", 'must be "run_once" or "standing"', None, '[settings]\napproval = ["standing"]'),
    # bounds
    ('[settings]\nlease = "999ms"', 2, "settings.lease", "from 1s to 1h", None, '[settings]\nlease = "1s"'),
    ('[settings]\nlease = "61m"', 2, "settings.lease", "from 1s to 1h", None, '[settings]\nlease = "60m"'),
    ('[settings]\ntimeout = "366d"', 2, "settings.timeout", "from 1s to 365d", None, '[settings]\ntimeout = "365d"'),
    ('[settings]\ntimeout = "0s"', 2, "settings.timeout", "from 1s to 365d", None, '[settings]\ntimeout = "1s"'),
    ("[settings]\nconcurrency = -1", 2, "settings.concurrency", "from 0 (unbounded) to 100000", None, "[settings]\nconcurrency = 0"),
    ("[settings]\nconcurrency = 100001", 2, "settings.concurrency", "to 100000", None, "[settings]\nconcurrency = 100000"),
    ("[settings]\njob_concurrency = true", 2, "settings.job_concurrency", "whole number, not true", None, "[settings]\njob_concurrency = 1"),
    ("[settings]\njob_concurrency = 4.0", 2, "settings.job_concurrency", "whole number, not 4.0", None, "[settings]\njob_concurrency = 4"),
    ("[settings]\njob_concurrency = 1e3", 2, "settings.job_concurrency", "whole number", None, "[settings]\njob_concurrency = 1_000"),
    ('[settings]\njob_concurrency = "4"', 2, "settings.job_concurrency", 'not "4"', None, "[settings]\njob_concurrency = 4"),
    ("[settings]\njob_concurrency = 04", 2, None, "not TOML", None, "[settings]\njob_concurrency = 4"),
    ("[settings]\nslots = 0", 2, "settings.slots", "from 1 to 100000", None, "[settings]\nslots = 1"),
    ("[scope.x]\nconcurrency = -2", 2, "scope.x.concurrency", "from 0 (unbounded)", None, "[scope.x]\nconcurrency = 0"),
    (BINDING + "retry = { delays = [] }", 3, "binding.a.retry.delays", "1 to 100 delays, not 0", "leave retry out", BINDING + 'retry = { delays = ["1s"] }'),
    (BINDING + f"retry = {{ delays = {['1s'] * 101} }}", 3, "binding.a.retry.delays", "not 101", None, BINDING + f"retry = {{ delays = {['1s'] * 100} }}"),
    (BINDING + "retry = { on = [] }", 3, "binding.a.retry.on", "on must name", None, BINDING + 'retry = { on = ["timeout"] }'),
    (BINDING + 'retry = { on = ["fail"] }', 3, "binding.a.retry.on[0]", 'must be "failure" or "timeout"', '"failure"', BINDING + "retry = {}"),
    (BINDING + 'retry = { delays = ["1s"], attempts = 2 }', 3, "binding.a.retry.attempts", "2 attempts in all already", "leave attempts out", BINDING + 'retry = { delays = ["1s"] }'),
    (BINDING + "retry = { attempts = 1 }", 3, "binding.a.retry.attempts", "from 2 to 4, not 1", "leave retry out", BINDING + "retry = { attempts = 2 }"),
    (BINDING + "retry = { attempts = 5 }", 3, "binding.a.retry.attempts", "from 2 to 4, not 5", "delays", BINDING + "retry = { attempts = 4 }"),
    (BINDING + 'retry = { attempts = 102, exponential = { base = "1s", max = "2s" } }', 3, "binding.a.retry.attempts", "from 2 to 101", None, BINDING + 'retry = { attempts = 101, exponential = { base = "1s", max = "2s" } }'),
    (BINDING + 'retry = { exponential = { base = "2s", max = "1s" } }', 3, "binding.a.retry.exponential.max", "less than base", None, BINDING + 'retry = { exponential = { base = "2s", max = "2s" } }'),
    (BINDING + 'retry = { exponential = { bas = "2s", max = "3s" } }', 3, "binding.a.retry.exponential.base", "has no base", None, BINDING + 'retry = { exponential = { base = "2s", max = "3s" } }'),
    (BINDING + 'retry = { delays = ["1s"], exponential = { base = "2s", max = "3s" } }', 3, "binding.a.retry.exponential", "exclude each other", "keep one", BINDING + 'retry = { exponential = { base = "2s", max = "3s" } }'),
    (BINDING + 'retry = { exhausted = "held" }', 3, "binding.a.retry.exhausted", 'must be "fail" or "hold"', '"hold"', BINDING + 'retry = { exhausted = "hold" }'),
    (BINDING + 'kind = "standin"', 3, "binding.a.kind", 'must be "run_once" or "standing"', '"standing"', BINDING + 'kind = "standing"'),
    ("[settings]\ncausal_depth = 0", 2, "settings.causal_depth", "from 1 to 100000", None, "[settings]\ncausal_depth = 1"),
    ("[settings]\ncausal_depth = 100_001", 2, "settings.causal_depth", "from 1 to 100000", None, "[settings]\ncausal_depth = 100_000"),
    (BINDING + "continue = true", 3, "binding.a.continue", "continue is for standing work", 'kind = "standing"', BINDING + 'continue = true\nkind = "standing"'),
    (BINDING + 'kind = "run_once"\ncontinue = true', 4, "binding.a.continue", "completed by its handoff", 'kind = "standing"', BINDING + 'kind = "run_once"\ncontinue = false'),
    (BINDING + 'continue = "yes"', 3, "binding.a.continue", "true or false", None, BINDING + "continue = false"),
    (BINDING + "continues = false", 3, "binding.a.continues", "unknown key", 'did you mean "continue"', BINDING + "continue = false"),
    ("[settings]\nquarantine_after = -1", 2, "settings.quarantine_after", "from 0 (never)", None, "[settings]\nquarantine_after = 0"),
    # commands
    ('[binding.a]\ntimeout = "5m"', 1, "binding.a.command", "binding.a has no command", "command = [", BINDING + 'timeout = "5m"'),
    ('[binding.a]\ncomand = ["x"]', 1, "binding.a.command", "has no command (and 1 more fault in this file)", None, BINDING),
    ('[binding.a]\ncommand = "cp a \'b c\'"', 2, "binding.a.command", "must be a list", 'command = ["cp", "a", "b c"]', '[binding.a]\ncommand = ["cp", "a", "b c"]'),
    ('[binding.a]\ncommand = "a | b"', 2, "binding.a.command", "must be a list", '["sh", "-c", "a | b"]', '[binding.a]\ncommand = ["sh", "-c", "a | b"]'),
    ("[binding.a]\ncommand = \"it's\"", 2, "binding.a.command", "must be a list", '["sh", "-c", "it\'s"]', BINDING),
    ("[binding.a]\ncommand = []", 2, "binding.a.command", "is empty", None, BINDING),
    ('[binding.a]\ncommand = [""]', 2, "binding.a.command", "begins with an empty text", None, '[binding.a]\ncommand = ["x", ""]'),
    ('[binding.a]\ncommand = ["x",\n # y\n 3]', 4, "binding.a.command[1]", "text in quotes, not 3", None, '[binding.a]\ncommand = ["x", "3"]'),
    ('[binding.a]\ncommand = ["x", "\\u0000"]', 2, "binding.a.command[1]", "NUL byte", None, '[binding.a]\ncommand = ["x", "\\u0001"]'),
    ("[binding.a]\ncommand = 7", 2, "binding.a.command", "must be a list, not 7", None, BINDING),
    ("[binding.a]\ncommand = x", 2, None, "not TOML", '"x"', BINDING),
    # names and words
    ('[binding.w41]\ncommand = ["x"]', 1, "binding.w41", "reads as the id of a work", None, '[binding.w41x]\ncommand = ["x"]'),
    ('[binding."a b"]\ncommand = ["x"]', 1, 'binding."a b"', "is no name for a binding", None, '[binding.a-b]\ncommand = ["x"]'),
    ('[scope."ops//x"]', 1, 'scope."ops//x"', "is no name for a scope", '"ops/backup"', '[scope."ops/x"]'),
    (BINDING + 'executor = "shel"', 3, "binding.a.executor", 'is unknown: "shel"', '"shell"', BINDING + 'executor = "shell"'),
    (BINDING + 'executor = "agnet"', 3, "binding.a.executor", 'is unknown: "agnet"', '"agent"', BINDING + 'executor = "agent"'),
    (BINDING + 'idle_timeout = "5m"', 3, "binding.a.idle_timeout", "is for agents, and this binding runs as shell", None, BINDING + 'executor = "agent"\nidle_timeout = "5m"'),
    (BINDING + 'executor = "agent"\nidle_timeout = 5', 4, "binding.a.idle_timeout", "with its unit", None, BINDING + 'executor = "claude-code"\nidle_timeout = "5s"'),
    (BINDING + 'on_inject_error = "queue"', 3, "binding.a.on_inject_error", "is for agents", None, BINDING + 'executor = "agent"\non_inject_error = "drop"'),
    (BINDING + 'executor = "agent"\non_inject_error = "retry"', 4, "binding.a.on_inject_error", '"queue" or "drop"', None, BINDING + 'executor = "agent"'),
    (BINDING + 'replay = "saef"', 3, "binding.a.replay", '"never" or "safe"', '"safe"', BINDING + 'replay = "safe"'),
    (BINDING + "replay = True", 3, None, "not TOML", "true, in lower case", BINDING),
    (BINDING + 'cwd = "~/x"', 3, "binding.a.cwd", "~ is not expanded", "whole path", BINDING + 'cwd = "/x"'),
    (BINDING + 'cwd = ""', 3, "binding.a.cwd", "must name a folder", None, BINDING + 'cwd = "."'),
    (BINDING + "env = { A = 1 }", 3, "binding.a.env.A", "text in quotes, not 1", None, BINDING + 'env = { A = "1" }'),
    (BINDING + 'env = { "A-B" = "1" }', 3, "binding.a.env.A-B", "no name for an environment variable", None, BINDING + 'env = { A_B = "1" }'),
    (BINDING + '[binding.a.env]\nX = ""\n"A.B" = ""', 5, 'binding.a.env."A.B"', "no name for an", None, BINDING + '[binding.a.env]\nX = ""'),
    (BINDING + 'env = { TENURE_HOME = "/x" }', 3, "binding.a.env.TENURE_HOME", "set by tenure itself", None, BINDING + 'env = { HOME = "/x" }'),
    (BINDING + 'env = { A = "\\u0000" }', 3, "binding.a.env.A", "NUL byte", None, BINDING + 'env = { A = "" }'),
    # scopes that name a binding
    (BINDING + '[scope.ops]\nbinding = "A"', 4, "scope.ops.binding", 'scope.ops.binding: no binding "A" in this file', 'did you mean "a"?', BINDING + '[scope.ops]\nbinding = "a"'),
    (BINDING + '[scope."ops/x.y"]\nbinding = "zzz"', 4, 'scope."ops/x.y".binding', 'no binding "zzz"', "there are: a", BINDING + '[scope."ops/x.y"]\nbinding = "a"'),
    ('[scope.ops]\nbinding = "a"', 2, "scope.ops.binding", 'no binding "a"', "no bindings", "[scope.ops]"),
    (BINDING + "[scope.ops]\nbinding = 1", 4, "scope.ops.binding", "text in quotes, not 1", None, BINDING + '[scope.ops]\nbinding = "a"'),
    # secrets
    (BINDING + 'secrets = { KEY = "hunter2" }', 3, "binding.a.secrets.KEY", "where the secret lies, never be the secret itself", '"file:/', BINDING + 'secrets = { KEY = "env:KEY" }'),
    (BINDING + "secrets = { KEY = 5 }", 3, "binding.a.secrets.KEY", "must be a text in quotes that says where the secret lies", '"file:/', BINDING + 'secrets = { KEY = "file:/k" }'),
    (BINDING + 'secrets = "hunter2"', 3, "binding.a.secrets", "secrets must be a table", None, BINDING + "secrets = {}"),
    (BINDING + '[binding.a.secrets]\nKEY = "file:run/k"', 4, "binding.a.secrets.KEY", "no file by its whole path", '"file:/', BINDING + '[binding.a.secrets]\nKEY = "file:/run/k"'),
    (BINDING + 'secrets = { KEY = "env:A-B" }', 3, "binding.a.secrets.KEY", "names no variable", '"env:API_KEY"', BINDING + 'secrets = { KEY = "env:A_B" }'),
    (BINDING + '[binding.a.secrets]\nTENURE_X = "env:X"', 4, "binding.a.secrets.TENURE_X", "set by tenure itself", None, BINDING + '[binding.a.secrets]\nX = "env:TENURE_X"'),
    (BINDING + 'secrets = { "A-B" = "env:X" }', 3, "binding.a.secrets.A-B", "no name for an environment variable", None, BINDING + 'secrets = { A_B = "env:X" }'),
    (BINDING + 'env = { K = "1" }\nsecrets = { K = "env:X" }', 4, "binding.a.secrets.K", "K is in env and in secrets", "keep one", BINDING + 'env = { K = "1" }\nsecrets = { L = "env:X" }'),
    (BINDING + 'secret = { K = "env:X" }', 3, "binding.a.secret", "unknown key", '"secrets"', BINDING + "secrets = {}"),
    # sandbox
    (BINDING + "sandbox = true", 3, "binding.a.sandbox", "must be a table, not true", None, BINDING + "sandbox = {}"),
    (BINDING + 'sandbox = { write = ["data"] }', 3, "binding.a.sandbox.write[0]", 'whole path, not "data"', 'begins with "/"', BINDING + 'sandbox = { write = ["/data"] }'),
    (BINDING + 'sandbox = { write = ["/a/../b"] }', 3, "binding.a.sandbox.write[0]", 'without ".."', None, BINDING + 'sandbox = { write = ["/a/..b"] }'),
    (BINDING + 'sandbox = { write = "/data" }', 3, "binding.a.sandbox.write", "must be a list", None, BINDING + 'sandbox = { write = ["/data"] }'),
    (BINDING + "sandbox = { read = [] }", 3, "binding.a.sandbox.read", "no program can start", 'read = ["/"]', BINDING + 'sandbox = { read = ["/usr"] }'),
    (BINDING + 'sandbox = { read = ["/", "/d/"], write = ["/d"] }', 3, "binding.a.sandbox.write", '"/d" is in read and in write', "keep one", BINDING + 'sandbox = { read = ["/", "/d"], write = ["/d/e"] }'),
    (BINDING + 'sandbox = { network = "no" }', 3, "binding.a.sandbox.network", 'true or false, not "no"', None, BINDING + "sandbox = { network = false }"),
    (BINDING + "sandbox = { tmp = 0 }", 3, "binding.a.sandbox.tmp", "true or false, not 0", None, BINDING + "sandbox = { tmp = false }"),
    (BINDING + "sandbox = { writeable = [] }", 3, "binding.a.sandbox.writeable", "unknown key", '"write"', BINDING + "sandbox = { write = [] }"),
    (BINDING + "network = true", 3, "binding.a.network", "unknown key", "[binding.NAME.sandbox]", BINDING + "sandbox = { network = true }"),
    # grants
    (BINDING + '[binding.a.grant]\nwrite = ["/x"]', 4, "binding.a.grant.write", "must be a table", "[binding.a.grant.NAME]", BINDING + "sandbox = {}\n[binding.a.grant.g]\nwrite = ['/x']"),
    (BINDING + '[binding.a.grant.g]\nwrite = ["/x"]', 4, "binding.a.grant.g.write", "the binding has none", "sandbox = {}", BINDING + "sandbox = {}\n[binding.a.grant.g]\nwrite = ['/x']"),
    (BINDING + '[binding.a.grant."a b"]', 3, 'binding.a.grant."a b"', "is no name for a grant", None, BINDING + "[binding.a.grant.a-b]"),
    (BINDING + '[binding.a.grant.g]\ncommand = ["x"]', 4, "binding.a.grant.g.command", "unknown key", "[binding.NAME]", BINDING + "[binding.a.grant.g]"),
    (BINDING + '[binding.a.grant.g]\nenv = { TENURE_X = "1" }', 4, "binding.a.grant.g.env.TENURE_X", "set by tenure itself", None, BINDING + '[binding.a.grant.g]\nenv = { X = "1" }'),
    (BINDING + 'env = { K = "1" }\n[binding.a.grant.g.env]\nK = "2"', 5, "binding.a.grant.g.env.K", "K is in env of the binding too", "keep one", BINDING + '[binding.a.grant.g.env]\nK = "2"'),
    (BINDING + 'secrets = { K = "env:K" }\n[binding.a.grant.g.env]\nK = "2"', 5, "binding.a.grant.g.env.K", "K is in secrets of the binding too", "keep one", BINDING + '[binding.a.grant.g.env]\nK = "2"'),
    (BINDING + '[binding.a.grant.g.env]\nK = "1"\n[binding.a.grant.h.env]\nK = "2"', 6, "binding.a.grant.h.env.K", "something else in grant g", "rename", BINDING + '[binding.a.grant.g.env]\nK = "1"\n[binding.a.grant.h.env]\nK = "1"'),
    (BINDING + '[binding.a.grant.g.env]\nK = "1"\n[binding.a.grant.h.secrets]\nK = "env:K"', 6, "binding.a.grant.h.secrets.K", "something else in grant g", "rename", BINDING + '[binding.a.grant.h.secrets]\nK = "env:K"'),
    (BINDING + '[binding.a.grant.g.secrets]\nK = "hunter2"', 4, "binding.a.grant.g.secrets.K", "never be the secret itself", None, BINDING + '[binding.a.grant.g.secrets]\nK = "env:K"'),
    # sizes
    (BINDING + 'output_max = "64"', 3, "binding.a.output_max", '"64" needs a unit', None, BINDING + 'output_max = "64MiB"'),
    (BINDING + 'output_max = "64M"', 3, "binding.a.output_max", "is no size", '"64MiB" or "64MB"', BINDING + 'output_max = "64MB"'),
    (BINDING + "output_max = 64", 3, "binding.a.output_max", 'with its unit, e.g. "64MiB", or 0 (unbounded), not 64', None, BINDING + "output_max = 0"),
    (BINDING + "output_max = false", 3, "binding.a.output_max", "with its unit", None, BINDING + "output_max = 0"),
    (BINDING + "output_max = 0.0", 3, "binding.a.output_max", "with its unit", None, BINDING + "output_max = 0"),
    (BINDING + "output_max = -1", 3, "binding.a.output_max", "not -1", None, BINDING + "output_max = 0"),
    ('[settings]\noutput_max = "1B"', 2, "settings.output_max", "from 4KiB to 1TiB", None, '[settings]\noutput_max = "4KiB"'),
    ('[settings]\noutput = "1MB"', 2, "settings.output", "unknown key", '"output_max"', '[settings]\noutput_max = "1MB"'),
    # kinds of tables
    ("settings = 3", 1, "settings", "must be a table, not 3", None, "[settings]"),
    ('[[binding]]\ncommand = ["x"]', 1, "binding", "must be a table, not a list", "[binding.NAME]", BINDING),
    ('[binding]\ncommand = ["x"]', 2, "binding.command", "must be a table", "[binding.NAME]", BINDING),
    (BINDING + 'retry = "5m"', 3, "binding.a.retry", "must be a table", None, BINDING + "retry = {}"),
    (BINDING + "timeout = 2020-01-01", 3, "binding.a.timeout", "not a date or time", None, BINDING),
    # no TOML
    ("[settings\nslots = 1", 1, None, "not TOML", None, "[settings]\nslots = 1"),
    ("settings = [1", 1, None, "not TOML", None, ""),
    ('# x\n[binding.a]\ncommand = ["x\n"]', 3, None, "not TOML", None, BINDING),
    ("[settings]\nslots = " + "9" * 5000, 2, None, "too many digits", None, "[settings]\nslots = 9"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "key", "message", "hint", "control"), MISTAKES, ids=[row[3] for row in MISTAKES]
)
def test_a_mistake_gets_one_line_and_the_file_without_it_loads(
    text: str, line: int, key: str | None, message: str, hint: str | None, control: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    error = caught.value

    assert (error.line, error.key) == (line, key)
    assert str(error).startswith(f"tenure.toml:{line}: ")
    assert len(str(error)) < 200
    assert "\n" not in str(error)
    assert message in str(error)
    assert "hunter2" not in f"{error} {error.hint}", "what may be a secret is never shown"
    assert hint is None or hint in str(error.hint)
    read(control)
