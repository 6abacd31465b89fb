use serde_json::value::RawValue;

use super::*;
use crate::clients::{ClientId, Secret};
use crate::deliveries::{Delivery, DeliveryId, EventType, Progress, SensorRef};
use crate::sensors::{Generation, SensorId};

fn at(seconds: i128) -> Timestamp {
    Timestamp::from_nanoseconds(seconds * 1_000_000_000)
}

fn record(progress: Progress, status: Status) -> DeliveryRecord {
    let client = ClientId::new("c").unwrap();
    DeliveryRecord {
        delivery: Delivery {
            id: DeliveryId::new(&client, at(1), 7, "s"),
            event_type: EventType::StateChanged,
            sequence: 7,
            number: 5,
            occurred_at: at(1),
            sensor: Some(SensorRef {
                id: SensorId::new("s").unwrap(),
                address: String::new(),
                generation: Generation::new("g").unwrap(),
            }),
            data: RawValue::from_string("{}".to_owned()).unwrap(),
        },
        status,
        progress,
        attempts: Vec::new(),
        updated: at(1),
    }
}

fn context(mode: Mode, state: ClientState) -> DeliveryContext {
    let client = Client {
        id: ClientId::new("c").unwrap(),
        name: "C".to_owned(),
        url: "https://c.example/".to_owned(),
        mode,
        state,
        circuit: Circuit::default(),
        version: crate::store::Version(1),
        created: at(0),
        updated: at(0),
    };
    let secrets = Secrets {
        current: Secret::random(),
        previous: None,
        requested: None,
    };
    DeliveryContext {
        record: Some(record(Progress::default(), Status::Pending)),
        client: Some((client, secrets)),
        linked: true,
        newest: Some(5),
        generation: Generation::new("g").ok(),
        deferred: 0,
        oldest_deferred: None,
        chain_version: 0,
    }
}

fn enabled(mode: Mode) -> DeliveryContext {
    context(mode, ClientState::Enabled)
}

fn disabled(mode: Mode) -> DeliveryContext {
    let state = ClientState::Disabled {
        reason: "requested".to_owned(),
        since: at(0),
    };
    context(mode, state)
}

fn with(context: DeliveryContext, progress: Progress) -> DeliveryContext {
    let status = match progress.waiting {
        Some(Waiting::Held) => Status::Held,
        _ => Status::Failed,
    };
    DeliveryContext {
        record: Some(record(progress, status)),
        ..context
    }
}

/// The message of the record, in a later round if requested.
fn message(context: &DeliveryContext, later: u32, manual: bool) -> DeliveryMessage {
    let message = match &context.record {
        Some(record) => record.message(),
        None => DeliveryMessage::first(&record(Progress::default(), Status::Pending).delivery),
    };
    DeliveryMessage {
        round: message.round + later,
        manual,
        ..message
    }
}

/// The next step in one word.
fn decided(context: &DeliveryContext, message: &DeliveryMessage) -> String {
    match next_step(context, message, at(100), &Policy::default()) {
        NextStep::Send(..) => "send".to_owned(),
        NextStep::Probe(..) => "probe".to_owned(),
        NextStep::Wait(until) => format!("wait {}", until.nanoseconds() / 1_000_000_000),
        NextStep::InProgress(_) => "in progress".to_owned(),
        NextStep::Settle(status) => status.to_string(),
        NextStep::Hold => "hold".to_owned(),
        NextStep::WaitBehind => "behind".to_owned(),
        NextStep::DeadLetter => "dead letter".to_owned(),
        NextStep::Drop(_) => "drop".to_owned(),
        NextStep::Unknown => "unknown".to_owned(),
    }
}

#[test]
fn the_next_step_depends_on_the_current_context() {
    let (latest, every) = (|| enabled(Mode::Latest), || enabled(Mode::Every));
    let superseded = |context: DeliveryContext| DeliveryContext {
        newest: Some(6),
        ..context
    };
    let unlinked = |context: DeliveryContext| DeliveryContext {
        linked: false,
        ..context
    };
    let registered_again = |context: DeliveryContext| DeliveryContext {
        generation: Generation::new("h").ok(),
        ..context
    };
    let deleted = |context: DeliveryContext| DeliveryContext {
        client: None,
        ..context
    };
    let unknown = |context: DeliveryContext| DeliveryContext {
        record: None,
        ..context
    };
    for (context, later, manual, expected) in [
        (latest(), 0, false, "send"),
        (every(), 0, false, "send"),
        (unknown(latest()), 0, false, "unknown"),
        (latest(), 2, true, "unknown"),
        (deleted(latest()), 0, false, "skipped"),
        (unlinked(latest()), 0, false, "skipped"),
        (unlinked(disabled(Mode::Every)), 0, false, "skipped"),
        (registered_again(every()), 0, false, "skipped"),
        (registered_again(every()), 1, true, "skipped"),
        (superseded(latest()), 0, false, "superseded"),
        // Released when its client was enabled: superseded like any other.
        (superseded(latest()), 1, false, "superseded"),
        // Requested by hand.
        (superseded(latest()), 1, true, "send"),
        (superseded(every()), 0, false, "send"),
        (disabled(Mode::Every), 0, false, "hold"),
        (disabled(Mode::Latest), 1, true, "hold"),
    ] {
        let message = message(&context, later, manual);
        assert_eq!(decided(&context, &message), expected, "{context:?}");
    }
}

#[test]
fn a_message_that_changes_nothing_is_dropped() {
    let delivered = |round| Progress {
        delivered_round: Some(round),
        round,
        ..Progress::default()
    };
    let waiting = |waiting, until| Progress {
        waiting: Some(waiting),
        not_before: Some(at(until)),
        begun: 1,
        ..Progress::default()
    };
    let every = || enabled(Mode::Every);
    for (context, later, manual, expected) in [
        (with(every(), delivered(0)), 0, false, "drop"),
        (with(every(), delivered(0)), 1, true, "send"),
        // The attempt that held it delivered it before it was released.
        (with(every(), delivered(0)), 1, false, "drop"),
        (
            with(every(), waiting(Waiting::Due, 101)),
            0,
            false,
            "wait 101",
        ),
        (with(every(), waiting(Waiting::Due, 100)), 0, false, "send"),
        (with(every(), waiting(Waiting::Due, 101)), 1, true, "send"),
        (
            with(disabled(Mode::Every), waiting(Waiting::Held, 0)),
            0,
            false,
            "drop",
        ),
        (with(every(), waiting(Waiting::Held, 0)), 0, false, "send"),
    ] {
        let message = message(&context, later, manual);
        assert_eq!(decided(&context, &message), expected, "{context:?}");
    }
    let old = message(&every(), 0, false);
    let due = Progress {
        queued: 1,
        ..waiting(Waiting::Due, 101)
    };
    assert_eq!(decided(&with(every(), due), &old), "drop");
    let context = with(
        every(),
        Progress {
            round: 1,
            ..Progress::default()
        },
    );
    assert_eq!(decided(&context, &old), "drop");
    for status in [Status::Dead, Status::Skipped, Status::Superseded] {
        let context = DeliveryContext {
            record: Some(record(Progress::default(), status)),
            ..every()
        };
        assert_eq!(decided(&context, &message(&context, 0, false)), "drop");
        // A dead letter that is moved back starts a new round.
        assert_eq!(decided(&context, &message(&context, 1, true)), "send");
    }
}

#[test]
fn later_deliveries_wait_behind_a_deferred_one_in_mode_every() {
    let deferred = |mode, order: &str, waiting| {
        let progress = Progress {
            waiting,
            ..Progress::default()
        };
        DeliveryContext {
            deferred: 1,
            oldest_deferred: Some(order.to_owned()),
            ..with(enabled(mode), progress)
        }
    };
    let own = record(Progress::default(), Status::Pending)
        .delivery
        .id
        .order();
    for (context, manual, expected) in [
        (deferred(Mode::Every, "0", None), false, "behind"),
        (
            deferred(Mode::Every, "0", Some(Waiting::Behind)),
            false,
            "drop",
        ),
        (deferred(Mode::Every, &own, None), false, "send"),
        (deferred(Mode::Every, "z", None), false, "send"),
        (deferred(Mode::Every, "0", None), true, "send"),
        (deferred(Mode::Latest, "0", None), false, "send"),
    ] {
        let message = message(&context, u32::from(manual), manual);
        assert_eq!(decided(&context, &message), expected, "{context:?}");
    }
}

#[test]
fn an_open_circuit_and_waiting_cost_no_attempt() {
    let with_circuit = |failures, open: Option<i128>, progress| {
        let mut context = with(enabled(Mode::Latest), progress);
        if let Some((client, _)) = &mut context.client {
            client.circuit = Circuit {
                failures,
                open_until: open.map(at),
                ..Circuit::default()
            };
        }
        context
    };
    let begun = |begun| Progress {
        begun,
        ..Progress::default()
    };
    let claimed = |until| Progress {
        claimed_until: Some(at(until)),
        ..begun(1)
    };
    let not_before = Progress {
        not_before: Some(at(130)),
        ..begun(1)
    };
    for (context, later, manual, expected) in [
        (with_circuit(4, None, begun(0)), 0, false, "send"),
        (with_circuit(5, Some(101), begun(0)), 0, false, "wait 101"),
        (with_circuit(5, Some(101), begun(9)), 0, false, "wait 101"),
        (
            with_circuit(5, Some(101), begun(10)),
            0,
            false,
            "dead letter",
        ),
        (with_circuit(0, None, begun(10)), 0, false, "dead letter"),
        (with_circuit(5, Some(100), begun(1)), 0, false, "probe"),
        (with_circuit(9, None, begun(1)), 0, false, "probe"),
        // Closed by a success that was recorded in between.
        (with_circuit(0, Some(101), begun(1)), 0, false, "send"),
        // A redelivery by hand probes at once, and has all its attempts.
        (with_circuit(5, Some(101), begun(10)), 1, true, "probe"),
        (with_circuit(4, Some(101), begun(10)), 1, true, "send"),
        (with_circuit(5, Some(101), begun(1)), 0, true, "wait 101"),
        (with_circuit(0, None, not_before), 0, false, "wait 130"),
        (with_circuit(0, None, claimed(101)), 0, false, "in progress"),
        (with_circuit(0, None, claimed(100)), 0, false, "send"),
    ] {
        let message = message(&context, later, manual);
        assert_eq!(decided(&context, &message), expected, "{context:?}");
    }
}

#[test]
fn others_wait_twice_as_long_as_a_probe_at_most() {
    let mut context = enabled(Mode::Latest);
    for (since, expected) in [
        (100, "wait 101"),
        (99, "wait 101"),
        (96, "wait 104"),
        (90, "wait 105"),
    ] {
        // Also if the probe is a slow attempt, before anything failed.
        for failures in [0, 5] {
            if let Some((client, _)) = &mut context.client {
                client.circuit = Circuit {
                    failures,
                    open_until: Some(at(105)),
                    probing_since: Some(at(since)),
                    failing_since: None,
                };
            }
            // One of many redeliveries by hand is the probe.
            for manual in [false, true] {
                let message = message(&context, u32::from(manual), manual);
                assert_eq!(decided(&context, &message), expected, "{manual}");
            }
        }
    }
}

/// The process that made the slow attempt has ended.
#[test]
fn a_slow_attempt_without_a_result_is_followed_by_another_probe() {
    let mut context = enabled(Mode::Latest);
    if let Some((client, _)) = &mut context.client {
        client.circuit = Circuit {
            open_until: Some(at(100)),
            probing_since: Some(at(85)),
            ..Circuit::default()
        };
    }
    assert_eq!(decided(&context, &message(&context, 0, false)), "probe");
    assert_eq!(decided(&context, &message(&context, 1, true)), "probe");
}

#[test]
fn a_test_needs_no_link() {
    let mut context = DeliveryContext {
        linked: false,
        generation: None,
        ..enabled(Mode::Every)
    };
    if let Some(record) = &mut context.record {
        record.delivery.sensor = None;
    }
    assert_eq!(decided(&context, &message(&context, 0, false)), "send");
}

fn response(status: u16, retry_after: Option<u64>) -> Result<HttpResponse, PostError> {
    Ok(HttpResponse {
        status,
        retry_after: retry_after.map(Duration::from_secs),
    })
}

#[test]
fn outcomes_follow_the_response() {
    let policy = Policy::default();
    let again = |seconds| AttemptOutcome::RetryAfter(Duration::from_secs(seconds));
    let timeout = || Err(PostError::Timeout(Duration::from_secs(10)));
    let refused = || Err(PostError::Failed("connection refused".to_owned()));
    for (outcome, number, expected) in [
        (response(200, None), 1, AttemptOutcome::Delivered),
        (response(204, None), 10, AttemptOutcome::Delivered),
        (response(299, None), 1, AttemptOutcome::Delivered),
        (response(410, None), 1, AttemptOutcome::Gone),
        (response(410, None), 10, AttemptOutcome::Gone),
        (response(301, None), 1, again(60)),
        (response(400, None), 1, again(60)),
        (response(404, None), 2, again(120)),
        (response(500, Some(3000)), 1, again(60)),
        (response(429, Some(30)), 1, again(60)),
        (response(429, Some(300)), 1, again(300)),
        (response(503, Some(300)), 3, again(300)),
        (response(503, Some(86_400)), 1, again(3600)),
        (response(429, None), 9, again(4 * 3600)),
        (timeout(), 1, again(60)),
        (refused(), 9, again(4 * 3600)),
        (response(500, None), 10, AttemptOutcome::Dead),
        (response(429, Some(5)), 10, AttemptOutcome::Dead),
        (timeout(), 11, AttemptOutcome::Dead),
    ] {
        let found = attempt_outcome(&outcome, number, 0.0, &policy);
        assert_eq!(found, expected, "{outcome:?}");
    }
}

#[test]
fn a_circuit_opens_after_failures_or_one_timeout_and_longer_each_time() {
    let policy = Policy::default();
    let seconds_of = |outcome: &Result<HttpResponse, PostError>, before, is_probe| {
        let (weight, open) = circuit_after_failure(outcome, before, is_probe, &policy);
        (weight, open.map(|open| open.as_secs()))
    };
    let seconds = |outcome: &_, before| seconds_of(outcome, before, false);
    let failed = response(500, None);
    assert_eq!(seconds(&failed, 0), (1, None));
    assert_eq!(seconds(&failed, 3), (1, None));
    assert_eq!(seconds(&failed, 4), (1, Some(30)));
    assert_eq!(seconds(&failed, 5), (1, Some(60)));
    assert_eq!(seconds(&failed, 8), (1, Some(480)));
    assert_eq!(seconds(&failed, 9), (1, Some(600)));
    assert_eq!(seconds(&failed, u32::MAX), (1, Some(600)));
    let timeout = Err(PostError::Timeout(Duration::from_secs(10)));
    assert_eq!(seconds(&timeout, 0), (5, Some(30)));
    assert_eq!(seconds(&timeout, 5), (1, Some(60)));
    // A probe that fails, also one that was a slow attempt before.
    assert_eq!(seconds_of(&failed, 0, true), (5, Some(30)));
    assert_eq!(seconds_of(&failed, 5, true), (1, Some(60)));
}
