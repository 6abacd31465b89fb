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
    let responses_to = |operation: &str, token: &str| {
        let topic = format!("response/{operation}/{token}");
        let all = published.iter().filter(|one| one.topic == topic);
        all.map(|one| serde_json::from_str::<Value>(&one.payload).unwrap_or_default())
            .collect::<Vec<_>>()
    };
    for sent in &memory.sent_messages {
        let place = (sent.source.as_str(), sent.id.as_str());
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
        let notified = published.iter().any(|one| {
            one.topic == format!("notification/{}", sent.source)
                && one.payload.contains(&format!("\"{}\"", sent.id))
        });
        evidence.expect("every-message-is-notified", notified, || {
            format!("{place:?} was never notified")
        });
        let end = of_message.last().and_then(|last| last.new.as_ref());
        for deletion in memory
            .deletions
            .iter()
            .filter(|deletion| deletion.id == sent.id)
        {
            let responses = responses_to("delete", &deletion.token);
            let confirmed = responses
                .iter()
                .any(|response| response.get("error").is_none());
            if deletion.was_there && confirmed {
                evidence.expect("deleted-messages-stay-deleted", !is_live(end), || {
                    format!("{place:?} is still there after {}", deletion.token)
                });
            }
        }
        let requests = memory
            .deletions
            .iter()
            .any(|deletion| deletion.id == sent.id && deletion.source == sent.source);
        evidence.expect(
            "only-deleted-messages-disappear",
            requests || is_live(end),
            || format!("{place:?} is gone and nobody deleted it"),
        );
    }
    // Records of sources are in the same table, under other keys.
    let others = writes
        .keys()
        .filter(|(source, _)| source.starts_with("source-"));
    let others: BTreeSet<_> = others.collect();
    evidence.expect("nothing-is-invented", others.is_empty(), || {
        format!("{others:?} was never sent")
    });
    for request in &memory.requests {
        let responses = responses_to(request.operation, &request.token);
        evidence.expect(
            "every-request-has-a-response",
            !request.ended || !responses.is_empty(),
            || format!("{} {} got no response", request.operation, request.token),
        );
        let same = responses.windows(2).all(|two| two[0] == two[1]);
        evidence.expect("every-request-has-a-response", same, || {
            format!(
                "{} {} got different responses",
                request.operation, request.token
            )
        });
        let calm = evidence.world.profile.is_calm();
        evidence.expect(
            "every-request-has-a-response",
            !calm || responses.len() == 1,
            || {
                format!(
                    "{} {} got {} responses",
                    request.operation,
                    request.token,
                    responses.len()
                )
            },
        );
        let (Some(expected), Some(response)) = (&request.expected, responses.first()) else {
            continue;
        };
        let unavailable = response["code"] == "Unavailable" || response["code"] == "Throttled";
        let members = expected.as_object().into_iter().flatten();
        let matches = members
            .clone()
            .all(|(name, value)| response.get(name) == Some(value));
        evidence.expect("responses-are-correct", matches || unavailable, || {
            format!(
                "{} {}: {response} where {expected} is so",
                request.operation, request.token
            )
        });
    }
}
