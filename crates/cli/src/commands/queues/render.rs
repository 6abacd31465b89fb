//! What was put aside, for people and for machines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::QueueClient;
use super::redrive::{Outcome, RedriveSummary};
use super::route::FailedMessage;
use crate::output::{BAD, CHANGED, FAINT, GOOD, STRONG, styled, table};

pub(super) fn shown(
    desk: &QueueClient,
    lying: &[FailedMessage],
    bodies: bool,
    json: bool,
) -> String {
    if json {
        let message = |one: &FailedMessage| {
            json!({
                "id": one.id, "reason": one.reason(), "way": one.way(None).words(),
                "detail": one.attributes.get("detail").and_then(|detail| detail.string_value()),
                "sent": one.sent, "body": one.body,
            })
        };
        let messages: Vec<Value> = lying.iter().map(message).collect();
        return json!({ "queue": desk.name, "messages": messages }).to_string();
    }
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for one in lying {
        *counts
            .entry((one.reason(), one.way(None).words()))
            .or_default() += 1;
    }
    let rows: Vec<Vec<String>> = counts
        .into_iter()
        .map(|((reason, way), count)| vec![format!("  {count}"), styled(CHANGED, &reason), way])
        .collect();
    let mut text = title(desk, lying.len()) + &table(&rows);
    if bodies {
        for one in lying {
            text.push_str(&format!("\n\n{}  {}", styled(FAINT, &one.id), one.reason()));
            if let Some(detail) = one.attributes.get("detail").and_then(|d| d.string_value()) {
                text.push_str(&format!(": {detail}"));
            }
            text.push_str(&format!("\n{}", one.body));
        }
    }
    text
}

pub(super) fn redriven(desk: &QueueClient, done: &RedriveSummary, json: bool) -> String {
    if json {
        let row = |((reason, way, outcome), count): (&(String, String, Outcome), &usize)| {
            let (word, why) = words(outcome);
            json!({ "count": count, "reason": reason, "way": way, "outcome": word, "why": why })
        };
        let rows: Vec<Value> = done.rows.iter().map(row).collect();
        let all =
            json!({ "queue": desk.name, "went": done.went, "bySqs": done.by_sqs, "rows": rows });
        return all.to_string();
    }
    if let Some(count) = done.by_sqs {
        return format!("SQS moved about {count} dead letters of {} back", desk.name);
    }
    let total = done.rows.values().sum();
    let rows = done.rows.iter().map(|((reason, way, outcome), count)| {
        let (word, why) = words(outcome);
        let style = match outcome {
            Outcome::Failed(_) => BAD,
            Outcome::Left => CHANGED,
            _ => GOOD,
        };
        let word = match why {
            Some(why) => format!("{}: {why}", styled(style, word)),
            None => styled(style, word),
        };
        vec![format!("  {count}"), reason.clone(), way.clone(), word]
    });
    let mut text = title(desk, total) + &table(&rows.collect::<Vec<_>>());
    if !done.went && total > 0 {
        text.push_str("\nnothing was moved; --go does it");
    }
    text
}

fn title(desk: &QueueClient, count: usize) -> String {
    let name = styled(STRONG, &desk.name);
    match count {
        0 => format!("{name}  nothing lies there"),
        1 => format!("{name}  1 message\n"),
        count => format!("{name}  {count} messages\n"),
    }
}

fn words(outcome: &Outcome) -> (&'static str, Option<&str>) {
    match outcome {
        Outcome::Would => ("would be moved", None),
        Outcome::Moved => ("moved", None),
        Outcome::Dropped => ("dropped", None),
        Outcome::Left => ("left", None),
        Outcome::Failed(why) => ("left", Some(why)),
    }
}
