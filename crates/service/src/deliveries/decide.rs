//! Decisions before and after an attempt to deliver. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::delays::Delays;
use super::delivery::{Delivery, Status};
use super::ports::{DeliveryContext, HttpResponse, PostError};
use crate::clients::{Circuit, Client, ClientState, Mode, Secrets};

/// Receives that the queues allow beyond the attempts of a delivery. Nothing is sent in them: if the last attempt is
/// interrupted, one of them records that the delivery is dead before the queue moves it to the dead-letter queue.
pub const SPARE_RECEIVES: u32 = 2;
/// Unrecorded attempts that are recorded at most, should a queue deliver a message far too often.
const MAX_UNRECORDED: u32 = 20;

/// Rules for attempts and circuits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Attempts per round. The queue moves a message to its dead-letter queue after [`SPARE_RECEIVES`] more.
    pub max_attempts: u32,
    /// Delays between attempts.
    pub delays: Delays,
    /// Consecutive failures that open the circuit of a client. A single timeout opens it.
    pub open_after: u32,
    /// Time for which a circuit stays open at first.
    pub open_first: Duration,
    /// Longest time for which a circuit stays open.
    pub open_longest: Duration,
    /// Time reserved for the single probe of an expired circuit.
    pub probe: Duration,
    /// Longest `Retry-After` that is honoured.
    pub retry_after_longest: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            max_attempts: 10,
            delays: Delays::default(),
            open_after: 5,
            open_first: Duration::from_secs(30),
            open_longest: Duration::from_secs(600),
            probe: Duration::from_secs(15),
            retry_after_longest: Duration::from_secs(3600),
        }
    }
}

/// Next step of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep<'a> {
    /// Send the request.
    Send(&'a Client, &'a Secrets),
    /// Send the request if the probe of the circuit, which expired at this time, can be claimed.
    Probe(&'a Client, &'a Secrets, Option<Timestamp>),
    /// Wait until this time: the circuit is open.
    Wait(Timestamp),
    /// Record this final status without sending.
    Settle(Status),
    /// Move it to the dead-letter queue: all attempts are used up.
    DeadLetter,
    /// Nothing: it was delivered already.
    Nothing,
}

/// Decides the next step before the attempt with this number, counted from 1.
///
/// The last attempt is made even if the circuit is open: every delivery gets a final attempt.
pub fn next_step<'a>(
    context: &'a DeliveryContext,
    delivery: &Delivery,
    number: u32,
    now: Timestamp,
    policy: &Policy,
) -> NextStep<'a> {
    // A released delivery repeats the round before it. The attempt that held it may have found the client
    // enabled and delivered it.
    let owed = delivery.round.saturating_sub(delivery.released.into());
    if context.delivered_round.is_some_and(|round| round >= owed) {
        return NextStep::Nothing;
    }
    let Some((client, secrets)) = &context.client else {
        return NextStep::Settle(Status::Skipped);
    };
    if delivery.sensor.is_some() && !context.linked {
        return NextStep::Settle(Status::Skipped);
    }
    let superseded = context
        .newest
        .is_some_and(|newest| newest > delivery.number);
    // A redelivery is requested explicitly, so it is never superseded.
    if client.mode == Mode::Latest && superseded && delivery.round == 0 {
        return NextStep::Settle(Status::Superseded);
    }
    if client.state != ClientState::Enabled && !delivery.released {
        return NextStep::Settle(Status::Held);
    }
    if number > policy.max_attempts {
        return NextStep::DeadLetter;
    }
    let Circuit {
        failures,
        open_until,
    } = client.circuit;
    if failures < policy.open_after || number == policy.max_attempts {
        return NextStep::Send(client, secrets);
    }
    match open_until {
        Some(until) if until > now => NextStep::Wait(until),
        _ => NextStep::Probe(client, secrets, open_until),
    }
}

/// Returns the attempts before this one that have no record, because the function was interrupted or could not
/// write. The endpoint may have received their requests.
pub fn unrecorded_attempts(
    context: &DeliveryContext,
    number: u32,
    policy: &Policy,
) -> RangeInclusive<u32> {
    let last = number.saturating_sub(1).min(policy.max_attempts);
    let first = context.last_attempt.saturating_add(1);
    first.max(last.saturating_sub(MAX_UNRECORDED))..=last
}

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The client received it.
    Delivered,
    /// The endpoint is gone: the client is disabled and the delivery held.
    Gone,
    /// Attempt again after this time.
    RetryAfter(Duration),
    /// The last attempt failed.
    Dead,
}

/// Decides the outcome of an attempt. `random` is in 0..1.
pub fn attempt_outcome(
    outcome: &Result<HttpResponse, PostError>,
    number: u32,
    random: f64,
    policy: &Policy,
) -> AttemptOutcome {
    match outcome {
        Ok(response) if (200..300).contains(&response.status) => return AttemptOutcome::Delivered,
        Ok(response) if response.status == 410 => return AttemptOutcome::Gone,
        _ if number >= policy.max_attempts => return AttemptOutcome::Dead,
        _ => {}
    }
    let delay = policy.delays.after(number, random);
    let asked = match outcome {
        Ok(response) if matches!(response.status, 429 | 503) => response.retry_after,
        _ => None,
    };
    let asked = asked.unwrap_or_default().min(policy.retry_after_longest);
    AttemptOutcome::RetryAfter(delay.max(asked))
}

/// Returns the weight of a failure and the time for which it opens the circuit; `None` if the circuit stays closed.
///
/// A timeout weighs enough to open the circuit at once: each further request would wait for the whole timeout.
pub fn circuit_after_failure(
    outcome: &Result<HttpResponse, PostError>,
    failures_before: u32,
    policy: &Policy,
) -> (u32, Option<Duration>) {
    let weight = match outcome {
        Err(PostError::Timeout(_)) => policy.open_after.saturating_sub(failures_before).max(1),
        _ => 1,
    };
    let failures = failures_before.saturating_add(weight);
    let openings = match failures.checked_sub(policy.open_after) {
        None => return (weight, None),
        Some(openings) => openings,
    };
    let doubled = 1_u32.checked_shl(openings).unwrap_or(u32::MAX);
    let open = policy.open_first.saturating_mul(doubled);
    (weight, Some(open.min(policy.open_longest)))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::clients::{ClientId, Secret};
    use crate::deliveries::{DeliveryId, EventType, SensorRef};
    use crate::sensors::SensorId;

    fn at(seconds: i128) -> Timestamp {
        Timestamp::from_nanoseconds(seconds * 1_000_000_000)
    }

    fn delivery(round: u32, released: bool) -> Delivery {
        let client = ClientId::new("c").unwrap();
        Delivery {
            id: DeliveryId::new(&client, at(1), 7, "s"),
            event_type: EventType::StateChanged,
            sequence: 7,
            number: 5,
            occurred_at: at(1),
            sensor: Some(SensorRef {
                id: SensorId::new("s").unwrap(),
                address: String::new(),
            }),
            data: RawValue::from_string("{}".to_owned()).unwrap(),
            round,
            released,
        }
    }

    fn context(mode: Mode, state: ClientState, circuit: Circuit) -> DeliveryContext {
        let client = Client {
            id: ClientId::new("c").unwrap(),
            name: "C".to_owned(),
            url: "https://c.example/".to_owned(),
            mode,
            state,
            circuit,
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
            client: Some((client, secrets)),
            linked: true,
            newest: Some(5),
            delivered_round: None,
            last_attempt: 0,
        }
    }

    /// The decision in a word.
    fn decided(context: &DeliveryContext, delivery: &Delivery, number: u32) -> String {
        match next_step(context, delivery, number, at(100), &Policy::default()) {
            NextStep::Send(..) => "send".to_owned(),
            NextStep::Probe(..) => "probe".to_owned(),
            NextStep::Wait(until) => format!("wait {}", until.nanoseconds() / 1_000_000_000),
            NextStep::Settle(status) => status.to_string(),
            NextStep::DeadLetter => "dead letter".to_owned(),
            NextStep::Nothing => "nothing".to_owned(),
        }
    }

    fn disabled() -> ClientState {
        ClientState::Disabled {
            reason: "asked".to_owned(),
            since: at(0),
        }
    }

    #[test]
    fn the_next_step_depends_on_the_current_context() {
        let fine = context(Mode::Latest, ClientState::Enabled, Circuit::default());
        let every = context(Mode::Every, ClientState::Enabled, Circuit::default());
        let off = context(Mode::Every, disabled(), Circuit::default());
        let superseded = |context: &DeliveryContext| DeliveryContext {
            newest: Some(6),
            ..context.clone()
        };
        let unlinked = |context: &DeliveryContext| DeliveryContext {
            linked: false,
            ..context.clone()
        };
        let has = |round| DeliveryContext {
            delivered_round: Some(round),
            ..fine.clone()
        };
        for (context, round, released, expected) in [
            (fine.clone(), 0, false, "send"),
            (DeliveryContext::default(), 0, false, "skipped"),
            (unlinked(&fine), 0, false, "skipped"),
            (unlinked(&off), 0, false, "skipped"),
            (superseded(&fine), 0, false, "superseded"),
            // Asked for again by hand: that one is wanted.
            (superseded(&fine), 1, false, "send"),
            (superseded(&every), 0, false, "send"),
            (off.clone(), 0, false, "held"),
            (off.clone(), 1, false, "held"),
            (off.clone(), 1, true, "send"),
            (has(0), 0, false, "nothing"),
            (has(0), 1, false, "send"),
            (has(2), 1, false, "nothing"),
            (has(0), 1, true, "nothing"),
            (has(0), 2, true, "send"),
        ] {
            let delivery = delivery(round, released);
            assert_eq!(decided(&context, &delivery, 1), expected, "{context:?}");
        }
    }

    #[test]
    fn a_test_needs_no_link() {
        let fine = context(Mode::Every, ClientState::Enabled, Circuit::default());
        let unlinked = DeliveryContext {
            linked: false,
            ..fine
        };
        let test = Delivery {
            sensor: None,
            ..delivery(0, false)
        };
        assert_eq!(decided(&unlinked, &test, 1), "send");
    }

    #[test]
    fn an_open_circuit_delays_all_but_the_last_attempt() {
        let with = |failures, open: Option<i128>| {
            let open_until = open.map(at);
            let circuit = Circuit {
                failures,
                open_until,
            };
            context(Mode::Every, ClientState::Enabled, circuit)
        };
        for (failures, open, number, expected) in [
            (4, None, 1, "send"),
            (5, Some(101), 1, "wait 101"),
            (5, Some(101), 9, "wait 101"),
            (5, Some(101), 10, "send"),
            (5, Some(101), 11, "dead letter"),
            (0, None, 11, "dead letter"),
            (5, Some(100), 1, "probe"),
            (9, None, 1, "probe"),
            // Closed by a success that was recorded in between.
            (0, Some(101), 1, "send"),
        ] {
            let context = with(failures, open);
            let decided = decided(&context, &delivery(0, false), number);
            assert_eq!(decided, expected, "{failures} {open:?} {number}");
        }
    }

    #[test]
    fn a_final_status_takes_precedence_over_dead_letters() {
        let fine = context(Mode::Every, ClientState::Enabled, Circuit::default());
        let off = context(Mode::Every, disabled(), Circuit::default());
        let has = DeliveryContext {
            delivered_round: Some(0),
            ..fine.clone()
        };
        let sent = delivery(0, false);
        assert_eq!(decided(&has, &sent, 11), "nothing");
        assert_eq!(decided(&off, &sent, 11), "held");
        assert_eq!(decided(&DeliveryContext::default(), &sent, 11), "skipped");
    }

    #[test]
    fn unrecorded_attempts_are_found() {
        const NONE: [u32; 0] = [];
        let of = |last_attempt, number| {
            let context = DeliveryContext {
                last_attempt,
                ..DeliveryContext::default()
            };
            let found = unrecorded_attempts(&context, number, &Policy::default());
            found.collect::<Vec<u32>>()
        };
        assert_eq!(of(0, 1), NONE);
        assert_eq!(of(1, 2), NONE);
        assert_eq!(of(0, 3), [1, 2]);
        assert_eq!(of(9, 11), [10]);
        assert_eq!(of(9, 12), [10], "there is no eleventh attempt");
        assert_eq!(of(10, 12), NONE);
        // A message that was received twice at once.
        assert_eq!(of(2, 1), NONE);
        let endless = Policy {
            max_attempts: u32::MAX,
            ..Policy::default()
        };
        assert!(unrecorded_attempts(&DeliveryContext::default(), u32::MAX, &endless).count() < 50);
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
            assert_eq!(
                attempt_outcome(&outcome, number, 1.0, &policy),
                expected,
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn a_circuit_opens_after_failures_or_one_timeout_and_longer_each_time() {
        let policy = Policy::default();
        let seconds = |outcome: &Result<HttpResponse, PostError>, before| {
            let (weight, open) = circuit_after_failure(outcome, before, &policy);
            (weight, open.map(|open| open.as_secs()))
        };
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
    }
}
