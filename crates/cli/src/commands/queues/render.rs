//! Output of `antumbra queues`.

use std::collections::BTreeMap;

use antumbra_notify::redrive::{
    Peeked, RedriveOptions, RedriveOutcome, RedriveRoute, RedriveSummary, describe, reason,
};
use antumbra_publish::SqsFailedQueue;
use antumbra_service::api::{FailedMessages, RedriveResults};
use antumbra_service::redrive::FailedMessage;

use crate::output::{BAD, CHANGED, FAINT, GOOD, STRONG, styled, table};

pub(super) fn messages(
    queue: &SqsFailedQueue,
    Peeked { messages, has_more }: &Peeked,
    bodies: bool,
    json: bool,
) -> String {
    let options = RedriveOptions::default();
    if json {
        let messages = messages.iter().cloned();
        let messages = messages.map(|one| describe(one, queue.name(), &options));
        return crate::output::json(&FailedMessages {
            messages: messages.collect(),
            has_more: *has_more,
        });
    }
    let route = |one: &FailedMessage| RedriveRoute::of(one, &options).to_string();
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for one in messages {
        *counts.entry((reason(one), route(one))).or_default() += 1;
    }
    let rows: Vec<Vec<String>> = counts
        .into_iter()
        .map(|((reason, route), count)| vec![format!("  {count}"), styled(CHANGED, &reason), route])
        .collect();
    let mut text = title(queue, messages.len()) + &table(&rows);
    if bodies {
        for one in messages {
            text.push_str(&format!("\n\n{}  {}", styled(FAINT, &one.id), reason(one)));
            if let Some(detail) = one.attribute("detail") {
                text.push_str(&format!(": {detail}"));
            }
            text.push_str(&format!("\n{}", one.body));
        }
    }
    text
}

pub(super) fn redrive(
    queue: &SqsFailedQueue,
    summary: RedriveSummary,
    executed: bool,
    json: bool,
) -> String {
    if json {
        return crate::output::json(&RedriveResults::from(summary));
    }
    let total = summary.rows.values().sum();
    let rows = summary
        .rows
        .iter()
        .map(|((reason, route, outcome), count)| {
            let (word, style, error) = words(outcome);
            let mut word = styled(style, word);
            if let Some(error) = error {
                word.push_str(&format!(": {error}"));
            }
            vec![format!("  {count}"), reason.clone(), route.clone(), word]
        });
    let mut text = title(queue, total) + &table(&rows.collect::<Vec<_>>());
    if !executed && total > 0 {
        text.push_str("\nnothing was moved; use --go to move the messages");
    }
    text
}

fn title(queue: &SqsFailedQueue, count: usize) -> String {
    let name = styled(STRONG, queue.name());
    match count {
        0 => format!("{name}  the queue is empty"),
        1 => format!("{name}  1 message\n"),
        count => format!("{name}  {count} messages\n"),
    }
}

fn words(outcome: &RedriveOutcome) -> (&'static str, anstyle::Style, Option<&str>) {
    match outcome {
        RedriveOutcome::Planned => ("would be moved", GOOD, None),
        RedriveOutcome::Moved => ("moved", GOOD, None),
        RedriveOutcome::Deleted => ("deleted", GOOD, None),
        RedriveOutcome::Left => ("left", CHANGED, None),
        RedriveOutcome::Failed(error) => ("failed", BAD, Some(error)),
    }
}
