#!/bin/sh
# The smallest agent: waits for its first message, says what it did, and ends. Speaks docs/agent-protocol.md.
# As `executor = "agent"` with `command = ["sh", "agent.sh"]`.
read -r start
case $start in
*'"type":"start"'*) ;;
*)
    echo '{"type": "result", "outcome": "failed", "summary": "no start", "permanent": true}'
    exit 1
    ;;
esac
echo '{"type": "log", "text": "begun"}'
echo '{"type": "usage", "units": {"minutes": 1}}'
echo '{"type": "turn", "status": "done", "comment": "nothing left to do"}'
echo '{"type": "result", "outcome": "completed", "summary": "all done", "artifacts": ["report.txt"]}'
