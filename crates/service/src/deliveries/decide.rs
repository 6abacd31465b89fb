//! What to do at a delivery's turn, and what an answer means. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::delays::Delays;
use super::delivery::{Delivery, Status};
use super::ports::{DeliveryContext, HttpAnswer, PostError};
use crate::clients::{Circuit, Client, ClientState, Mode, Secrets};

/// Receives that a queue grants beyond the turns of a delivery. Nothing is sent in them: should the last
/// turn be cut off, one of them writes down that the delivery is dead before the queue takes it away.
pub const SPARE_RECEIVES: u32 = 2;
/// Of a delivery that was received more often than anybody should, so many turns are told of at most.
const UNHEARD: u32 = 20;

/// The rules of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Turns a delivery has. The queue moves it to its dead letters after [`SPARE_RECEIVES`] more.
    pub turns: u32,
    /// The time between them.
    pub delays: Delays,
    /// Failures in a row that open a client's circuit. A time-out alone opens it.
    pub open_after: u32,
    /// How long it stays open at first, and at most.
    pub open_first: Duration,
    /// See `open_first`.
    pub open_longest: Duration,
    /// How long the one try takes at most that an open circuit allows when its time is over.
    pub probe: Duration,
    /// The longest `Retry-AttemptOutcome` that is honoured.
    pub retry_after_longest: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            turns: 10,
            delays: Delays::default(),
            open_after: 5,
            open_first: Duration::from_secs(30),
            open_longest: Duration::from_secs(600),
            probe: Duration::from_secs(15),
            retry_after_longest: Duration::from_secs(3600),
        }
    }
}

/// What to do at a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep<'a> {
    /// Send it.
    Send(&'a Client, &'a Secrets),
    /// Send it if the circuit's one try can be had, whose time was this.
    Probe(&'a Client, &'a Secrets, Option<Timestamp>),
    /// Leave it until then: the circuit is open.
    Wait(Timestamp),
    /// Do not send it, and record that.
    Settle(Status),
    /// Do not send it: its turns are used up.
    Bury,
    /// Nothing: the client has it already.
    Nothing,
}

/// Decides a turn; `turn` counts from 1.
///
/// The last turn is taken whatever the circuit says: no delivery dies without a last try.
pub fn before<'a>(
    standing: &'a DeliveryContext,
    delivery: &Delivery,
    turn: u32,
    now: Timestamp,
    policy: &Policy,
) -> NextStep<'a> {
    // What was released is the round before once more, and the turn that parked that may have looked again
    // and sent it.
    let owed = delivery.round.saturating_sub(delivery.released.into());
    if standing.delivered_round.is_some_and(|round| round >= owed) {
        return NextStep::Nothing;
    }
    let Some((client, secrets)) = &standing.client else {
        return NextStep::Settle(Status::Skipped);
    };
    if delivery.sensor.is_some() && !standing.linked {
        return NextStep::Settle(Status::Skipped);
    }
    let overtaken = standing
        .newest
        .is_some_and(|newest| newest > delivery.number);
    // Whoever asks for an old delivery again wants that one.
    if client.mode == Mode::Latest && overtaken && delivery.round == 0 {
        return NextStep::Settle(Status::Superseded);
    }
    if client.state != ClientState::Enabled && !delivery.released {
        return NextStep::Settle(Status::Parked);
    }
    if turn > policy.turns {
        return NextStep::Bury;
    }
    let Circuit {
        failures,
        open_until,
    } = client.circuit;
    if failures < policy.open_after || turn == policy.turns {
        return NextStep::Send(client, secrets);
    }
    match open_until {
        Some(until) if until > now => NextStep::Wait(until),
        _ => NextStep::Probe(client, secrets, open_until),
    }
}

/// The turns before this one that nothing is written down of: whoever took them was cut off, or could not
/// write. The endpoint may have got the request all the same.
pub fn unheard(standing: &DeliveryContext, turn: u32, policy: &Policy) -> RangeInclusive<u32> {
    let last = turn.saturating_sub(1).min(policy.turns);
    let first = standing.last_turn.saturating_add(1);
    first.max(last.saturating_sub(UNHEARD))..=last
}

/// What an attempt comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The client has it.
    Delivered,
    /// The endpoint is gone for good: the client is disabled and the delivery parked.
    Gone,
    /// To be tried again after this long.
    Again(Duration),
    /// That was the last turn.
    Dead,
}

/// Decides what an attempt comes to. `random` is in 0..1.
pub fn after(
    outcome: &Result<HttpAnswer, PostError>,
    turn: u32,
    random: f64,
    policy: &Policy,
) -> AttemptOutcome {
    match outcome {
        Ok(answer) if (200..300).contains(&answer.status) => return AttemptOutcome::Delivered,
        Ok(answer) if answer.status == 410 => return AttemptOutcome::Gone,
        _ if turn >= policy.turns => return AttemptOutcome::Dead,
        _ => {}
    }
    let delay = policy.delays.after(turn, random);
    let asked = match outcome {
        Ok(answer) if matches!(answer.status, 429 | 503) => answer.retry_after,
        _ => None,
    };
    let asked = asked.unwrap_or_default().min(policy.retry_after_longest);
    AttemptOutcome::Again(delay.max(asked))
}

/// How much a failure weighs, and how long the circuit is open when it brings the failures to this
/// many; `None` if it stays closed.
///
/// A time-out weighs as much as opens it: whoever meets an endpoint that hangs is held for the whole
/// time-out, so the next ones are spared.
pub fn open_for(
    outcome: &Result<HttpAnswer, PostError>,
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
    use crate::deliveries::{DeliveryId, Kind, SensorRef};
    use crate::sensors::SensorId;

    fn at(seconds: i128) -> Timestamp {
        Timestamp::from_nanoseconds(seconds * 1_000_000_000)
    }

    fn delivery(round: u32, released: bool) -> Delivery {
        let client = ClientId::new("c").unwrap();
        Delivery {
            id: DeliveryId::new(&client, at(1), 7, "s"),
            kind: Kind::StateChanged,
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

    fn standing(mode: Mode, state: ClientState, circuit: Circuit) -> DeliveryContext {
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
            last_turn: 0,
        }
    }

    /// The decision in a word.
    fn decided(standing: &DeliveryContext, delivery: &Delivery, turn: u32) -> String {
        match before(standing, delivery, turn, at(100), &Policy::default()) {
            NextStep::Send(..) => "send".to_owned(),
            NextStep::Probe(..) => "probe".to_owned(),
            NextStep::Wait(until) => format!("wait {}", until.nanoseconds() / 1_000_000_000),
            NextStep::Settle(status) => status.to_string(),
            NextStep::Bury => "bury".to_owned(),
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
    fn a_turn_is_decided_by_what_holds_now() {
        let fine = standing(Mode::Latest, ClientState::Enabled, Circuit::default());
        let every = standing(Mode::Every, ClientState::Enabled, Circuit::default());
        let off = standing(Mode::Every, disabled(), Circuit::default());
        let overtaken = |standing: &DeliveryContext| DeliveryContext {
            newest: Some(6),
            ..standing.clone()
        };
        let unlinked = |standing: &DeliveryContext| DeliveryContext {
            linked: false,
            ..standing.clone()
        };
        let has = |round| DeliveryContext {
            delivered_round: Some(round),
            ..fine.clone()
        };
        for (standing, round, released, expected) in [
            (fine.clone(), 0, false, "send"),
            (DeliveryContext::default(), 0, false, "skipped"),
            (unlinked(&fine), 0, false, "skipped"),
            (unlinked(&off), 0, false, "skipped"),
            (overtaken(&fine), 0, false, "superseded"),
            // Asked for again by hand: that one is wanted.
            (overtaken(&fine), 1, false, "send"),
            (overtaken(&every), 0, false, "send"),
            (off.clone(), 0, false, "parked"),
            (off.clone(), 1, false, "parked"),
            (off.clone(), 1, true, "send"),
            (has(0), 0, false, "nothing"),
            (has(0), 1, false, "send"),
            (has(2), 1, false, "nothing"),
            (has(0), 1, true, "nothing"),
            (has(0), 2, true, "send"),
        ] {
            let delivery = delivery(round, released);
            assert_eq!(decided(&standing, &delivery, 1), expected, "{standing:?}");
        }
    }

    #[test]
    fn a_test_needs_no_link() {
        let fine = standing(Mode::Every, ClientState::Enabled, Circuit::default());
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
    fn an_open_circuit_holds_all_but_the_last_turn() {
        let with = |failures, open: Option<i128>| {
            let open_until = open.map(at);
            let circuit = Circuit {
                failures,
                open_until,
            };
            standing(Mode::Every, ClientState::Enabled, circuit)
        };
        for (failures, open, turn, expected) in [
            (4, None, 1, "send"),
            (5, Some(101), 1, "wait 101"),
            (5, Some(101), 9, "wait 101"),
            (5, Some(101), 10, "send"),
            (5, Some(101), 11, "bury"),
            (0, None, 11, "bury"),
            (5, Some(100), 1, "probe"),
            (9, None, 1, "probe"),
            // Closed by a success that was recorded in between.
            (0, Some(101), 1, "send"),
        ] {
            let standing = with(failures, open);
            let decided = decided(&standing, &delivery(0, false), turn);
            assert_eq!(decided, expected, "{failures} {open:?} {turn}");
        }
    }

    #[test]
    fn what_is_settled_otherwise_is_not_buried() {
        let fine = standing(Mode::Every, ClientState::Enabled, Circuit::default());
        let off = standing(Mode::Every, disabled(), Circuit::default());
        let has = DeliveryContext {
            delivered_round: Some(0),
            ..fine.clone()
        };
        let sent = delivery(0, false);
        assert_eq!(decided(&has, &sent, 11), "nothing");
        assert_eq!(decided(&off, &sent, 11), "parked");
        assert_eq!(decided(&DeliveryContext::default(), &sent, 11), "skipped");
    }

    #[test]
    fn turns_that_nothing_is_known_of_are_found() {
        const NONE: [u32; 0] = [];
        let of = |last_turn, turn| {
            let standing = DeliveryContext {
                last_turn,
                ..DeliveryContext::default()
            };
            let unheard = unheard(&standing, turn, &Policy::default());
            unheard.collect::<Vec<u32>>()
        };
        assert_eq!(of(0, 1), NONE);
        assert_eq!(of(1, 2), NONE);
        assert_eq!(of(0, 3), [1, 2]);
        assert_eq!(of(9, 11), [10]);
        assert_eq!(of(9, 12), [10], "there is no eleventh turn");
        assert_eq!(of(10, 12), NONE);
        // A message that was received twice at once.
        assert_eq!(of(2, 1), NONE);
        let endless = Policy {
            turns: u32::MAX,
            ..Policy::default()
        };
        assert!(unheard(&DeliveryContext::default(), u32::MAX, &endless).count() < 50);
    }

    fn answer(status: u16, retry_after: Option<u64>) -> Result<HttpAnswer, PostError> {
        Ok(HttpAnswer {
            status,
            retry_after: retry_after.map(Duration::from_secs),
        })
    }

    #[test]
    fn answers_mean_what_the_documents_say() {
        let policy = Policy::default();
        let again = |seconds| AttemptOutcome::Again(Duration::from_secs(seconds));
        let timeout = || Err(PostError::Timeout(Duration::from_secs(10)));
        let refused = || Err(PostError::Failed("connection refused".to_owned()));
        for (outcome, turn, expected) in [
            (answer(200, None), 1, AttemptOutcome::Delivered),
            (answer(204, None), 10, AttemptOutcome::Delivered),
            (answer(299, None), 1, AttemptOutcome::Delivered),
            (answer(410, None), 1, AttemptOutcome::Gone),
            (answer(410, None), 10, AttemptOutcome::Gone),
            (answer(301, None), 1, again(60)),
            (answer(400, None), 1, again(60)),
            (answer(404, None), 2, again(120)),
            (answer(500, Some(3000)), 1, again(60)),
            (answer(429, Some(30)), 1, again(60)),
            (answer(429, Some(300)), 1, again(300)),
            (answer(503, Some(300)), 3, again(300)),
            (answer(503, Some(86_400)), 1, again(3600)),
            (answer(429, None), 9, again(4 * 3600)),
            (timeout(), 1, again(60)),
            (refused(), 9, again(4 * 3600)),
            (answer(500, None), 10, AttemptOutcome::Dead),
            (answer(429, Some(5)), 10, AttemptOutcome::Dead),
            (timeout(), 11, AttemptOutcome::Dead),
        ] {
            assert_eq!(after(&outcome, turn, 1.0, &policy), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_circuit_opens_after_some_failures_or_one_time_out_and_longer_each_time() {
        let policy = Policy::default();
        let seconds = |outcome: &Result<HttpAnswer, PostError>, before| {
            let (weight, open) = open_for(outcome, before, &policy);
            (weight, open.map(|open| open.as_secs()))
        };
        let failed = answer(500, None);
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
