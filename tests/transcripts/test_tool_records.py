"""What a review shows of profiles and memory checks, read off the records that the tools write."""

from __future__ import annotations

from tools.memcheck.records import MemoryCheck, MemoryFinding
from tools.profiling.records import Limit, Profile
from tools.reports import MemoryReport, ProfileReport
from transcripts.records import RecordView


def test_a_profile_is_shown_by_what_limits():
    profile = Profile(method="cupti", seconds=1.0, most_seconds=9.0, limit=Limit(code="small_grid"))
    view = RecordView.of(ProfileReport(kernel="k3", profile=profile).model_dump(mode="json"))
    assert (view.kernel, view.outcome) == ("k3", "profiled: small grid")
    bare = profile.model_copy(update={"limit": None})
    assert RecordView.of(ProfileReport(kernel="k3", profile=bare).model_dump(mode="json")).outcome == "profiled"


def test_a_memory_check_is_shown_with_its_findings():
    finding = MemoryFinding(check="racecheck", kind="race", detail="write and read", file="cuda_sources", line=12)
    memory = MemoryCheck(size="small", seconds=1.0, most_seconds=9.0, findings=[finding])
    view = RecordView.of(MemoryReport(kernel="k3", memory=memory).model_dump(mode="json"))
    assert view.outcome == "memory checked: 1 finding"
    assert [f.summary for f in view.findings()] == ["race at cuda_sources:12: write and read"]
    clean = memory.model_copy(update={"findings": []})
    view = RecordView.of(MemoryReport(kernel="k3", memory=clean).model_dump(mode="json"))
    assert (view.outcome, list(view.findings())) == ("memory checked: 0 findings", [])
