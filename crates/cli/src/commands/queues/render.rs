//! Output of `antumbra queues`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::QueueClient;
use super::redrive::{Outcome, RedriveSummary};
use super::route::FailedMessage;
use crate::output::{BAD, CHANGED, FAINT, GOOD, STRONG, styled, table};

pub(super) fn messages(
    queue: &QueueClient,
    messages: &[FailedMessage],
    bodies: bool,
    json: bool,
) -> String {
    if json {
        let message = |one: &FailedMessage| {
            json!({
                "id": one.id, "reason": one.reason(), "route": one.route(None).describe(),
                "detail": one.attributes.get("detail").and_then(|detail| detail.string_value()),
                "sent": one.sent, "body": one.body,
            })
        };
        let messages: Vec<Value> = messages.iter().map(message).collect();
        return json!({ "queue": queue.name, "messages": messages }).to_string();
    }
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for one in messages {
        *counts
            .entry((one.reason(), one.route(None).describe()))
            .or_default() += 1;
    }
    let rows: Vec<Vec<String>> = counts
        .into_iter()
        .map(|((reason, route), count)| vec![format!("  {count}"), styled(CHANGED, &reason), route])
        .collect();
    let mut text = title(queue, messages.len()) + &table(&rows);
    if bodies {
        for one in messages {
            text.push_str(&format!("\n\n{}  {}", styled(FAINT, &one.id), one.reason()));
            if let Some(detail) = one.attributes.get("detail").and_then(|d| d.string_value()) {
                text.push_str(&format!(": {detail}"));
            }
            text.push_str(&format!("\n{}", one.body));
        }
    }
    text
}

pub(super) fn redrive(queue: &QueueClient, summary: &RedriveSummary, json: bool) -> String {
    if json {
        let row = |((reason, route, outcome), count): (&(String, String, Outcome), &usize)| {
            let (word, error) = words(outcome);
            json!({ "count": count, "reason": reason, "route": route, "outcome": word, "error": error })
        };
        let rows: Vec<Value> = summary.rows.iter().map(row).collect();
        let all = json!({ "queue": queue.name, "executed": summary.executed, "movedBySqs": summary.moved_by_sqs, "rows": rows });
        return all.to_string();
    }
    if let Some(count) = summary.moved_by_sqs {
        return format!(
            "SQS moved about {count} dead letters of {} back to their source",
            queue.name
        );
    }
    let total = summary.rows.values().sum();
    let rows = summary
        .rows
        .iter()
        .map(|((reason, route, outcome), count)| {
            let (word, error) = words(outcome);
            let style = match outcome {
                Outcome::Failed(_) => BAD,
                Outcome::Left => CHANGED,
                _ => GOOD,
            };
            let word = match error {
                Some(error) => format!("{}: {error}", styled(style, word)),
                None => styled(style, word),
            };
            vec![format!("  {count}"), reason.clone(), route.clone(), word]
        });
    let mut text = title(queue, total) + &table(&rows.collect::<Vec<_>>());
    if !summary.executed && total > 0 {
        text.push_str("\nnothing was moved; use --go to move the messages");
    }
    text
}

fn title(queue: &QueueClient, count: usize) -> String {
    let name = styled(STRONG, &queue.name);
    match count {
        0 => format!("{name}  the queue is empty"),
        1 => format!("{name}  1 message\n"),
        count => format!("{name}  {count} messages\n"),
    }
}

fn words(outcome: &Outcome) -> (&'static str, Option<&str>) {
    match outcome {
        Outcome::Planned => ("would be moved", None),
        Outcome::Moved => ("moved", None),
        Outcome::Dropped => ("deleted", None),
        Outcome::Left => ("left", None),
        Outcome::Failed(error) => ("failed", Some(error)),
    }
}
