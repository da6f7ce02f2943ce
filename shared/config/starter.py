"""The first `tenure.toml` of a home: it explains itself and does something useful on any host."""

from __future__ import annotations

import json
from collections.abc import Sequence

_TEXT = """\
# The configuration of tenure. After a change:
#
#     tenure apply            checks this file and activates it; a fault is named with its line, and changes nothing
#     tenure apply --check    only checks it
#
# A key that is unknown or written twice is an error. A duration is a text with its unit: "30s", "5m", "1h30m".

[settings]
job_concurrency = 4         # jobs that run at once; 0 = unbounded
concurrency = 4             # agents, and everything that belongs to no pool, at once
lease = "60s"               # how long a worker that cannot be proven dead keeps what it holds; 1s to 1h
quarantine_after = 5        # so many works of one binding in a row that came to nothing, and it waits for you; 0 = never
workers_lost_max = 3        # so many workers that died in a row of the launch of one attempt end it, or, of what runs of a
#                           # binding, make its other works wait for you; 0 = any number
causal_depth = 100          # so often in a row may attempts set each other off, by turns or handoffs
timeout = "1h"              # running time of a job whose binding names none
output_max = "64MiB"        # kept of each output stream of a job, the end always; 0 = unbounded
# approval = ["standing"]   # kinds of work (run_once, standing) whose first start a person approves:   tenure gate list

# A scope is where work belongs. Its limit counts everything in it and below it, besides the limits above.
[scope.ops]
concurrency = 2

# A binding is something that can be run by name:   tenure submit disk --scope ops
# The command is a list, one text per argument; no shell reads it. For a shell: ["sh", "-c", "a | b"].

[binding.disk]              # how full the file systems are:   tenure run --binding disk
command = ["df", "-h"]
timeout = "1m"

[binding.backup]            # a checked copy of tenure's own store
command = @BACKUP@
timeout = "30m"
replay = "safe"             # a second backup does no harm, so one whose outcome is unknown may simply run again

# Everything a binding can say, with what holds when it does not:
#
# [binding.report]
# executor = "shell"
# command = ["./report.sh", "--full"]
# cwd = "reports"           # the folder it starts in, from this file's; else the caller's, or this file's
# env = { MODE = "full" }   # stored in the clear: no secrets
# timeout = "1h"            # else the one in [settings]
# grace = "10s"             # between asking it to stop and killing it
# retry = { delays = ["5m", "10m"], on = ["failure"], exhausted = "fail" }     # else one attempt settles it
#                           # on may list "timeout" too; exhausted = "hold" keeps it for a person; instead of delays:
#                           # attempts = 4, or exponential = { base = "10s", max = "10m" }, drawn at random up to that
# kind = "run_once"         # "standing": it rests until the next input:   tenure submit w41 --input TEXT
# continue = false          # true, of standing work: a handoff is followed by the next attempt at once
# approval = true           # a person approves the first start of each work that takes it:   tenure gate admit w41
# replay = "never"          # "safe": it may run again when nobody can say how it ended
# output_max = "10MB"       # else the one in [settings]
# sandbox = { read = ["/"], write = ["/srv/reports"], network = false, tmp = true }
#                           # what it sees, what it may change there, the host's network, a /tmp of its own;
#                           # sandbox = {} lets it read everything and change nothing
#
# [binding.report.secrets]  # where a worker finds each value when it starts the job; the value is stored nowhere
# API_KEY = "file:/run/secrets/report"     # a file that only its owner may read
# PASSWORD = "env:REPORT_PASSWORD"         # a variable of the worker's environment
#
# [binding.report.grant.publish]           # only for work that asks for it:   tenure submit report --grant publish
# env = { TARGET = "public" }
# secrets = { TOKEN = "env:PUBLISH_TOKEN" }
# write = ["/srv/www"]
#
# [scope."ops/reports"]
# binding = "report"        # for work in this scope, and below it, that names none; a command of its own replaces only
#                           # the binding's, and is never replayed
#
# [[budget]]                # what is used up holds work back until you release it:   tenure budget list
# unit = "turns"            # turns and attempts are counted by tenure, "minutes" by jobs; others as programs report them
# max = 100                 # also 0.5, or "0.5"
# per = "scope"             # "work": each on its own; "all": everything together
# period = "day"            # or "week", both in UTC; "life" without a word
# scope = "ops"             # only work in it and below it, on one count; else each scope has its own
# warn_at = 0.8             # published in the changefeed at that part of max, and again once it is exceeded
"""


def starter_text(tenure: Sequence[str], home: str) -> str:
    """The starter file.

    Args:
        tenure: The running command, program first, by absolute path: a job's PATH does not lead to tenure.
        home: Absolute path of the home that the backup copies.
    """
    backup = [*tenure, "--home", home, "store", "backup"]
    return _TEXT.replace("@BACKUP@", json.dumps(backup, ensure_ascii=False))
