"""`agent doctor`: what this machine can do, and what to do about what it can't."""

from __future__ import annotations

import typer

from agent.cli.errors import FOUND, UNUSABLE, told


def doctor() -> None:
    """Say what this machine can do, and what to do about what it can't. Exits 2 if nothing can run here."""
    with told(kept=False):
        from agent.machine import examine

        usable = True
        for check in examine():
            mark = "ok" if check.ok else "missing" if check.needed else "note"
            print(f"{mark:8}{check.name}: {check.found}")
            if not check.ok and check.advice:
                print(f"{'':8}  → {check.advice}")
            usable = usable and (check.ok or not check.needed)
        raise typer.Exit(FOUND if usable else UNUSABLE)
