"""`python -m tools.probe.program REQUEST REPLY`: the same answers from a process of its own, for instruments that start
the program they look at."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools.probe.answer import answer
from tools.probe.child import prepare, start_device
from tools.worker.poison import Poison


def main(request: Path, reply: Path) -> None:
    """Read target and arguments from one file, write the answer to the other."""
    args = json.loads(request.read_text(encoding="utf-8", errors="surrogatepass"))
    prepare()
    guard = Poison(args["device"], None)
    start_device(args["device"])
    found = answer(args["target"], args, guard)
    reply.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
