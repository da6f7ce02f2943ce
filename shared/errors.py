"""The whole error tree of tenure; the class says what a caller may do next, the attributes carry the facts.

Every class survives pickling (it crosses process borders in drills and in the supervisor), so each passes the facts it was
built from to `Exception.__init__` and rebuilds its message in `__str__`.

Rule: design §11 (one tree), §12 (exit codes).
"""

from __future__ import annotations


class TenureError(Exception):
    """Base of all errors that tenure raises on purpose; nothing raises this class itself.

    Attributes:
        exit_code: What a command exits with when this error ends it (1 refused, 2 bad input, 3 store or home unusable).
        code: Stable word for programs (`--json`).
        hint: What to do next, one line, or None when the message says it all.
        pause_ms: How long a coordinator or worker waits before its next step when this ended one; None: it must exit.
    """

    exit_code: int = 1
    code: str = "failed"
    pause_ms: int | None = None

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))


def _rebuild(kind: type[TenureError], args: tuple[object, ...], facts: dict[str, object]) -> TenureError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class RefusedError(TenureError):
    """State says no; repeating the same call cannot help."""

    code = "refused"


class NotFoundError(RefusedError):
    """The named thing does not exist in this home."""

    code = "not_found"


class UnreadableError(RefusedError):
    """A row of the store says nothing that this version understands: somebody wrote into it, or the disk did.

    Lists leave such a row out; a process that comes upon one where it needs it puts that off and goes on.

    Attributes:
        table, key, column: Which; never what it holds.
    """

    code = "unreadable"
    pause_ms = 1_000

    def __init__(self, table: str, key: str, column: str) -> None:
        self.table = table
        self.key = key
        self.column = column
        super().__init__(
            f"the store's row {key} of {table} cannot be read: {column}", hint="`tenure doctor` says what to do"
        )


class KeyReusedError(RefusedError):
    """A key was given that has been accepted with other content.

    Attributes:
        key: The key.
        accepted: What was accepted under it: a Work, or an event.
    """

    code = "key_reused"

    def __init__(self, key: str, accepted: str) -> None:
        self.key = key
        self.accepted = accepted
        super().__init__(f"the key {key!r} belongs to {accepted}, which was handed in with other content")
        self.args = (key, accepted)


class ChainTooLongError(RefusedError):
    """An attempt asks for something that would make its chain of causes longer than it may be; nothing of it is kept.

    Attributes:
        attempt_id: The attempt that asks.
        depth: What it asked for would have had; `depth_max`: the last one that is allowed.
    """

    code = "chain_too_long"

    def __init__(self, attempt_id: str, depth: int, depth_max: int) -> None:
        self.attempt_id = attempt_id
        self.depth = depth
        self.depth_max = depth_max
        super().__init__(
            f"what {attempt_id} asks for would be link {depth} of a chain that may have {depth_max}",
            hint=f"`tenure attempt show {attempt_id}`; the limit is causal_depth",
        )
        self.args = (attempt_id, depth, depth_max)


class DeclarationError(RefusedError):
    """What a running program declared of itself is no declaration; nothing of it is kept, and the program goes on."""

    code = "declaration_invalid"


class LeaseLostError(RefusedError):
    """The caller no longer holds the attempt: another epoch, an expired, revoked or ended lease.

    Attributes:
        attempt_id, epoch_held: What the caller believed it held.
        epoch_current: The attempt's epoch now; None when the attempt does not exist.
        has_ended: It ended meanwhile (a cancel, say): whoever ended it has ordered its stop.
    """

    code = "lease_lost"

    def __init__(
        self,
        attempt_id: str,
        epoch_held: int,
        epoch_current: int | None,
        reason: str = "",
        *,
        has_ended: bool = False,
    ) -> None:
        self.attempt_id = attempt_id
        self.epoch_held = epoch_held
        self.epoch_current = epoch_current
        self.has_ended = has_ended
        super().__init__(
            f"lease of {attempt_id} at epoch {epoch_held} is lost"
            f" (current epoch {epoch_current}{', ' + reason if reason else ''})"
        )


class LeadershipLostError(RefusedError):
    """Another coordinator leads, or the leader row is not live: stop writing and stand by.

    Attributes:
        generation_held: The generation the caller wrote with.
        generation_current: The stored one; None when nobody ever led.
    """

    code = "leadership_lost"

    def __init__(self, generation_held: int, generation_current: int | None) -> None:
        self.generation_held = generation_held
        self.generation_current = generation_current
        super().__init__(f"generation {generation_held} no longer leads (current generation {generation_current})")


class StoreBusyError(TenureError):
    """Nothing was written: the store's queue was held for too long; repeat the whole transaction in the next step."""

    code = "store_busy"
    pause_ms = 50


class StoreUnavailableError(TenureError):
    """The store or home cannot be used.

    Attributes:
        code: `corrupt`, `schema_newer`, `schema_older`, `network_filesystem`, `store_replaced`, `home_moved`,
            `not_a_home`, `disk_full`, `io_error`, `store_regressed`, `time_namespace`, `library`.
    """

    exit_code = 3

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, code=code)
        self.args = (code, message)
        if code == "disk_full":
            self.pause_ms = 1_000  # nothing was written, and it goes on by itself once there is space


class IndeterminateError(TenureError):
    """COMMIT was sent and its answer is unknown: re-read by key (attempt and epoch, claim id) before doing anything."""

    code = "indeterminate"
    pause_ms = 50


class NotWrittenError(TenureError):
    """A commit whose answer was unknown turned out not to be in the store: nothing was written, and the same again may succeed."""

    code = "not_written"
    pause_ms = 50


class FenceViolationError(TenureError):
    """The schema's second defence refused a write that our own code should never have sent: a bug; never retried."""

    code = "fence_violation"


class ConfigError(TenureError):
    """A file or option given is wrong; nothing was created or changed.

    Attributes:
        source: File (or option) the fault is in.
        line: 1-based line in it; None when it has no lines.
        key: The dotted key; None when the fault is not about one key.
    """

    exit_code = 2
    code = "config"

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        where = "" if source is None else f"{source}:{line}: " if line is not None else f"{source}: "
        super().__init__(where + message, hint=hint)
        self.source = source
        self.line = line
        self.key = key


class UsageError(ConfigError):
    """The command line is wrong; nothing was created."""

    code = "usage"


class UnsupportedError(TenureError):
    """This build or host cannot do what was asked, and says so instead of approximating it."""

    code = "unsupported"


class OperationError(TenureError):
    """An executor could not do what it was asked. Its code and message are shown as they are: they hold nothing secret."""

    code = "operation_failed"


class SecretUnavailableError(TenureError):
    """A secret could not be read where its reference says; the job it is for must not be started.

    Attributes:
        variable: The job's variable that it is for; None when the caller named none.
        kind: `file` or `env`.
        reason: Why, never with anything of the value.
    """

    code = "run_environment_unavailable"

    def __init__(self, variable: str | None, kind: str, reason: str) -> None:
        subject = "a secret" if variable is None else f"secret {variable}"
        super().__init__(f"{subject} ({kind}): {reason}")
        self.args = (variable, kind, reason)
        self.variable = variable
        self.kind = kind
        self.reason = reason
