//! Parses each message into the task that it means. Pure.

use antumbra_lambda_kit::batch::Rejection;
use antumbra_service::sensors::{InvalidSensor, Signal, SignalMessage, SignalPayload};

use crate::arrival::IncomingSignal;
use crate::rules::Rules;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    Signal(Signal),
    /// Record how far the queue was read; the liveness sweep sent it.
    Marker,
    Reject(Rejection),
}

/// Parses the messages of a batch. A standard queue keeps no order, so its signals are recorded by their own
/// times: every transition within a batch is seen, whatever order the queue delivers. Across batches the newest
/// value wins, and a transition that arrives late is kept as a reading only.
pub(crate) fn in_order(
    messages: Vec<IncomingSignal>,
    rules: &Rules,
) -> (Vec<IncomingSignal>, Vec<Task>) {
    let is_ordered = messages.iter().any(|message| message.group.is_some());
    let parsed = messages.into_iter().map(|message| {
        let task = task(&message, rules);
        (message, task)
    });
    let mut parsed: Vec<(IncomingSignal, Task)> = parsed.collect();
    if !is_ordered {
        let moment = |task: &Task| match task {
            Task::Signal(signal) => Some(signal.moment().clone()),
            Task::Marker | Task::Reject(_) => None,
        };
        parsed.sort_by_cached_key(|(_, task)| moment(task));
    }
    parsed.into_iter().unzip()
}

fn task(message: &IncomingSignal, rules: &Rules) -> Task {
    let text = match &message.text {
        Ok(text) => text,
        Err(not_text) => return Task::Reject(Rejection::new("NotText", not_text)),
    };
    let payload = match SignalMessage::parse(text, rules.allowed) {
        Ok(SignalMessage::Marker) => return Task::Marker,
        Ok(SignalMessage::Signal(payload)) => payload,
        Err(error) => return Task::Reject(Rejection::new(error.reason(), error)),
    };
    let id = payload.sensor_id.as_str();
    if let Some(pattern) = rules.ids.as_ref().filter(|ids| !ids.allows(id)) {
        let detail = format!("the sensor id does not match {}", pattern.as_str());
        return Task::Reject(Rejection::new("Invalid", detail));
    }
    match signal(payload, message) {
        Ok(signal) => Task::Signal(signal),
        Err(error) => Task::Reject(Rejection::new("Invalid", error)),
    }
}

fn signal(payload: SignalPayload, message: &IncomingSignal) -> Result<Signal, InvalidSensor> {
    let signal = Signal::new(
        payload.sensor_id,
        payload.data,
        Some(payload.ts.unwrap_or(message.time)),
        payload.seq,
        message.sent,
        &message.number,
    )?;
    Ok(signal.with_fields(payload.fields))
}
