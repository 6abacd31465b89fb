//! `antumbra events`: the events of a local bus.

use antumbra_local::queues::bus_queue;
use antumbra_notify::redrive;
use antumbra_publish::SqsFailedQueue;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::connection::{Connection, Service};
use crate::error::{CliError, ExitStatus};
use crate::output::{self, FAINT, STRONG, styled};

#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// Bus of the local EventBridge. Its queue, antumbra-events-BUS, gets every event.
    #[arg(default_value = "default")]
    bus: String,
    /// Maximum number of events.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// An event as targets of EventBridge receive it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Event<'a> {
    time: String,
    source: String,
    detail_type: String,
    /// As it was sent: numbers stay exact.
    #[serde(borrow)]
    detail: &'a RawValue,
}

#[derive(Serialize)]
struct Page<'a> {
    bus: &'a str,
    events: Vec<&'a RawValue>,
}

pub(crate) async fn run(
    arguments: EventsArguments,
    connection: &Connection,
    as_json: bool,
) -> Result<(), CliError> {
    connection.check(Service::Sqs).await?;
    let sqs = aws_sdk_sqs::Client::new(&connection.aws().await);
    let bus = arguments.bus.as_str();
    let queue = SqsFailedQueue::open(&sqs, &bus_queue(bus)).await;
    let queue = queue.map_err(|error| explain(error.into(), bus))?;
    let peeked = redrive::peek(&queue, arguments.limit as usize, usize::MAX).await?;
    let mut messages = peeked.messages;
    messages.sort_by_key(|message| message.sent_milliseconds);
    let text = match as_json {
        true => {
            let events = messages.iter();
            let events = events.map(|message| serde_json::from_str(&message.body));
            let events = events.collect::<Result<_, _>>();
            let page = events.and_then(|events| serde_json::to_string(&Page { bus, events }));
            page.map_err(CliError::failed)?
        }
        false if messages.is_empty() => styled(FAINT, &format!("the bus {bus} has no events")),
        false => {
            let lines = messages.iter().map(|message| line(&message.body));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    output::print(&text)
}

fn explain(error: CliError, bus: &str) -> CliError {
    match error.reason.contains("does not exist") {
        true => CliError::new(
            ExitStatus::NotFound,
            format!(
                "there is no bus {bus} with a queue {}; on a local stack, a registration or `aws events create-event-bus` makes one",
                bus_queue(bus)
            ),
        ),
        false => error,
    }
}

/// The event in two lines, or the message as it is if somebody else sent it.
fn line(body: &str) -> String {
    let Ok(event) = serde_json::from_str::<Event<'_>>(body) else {
        return body.to_owned();
    };
    format!(
        "{}  {}  {}\n  {}",
        styled(FAINT, &event.time),
        styled(STRONG, &event.detail_type),
        event.source,
        event.detail
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_shown_with_exact_numbers() {
        let event = r#"{"version":"0","id":"1","detail-type":"Shadow Changed","source":"antumbra","time":"2026-01-31T12:00:00Z","detail":{"n":12345678901234567890.5}}"#;
        let text = anstream::adapter::strip_str(&line(event)).to_string();
        let expected =
            "2026-01-31T12:00:00Z  Shadow Changed  antumbra\n  {\"n\":12345678901234567890.5}";
        assert_eq!(text, expected);
        assert_eq!(line("other"), "other");
    }
}
