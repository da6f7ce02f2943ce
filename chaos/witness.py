"""The witness: a file outside the home to which jobs write that they started and that they ended.

It knows nothing of tenure's store, so it can contradict it. Each line is one `write` to a descriptor opened with O_APPEND, so
lines of jobs that run at once never mix. Rule: design §9 ("Jobs write run id, epoch and pid …").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from shared.ids import AttemptId, WorkId

OUTPUT = "begun\ndone\n"
"""What every job of a witness prints when it is left alone."""

# $1 the witness, $2 seconds or a FIFO to read a line from, $3 how to end: 0 to 255, or -N for signal N to itself, $4 what else it
# does before it waits, as shell text.
_SCRIPT = """
say() { printf '%s %s %s %s %s\\n' "$1" "$TENURE_WORK" "$TENURE_ATTEMPT" "$TENURE_EPOCH" $$ >>"$witness"; }
witness=$1
say start
echo begun
eval "$4"
if [ -p "$2" ]; then read -r _ <"$2"; elif [ "$2" != 0 ]; then sleep "$2"; fi
echo done
say end
case $3 in -*) kill "$3" $$ ;; esac
exit "$3"
"""


class Mark(StrEnum):
    """What a job says of itself, and what whoever drills saw of its processes."""

    START = "start"
    END = "end"
    CHILD = "child"  # another process of the job began; it is seen until it is gone
    GONE = "gone"  # the process of that pid is no more; without such a line, its end is the last that is known


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the witness.

    Attributes:
        epoch: The one the job was launched under.
        pid: The process that the line is about.
        seq: The last event in the changefeed when it was said (simulation only); None: that is not known.
    """

    mark: Mark
    work_id: WorkId
    attempt_id: AttemptId
    epoch: int
    pid: int
    seq: int | None = None


def job_command(witness: Path, *, wait: float | Path, status: int, body: str = "") -> tuple[str, ...]:
    """A job that says start, prints, waits, prints, says end, and ends as told.

    Args:
        body: Shell text that it runs before it waits.
        wait: Seconds, or a FIFO from which it reads a line.
        status: 0 to 255, or the negative number of the signal it sends itself.
    """
    until = str(wait) if isinstance(wait, Path) else f"{wait:g}"
    return ("/bin/sh", "-c", _SCRIPT, "job", str(witness), until, str(status), body)


class Witness:
    """One witness file and the jobs that write to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def command(self, *, wait: float | Path, status: int, body: str = "") -> tuple[str, ...]:
        """A job that tells this witness; see `job_command`."""
        return job_command(self.path, wait=wait, status=status, body=body)

    def tell(self, mark: Mark, line: Line) -> None:
        """Add what was seen of the process that a line is about, e.g. that it is gone."""
        with self.path.open("a", encoding="ascii") as file:
            file.write(f"{mark} {line.work_id} {line.attempt_id} {line.epoch} {line.pid}\n")

    def lines(self) -> list[Line]:
        """Everything said so far, in the order it was said."""
        return [parse(line) for line in self.path.read_text(encoding="ascii").splitlines()]


def parse(text: str) -> Line:
    """One line of a witness file.

    Raises:
        ValueError: it is none.
    """
    mark, work, attempt, epoch, pid = text.split(" ")
    return Line(Mark(mark), WorkId(work), AttemptId(attempt), int(epoch), int(pid))
