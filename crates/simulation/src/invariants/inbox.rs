//! A message is stored once, read as it was sent, and gone when it was deleted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Evidence;
use crate::stream::Change;

pub(super) fn check(evidence: &Evidence<'_>) {
    let memory = evidence.inbox.memory();
    let mut writes: BTreeMap<(&str, &str), Vec<&Change>> = BTreeMap::new();
    for change in evidence
        .changes
        .iter()
        .filter(|change| change.table == "antumbra-messages")
    {
        let place = (change.partition.as_str(), change.sort.as_str());
        writes.entry(place).or_default().push(change);
    }
    let is_live =
        |image: Option<&Value>| image.is_some_and(|image| image.get("undeletedId").is_some());
    let published = evidence.world.cloud.published();
    let answer_of = |operation: &str, token: &str| {
        let topic = format!("response/{operation}/{token}");
        let all = published.iter().filter(|one| one.topic == topic);
        all.map(|one| serde_json::from_str::<Value>(&one.payload).unwrap_or_default())
            .collect::<Vec<_>>()
    };
    for dropped in &memory.dropped {
        let place = (dropped.source.as_str(), dropped.id.as_str());
        let of_message = writes.remove(&place).unwrap_or_default();
        let stored = of_message.iter();
        let stored = stored.filter(|one| is_live(one.new.as_ref()) && !is_live(one.old.as_ref()));
        let stored = stored.count();
        evidence.expect("nothing-accepted-is-lost", stored > 0, || {
            format!("{place:?} was never stored")
        });
        evidence.expect("messages-are-stored-once", stored <= 1, || {
            format!("{place:?} was stored {stored} times")
        });
        let told = published.iter().any(|one| {
            one.topic == format!("notification/{}", dropped.source)
                && one.payload.contains(&format!("\"{}\"", dropped.id))
        });
        evidence.expect("every-message-is-notified", told, || {
            format!("{place:?} was never told of")
        });
        let end = of_message.last().and_then(|last| last.new.as_ref());
        for deletion in memory
            .deletions
            .iter()
            .filter(|deletion| deletion.id == dropped.id)
        {
            let answers = answer_of("delete", &deletion.token);
            let confirmed = answers.iter().any(|answer| answer.get("error").is_none());
            if deletion.was_there && confirmed {
                evidence.expect("deleted-messages-stay-deleted", !is_live(end), || {
                    format!("{place:?} is still there after {}", deletion.token)
                });
            }
        }
        let asked = memory
            .deletions
            .iter()
            .any(|deletion| deletion.id == dropped.id && deletion.source == dropped.source);
        evidence.expect(
            "only-deleted-messages-disappear",
            asked || is_live(end),
            || format!("{place:?} is gone and nobody asked for that"),
        );
    }
    // Sources are noted in the same table, under names of their own.
    let others = writes
        .keys()
        .filter(|(source, _)| source.starts_with("source-"));
    let others: BTreeSet<_> = others.collect();
    evidence.expect("nothing-is-invented", others.is_empty(), || {
        format!("{others:?} was never sent")
    });
    for asked in &memory.asked {
        let answers = answer_of(asked.operation, &asked.token);
        evidence.expect(
            "every-request-has-a-response",
            !asked.ended || !answers.is_empty(),
            || format!("{} {} got no answer", asked.operation, asked.token),
        );
        let same = answers.windows(2).all(|two| two[0] == two[1]);
        evidence.expect("every-request-has-a-response", same, || {
            format!("{} {} got different answers", asked.operation, asked.token)
        });
        let calm = evidence.world.profile.is_calm();
        evidence.expect(
            "every-request-has-a-response",
            !calm || answers.len() == 1,
            || {
                format!(
                    "{} {} got {} answers",
                    asked.operation,
                    asked.token,
                    answers.len()
                )
            },
        );
        let (Some(expected), Some(answer)) = (&asked.expected, answers.first()) else {
            continue;
        };
        let unavailable = answer["code"] == "Unavailable" || answer["code"] == "Throttled";
        let members = expected.as_object().into_iter().flatten();
        let said = members
            .clone()
            .all(|(name, value)| answer.get(name) == Some(value));
        evidence.expect("responses-are-correct", said || unavailable, || {
            format!(
                "{} {}: {answer} where {expected} is so",
                asked.operation, asked.token
            )
        });
    }
}
