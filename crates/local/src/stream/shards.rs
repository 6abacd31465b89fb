//! Selects the shards of a stream that can be read now. Pure.
//!
//! Records of a child shard are newer than those of its parent, so a parent is read to its end first.

use std::collections::HashSet;

use antumbra_dynamodb::streams::Shard;

/// Returns the shards to start reading: neither finished nor being read, with a parent that is finished or no longer
/// exists.
pub(crate) fn ready(
    shards: &[Shard],
    finished: impl Fn(&str) -> bool,
    reading: impl Fn(&str) -> bool,
) -> Vec<&str> {
    let known: HashSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
    let parent_done =
        |parent: &String| !known.contains(parent.as_str()) || finished(parent.as_str());
    shards
        .iter()
        .filter(|shard| !finished(&shard.id) && !reading(&shard.id))
        .filter(|shard| shard.parent.as_ref().is_none_or(parent_done))
        .map(|shard| shard.id.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family() -> Vec<Shard> {
        let shard = |id: &str, parent: Option<&str>| Shard {
            id: id.into(),
            parent: parent.map(Into::into),
        };
        vec![
            shard("child-1", Some("root")),
            shard("child-2", Some("root")),
            shard("root", Some("trimmed long ago")),
            shard("grandchild", Some("child-1")),
        ]
    }

    #[test]
    fn parents_come_before_children() {
        let cases: &[(&[&str], &[&str])] = &[
            (&[], &["root"]),
            (&["root"], &["child-1", "child-2"]),
            (&["root", "child-1"], &["child-2", "grandchild"]),
            (&["root", "child-1", "child-2", "grandchild"], &[]),
        ];
        for (finished, expected) in cases {
            let family = family();
            let started = ready(&family, |id| finished.contains(&id), |_| false);
            assert_eq!(&started, expected, "finished: {finished:?}");
        }
    }

    #[test]
    fn a_shard_is_read_once_at_a_time() {
        let family = family();
        assert!(ready(&family, |_| false, |id| id == "root").is_empty());
    }
}
