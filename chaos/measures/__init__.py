"""What tenure costs on this host: each measure makes its own home and returns plain numbers.

Times depend on the host and its other work; they are printed and kept, never asserted. Rule: design §13.
"""

from __future__ import annotations

from chaos.measures.counting import counts
from chaos.measures.flat import flat
from chaos.measures.host import disk, shims
from chaos.measures.idle import idle
from chaos.measures.jobs import adoption, start_latency, throughput
from chaos.measures.setting import SETTINGS

__all__ = ["SETTINGS", "adoption", "counts", "disk", "flat", "idle", "shims", "start_latency", "throughput"]
