//! Decisions before and after an attempt to deliver. Pure.

use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::delays::Delays;
use super::delivery::{DeliveryRecord, Status, Waiting};
use super::message::DeliveryMessage;
use super::ports::{DeliveryContext, HttpResponse, PostError};
use crate::clients::{Circuit, Client, ClientState, Mode, Secrets};
use crate::clock::time_left;

/// First wait for the result of a probe.
const FIRST_PROBE_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Attempts per round, after which a delivery is dead.
    pub max_attempts: u32,
    pub delays: Delays,
    /// Lease of an attempt; longer than the timeout of a request and the recording of its result.
    pub lease: Duration,
    /// Consecutive failures that open the circuit of a client. A single timeout opens it.
    pub open_after: u32,
    /// Time for which a circuit stays open at first.
    pub open_first: Duration,
    /// Longest time for which a circuit stays open.
    pub open_longest: Duration,
    /// Time reserved for the single probe of an expired circuit.
    pub probe: Duration,
    /// Time without a response after which an attempt becomes the probe of its client's circuit.
    pub slow_after: Duration,
    /// Longest `Retry-After` that is honoured.
    pub retry_after_longest: Duration,
    /// Time without a single success after which a failing client is disabled.
    pub disable_after: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            max_attempts: 10,
            delays: Delays::default(),
            lease: Duration::from_secs(30),
            open_after: 5,
            open_first: Duration::from_secs(30),
            open_longest: Duration::from_secs(600),
            probe: Duration::from_secs(15),
            slow_after: Duration::from_secs(2),
            retry_after_longest: Duration::from_secs(3600),
            disable_after: Duration::from_secs(3 * 24 * 3600),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep<'a> {
    Send(&'a Client, &'a Secrets),
    /// Send the request if the probe of the circuit, which is open until this time, can be claimed.
    Probe(&'a Client, &'a Secrets, Option<Timestamp>),
    /// Wait until this time: the circuit is open, or the next attempt is not due.
    Wait(Timestamp),
    /// Another instance makes an attempt until this time at most.
    InProgress(Timestamp),
    /// Record this final status without sending.
    Settle(Status),
    /// Hold it: the client is disabled.
    Hold,
    /// Let it wait behind an earlier delivery of the same client and sensor.
    WaitBehind,
    /// Move it to the dead-letter queue: all attempts are used up.
    DeadLetter,
    /// Drop the message: the delivery has its final status, or waits elsewhere.
    Drop(Status),
    /// Quarantine the message: the history does not know such a delivery.
    Unknown,
}

/// Returns whether the deliveries of a client and sensor are kept in order. One that is requested by hand is
/// sent at once.
pub fn is_in_order(client: &Client, message: &DeliveryMessage) -> bool {
    client.mode == Mode::Every && message.sensor.is_some() && !message.manual
}

pub fn next_step<'a>(
    context: &'a DeliveryContext,
    message: &DeliveryMessage,
    now: Timestamp,
    policy: &Policy,
) -> NextStep<'a> {
    let Some(record) = &context.record else {
        return NextStep::Unknown;
    };
    if let Some(step) = without_client(record, message, now) {
        return step;
    }
    let delivery = &record.delivery;
    let Some((client, secrets)) = &context.client else {
        return NextStep::Settle(Status::Skipped);
    };
    if let Some(sensor) = &delivery.sensor
        && (!context.linked || context.generation.as_ref() != Some(&sensor.generation))
    {
        return NextStep::Settle(Status::Skipped);
    }
    let superseded = context
        .newest
        .is_some_and(|newest| newest > delivery.number);
    if client.mode == Mode::Latest && superseded && !message.manual {
        return NextStep::Settle(Status::Superseded);
    }
    let is_new_round = message.round > record.progress.round;
    let waiting = record.progress.waiting.filter(|_| !is_new_round);
    if client.state != ClientState::Enabled {
        return match waiting {
            Some(Waiting::Held) => NextStep::Drop(Status::Held),
            _ => NextStep::Hold,
        };
    }
    let is_behind = |oldest: &String| *oldest < delivery.id.order();
    if is_in_order(client, message) && context.oldest_deferred.as_ref().is_some_and(is_behind) {
        return match waiting {
            Some(Waiting::Behind) => NextStep::Drop(record.status),
            _ => NextStep::WaitBehind,
        };
    }
    let begun = begun(record, message);
    if begun >= policy.max_attempts {
        return NextStep::DeadLetter;
    }
    if let Some(until) = record.progress.not_before
        && !is_new_round
        && until > now
    {
        return NextStep::Wait(until);
    }
    let Circuit {
        failures,
        open_until,
        probing_since,
        ..
    } = client.circuit;
    let is_closed = failures < policy.open_after && probing_since.is_none();
    if is_closed {
        return NextStep::Send(client, secrets);
    }
    let until = match open_until {
        Some(until) if until > now => until,
        _ => return NextStep::Probe(client, secrets, open_until),
    };
    match probing_since {
        // Each wait doubles the time since the start, so the result of a probe is seen soon and at little cost.
        Some(since) => {
            let soon = now.after(time_left(since, now).max(FIRST_PROBE_WAIT));
            NextStep::Wait(until.min(soon))
        }
        // A delivery that is requested by hand does not wait until the circuit expires.
        None if message.manual && begun == 0 => NextStep::Probe(client, secrets, open_until),
        None => NextStep::Wait(until),
    }
}

/// Decides the next step from the record alone, if it can be.
fn without_client<'a>(
    record: &DeliveryRecord,
    message: &DeliveryMessage,
    now: Timestamp,
) -> Option<NextStep<'a>> {
    let progress = &record.progress;
    let sensor = record.delivery.sensor.as_ref().map(|sensor| &sensor.id);
    if sensor != message.sensor.as_ref() || message.round > progress.round.saturating_add(1) {
        return Some(NextStep::Unknown);
    }
    // A released delivery repeats the round before it. The attempt that held it may have found the client
    // enabled and delivered it.
    let owed = match message.manual {
        true => message.round,
        false => message.round.saturating_sub(1),
    };
    let is_delivered = progress.delivered_round.is_some_and(|round| round >= owed);
    if is_delivered || message.round < progress.round {
        return Some(NextStep::Drop(record.status));
    }
    if message.round > progress.round {
        return None;
    }
    let is_final = matches!(
        record.status,
        Status::Delivered | Status::Dead | Status::Skipped | Status::Superseded
    );
    // The due index queues it with another number.
    let waits = progress.waiting == Some(Waiting::Due) && message.queued < progress.queued;
    if is_final || waits {
        return Some(NextStep::Drop(record.status));
    }
    let in_progress = progress.claimed_until.filter(|until| *until > now);
    in_progress.map(NextStep::InProgress)
}

/// Returns the number of attempts begun in the round of a message.
pub fn begun(record: &DeliveryRecord, message: &DeliveryMessage) -> u32 {
    match message.round > record.progress.round {
        true => 0,
        false => record.progress.begun,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
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
        _ => {}
    }
    let asked = match outcome {
        Ok(response) if matches!(response.status, 429 | 503) => response.retry_after,
        _ => None,
    };
    let asked = asked.unwrap_or_default().min(policy.retry_after_longest);
    policy.after_failure(number, asked, random)
}

impl Policy {
    /// Decides what follows a failed attempt; the endpoint asked for a delay of at least `asked`.
    pub(super) fn after_failure(
        &self,
        number: u32,
        asked: Duration,
        random: f64,
    ) -> AttemptOutcome {
        match number >= self.max_attempts {
            true => AttemptOutcome::Dead,
            false => AttemptOutcome::RetryAfter(self.delays.after(number, random).max(asked)),
        }
    }
}

/// Returns the weight of a failure and the time for which it opens the circuit; `None` if the circuit stays closed.
///
/// A timeout and a failed probe weigh enough to open the circuit at once: each further request would take as long.
pub fn circuit_after_failure(
    outcome: &Result<HttpResponse, PostError>,
    failures_before: u32,
    is_probe: bool,
    policy: &Policy,
) -> (u32, Option<Duration>) {
    let weight = match outcome {
        Err(PostError::Timeout(_)) => policy.open_after.saturating_sub(failures_before).max(1),
        _ if is_probe => policy.open_after.saturating_sub(failures_before).max(1),
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
mod tests;
