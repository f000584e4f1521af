"""Who gets a turn, who gives way, who is turned away. No threads, no model: the policy alone, on a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.common.messages import Done, EngineMessage, Failed, Fill
from engine.common.request import FillRequest
from engine.server.scheduler import Job, Scheduler
from engine.server.settings import Limits


@dataclass
class Office:
    """A scheduler whose clock stands still and whose replies are kept."""

    limits: Limits = field(default_factory=Limits)
    now: float = 0.0
    replies: dict[tuple[int, int], list[EngineMessage]] = field(default_factory=dict)

    def __post_init__(self):
        self.scheduler = Scheduler(self.limits, clock=lambda: self.now)

    def submit(self, client=1, id=1, document="", priority="interactive", rows=1) -> Job:
        order = Fill(id=id, request=FillRequest(prefix="", suffix=""), document=document, priority=priority)
        kept = self.replies.setdefault((client, id), [])
        job = Job(client=client, order=order, deliver=kept.append, arrived=self.now, touched=self.now, rows=rows)
        self.scheduler.submit(job)
        self.now += 0.001
        return job

    def turn(self) -> list[tuple[int, int]]:
        return [(job.client, job.id) for job in self.scheduler.next_round(0).jobs]

    def codes(self, client=1, id=1) -> list[str]:
        return [reply.code for reply in self.replies[client, id] if isinstance(reply, Failed)]


def test_requests_that_meet_share_a_round():
    office = Office()
    office.submit(client=1)
    office.submit(client=2)
    assert office.turn() == [(1, 1), (2, 1)]


def test_a_full_round_goes_by_turns_among_clients():
    office = Office(Limits(rows=2))
    for id in (1, 2, 3):
        office.submit(client=1, id=id)
    office.submit(client=2, id=1)
    office.submit(client=3, id=1)
    assert office.turn() == [(1, 1), (2, 1)]
    assert office.turn() == [(3, 1), (1, 1)]
    assert office.turn() == [(2, 1), (3, 1)]


def test_one_job_may_be_wider_than_a_round():
    office = Office(Limits(rows=2))
    office.submit(rows=5)
    office.submit(client=2)
    assert office.turn() == [(1, 1)]
    assert office.turn() == [(2, 1)]


def test_who_waits_for_a_reply_gets_no_turn_and_keeps_nobody_from_one():
    office = Office()
    job = office.submit(id=1)
    office.submit(id=2, priority="background")
    assert office.turn() == [(1, 1)]
    office.scheduler.await_reply(job)
    assert office.turn() == [(1, 2)]
    office.scheduler.replied(job, None)
    assert office.turn() == [(1, 1)]


def test_who_waits_for_a_reply_can_be_cancelled():
    office = Office()
    job = office.submit(id=1)
    assert office.turn() == [(1, 1)]
    office.scheduler.await_reply(job)
    assert not office.scheduler.next_round(0).idle
    office.scheduler.cancel(1, 1)
    round_ = office.scheduler.next_round(0)
    assert (round_.abandoned, round_.idle) == ((job,), True)
    office.scheduler.replied(job, None)
    assert office.turn() == []


def test_background_work_waits_for_interactive_work_and_goes_on():
    office = Office()
    office.submit(id=1, priority="background")
    assert office.turn() == [(1, 1)]
    urgent = office.submit(id=2)
    assert office.turn() == [(1, 2)]
    office.scheduler.finish(urgent, Done(id=2))
    assert office.turn() == [(1, 1)]


def test_background_work_does_not_starve():
    office = Office(Limits(starved_after_s=2))
    office.submit(id=1, priority="background")
    office.submit(id=2)
    assert office.turn() == [(1, 2)]
    office.now += 2.1
    assert office.turn() == [(1, 1), (1, 2)]
    assert office.turn() == [(1, 2)]


def test_a_newer_request_for_the_document_supersedes_the_older():
    office = Office()
    office.submit(id=1, document="a.py")
    office.submit(id=2, document="a.py")
    assert office.codes(id=1) == ["superseded"]
    assert office.turn() == [(1, 2)]


def test_requests_for_other_documents_other_clients_or_no_document_stay():
    office = Office()
    office.submit(client=1, id=1, document="a.py")
    office.submit(client=1, id=2, document="b.py")
    office.submit(client=2, id=1, document="a.py")
    office.submit(client=1, id=3)
    office.submit(client=1, id=4)
    assert set(office.turn()) == {(1, 1), (1, 2), (1, 3), (1, 4), (2, 1)}


def test_a_started_job_that_ended_is_handed_to_the_model_thread_to_close():
    office = Office()
    started = office.submit(id=1)
    office.turn()
    office.submit(id=2)
    office.scheduler.cancel(1, 1)
    office.scheduler.cancel(1, 2)
    last = office.scheduler.next_round(0)
    assert last.abandoned == (started,)
    assert last.jobs == ()
    assert office.codes(id=1) == office.codes(id=2) == ["cancelled"]


def test_a_result_that_comes_after_the_end_is_nobodys():
    office = Office()
    job = office.submit()
    office.scheduler.cancel(1, 1)
    assert not office.scheduler.finish(job, Done(id=1))
    assert len(office.replies[1, 1]) == 1


def test_cancelling_an_unknown_id_or_anothers_changes_nothing():
    office = Office()
    office.submit(client=1, id=1)
    office.scheduler.cancel(1, 99)
    office.scheduler.cancel(2, 1)
    assert office.turn() == [(1, 1)]


def test_a_client_that_has_gone_takes_its_work_along():
    office = Office()
    office.submit(client=1, id=1)
    office.submit(client=1, id=2)
    office.submit(client=2, id=1)
    office.scheduler.drop(1)
    assert office.turn() == [(2, 1)]


def test_the_queue_is_bounded_for_each_client_and_for_all():
    office = Office(Limits(jobs=3, jobs_per_client=2))
    for id in (1, 2, 3):
        office.submit(client=1, id=id)
    assert office.codes(client=1, id=3) == ["busy"]
    office.submit(client=2, id=1)
    office.submit(client=2, id=2)
    assert office.codes(client=2, id=2) == ["busy"]
    assert len(office.turn()) == 3


def test_a_newer_request_for_a_document_fits_where_the_older_was():
    office = Office(Limits(jobs_per_client=1))
    office.submit(id=1, document="a.py")
    office.submit(id=2, document="a.py")
    assert office.codes(id=1) == ["superseded"]
    assert office.codes(id=2) == []


def test_a_refused_request_supersedes_nothing():
    office = Office()
    office.submit(id=1, document="a.py")
    office.submit(id=1, document="a.py")
    assert office.codes() == ["bad_request"]
    assert office.turn() == [(1, 1)]


def test_after_the_close_everything_is_answered_and_nothing_taken():
    office = Office()
    office.submit(id=1)
    office.scheduler.close()
    office.submit(id=2)
    assert office.codes(id=1) == office.codes(id=2) == ["stopping"]
    assert office.scheduler.next_round(0).closed


def test_counts_tell_waiting_from_running_and_failures_add_up():
    office = Office(Limits(rows=1))
    office.submit(id=1)
    office.submit(id=2)
    office.turn()
    assert office.scheduler.counts() == (1, 1)
    office.scheduler.fail_all("internal", "Gone.")
    assert office.scheduler.counts() == (0, 0)
    assert office.scheduler.failures() == {"internal": 2}
