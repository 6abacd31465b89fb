//! The notification that a target receives for a change, as JSON text.
//!
//! It is written directly from the event's text into a reused buffer. Its JSON Schema is [`SCHEMA`].

mod id;

use antumbra_registration::{Change, Form, Parts, Registration};
use antumbra_shadow::text::escape_into;

pub use id::NotificationId;

/// The JSON Schema of a notification.
pub const SCHEMA: &str = include_str!("../schema/notification.schema.json");

/// A notification exceeds the limit of its target, even without the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the notification has {bytes} bytes, the limit is {limit}")]
pub struct TooLarge {
    pub bytes: usize,
    pub limit: usize,
}

/// Writes the message of a registration to `out`, which is cleared first.
///
/// A message of more than `limit` bytes is shortened if its form allows that.
pub fn write_message(
    out: &mut String,
    id: NotificationId,
    registration: &Registration,
    change: &Change<'_>,
    limit: usize,
) -> Result<(), TooLarge> {
    match registration.form {
        Form::Notification => {
            let (name, parts) = (&registration.name, registration.send);
            let matched = registration.on.leaf.is_some().then_some(registration);
            write_parts_that_fit(out, id, name, change, parts, matched, limit)
        }
        Form::Key => {
            out.clear();
            write_key(out, change);
            within(out, limit)
        }
        // They need both documents of a shadow, which one change does not hold: see `crate::shadow_mqtt`.
        Form::ShadowDelta | Form::ShadowDocuments => {
            out.clear();
            Ok(())
        }
    }
}

fn within(out: &str, limit: usize) -> Result<(), TooLarge> {
    let bytes = out.len();
    if bytes > limit {
        return Err(TooLarge { bytes, limit });
    }
    Ok(())
}

/// Writes the key's attributes as an object, partition key first.
fn write_key(out: &mut String, change: &Change<'_>) {
    out.push('{');
    for (position, (name, value)) in change.key_attributes.iter().enumerate() {
        out.push_str(if position > 0 { ",\"" } else { "\"" });
        escape_into(out, name);
        out.push_str("\":\"");
        escape_into(out, value);
        out.push('"');
    }
    out.push('}');
}

/// Writes the notification of a change to `out`, which is cleared first.
///
/// If it has more than `limit` bytes, the old document, then the new one, then the diff are left out, and `truncated`
/// names them.
pub fn write(
    out: &mut String,
    id: NotificationId,
    registration: &str,
    change: &Change<'_>,
    parts: Parts,
    limit: usize,
) -> Result<(), TooLarge> {
    write_parts_that_fit(out, id, registration, change, parts, None, limit)
}

/// The same with the leaves that a registration matched, which are left out last.
fn write_parts_that_fit(
    out: &mut String,
    id: NotificationId,
    name: &str,
    change: &Change<'_>,
    parts: Parts,
    mut matched: Option<&Registration>,
    limit: usize,
) -> Result<(), TooLarge> {
    out.clear();
    write_head(out, id, name, change);
    let head = out.len();
    let mut remaining = Parts {
        old: parts.old && change.old.is_some(),
        new: parts.new && change.new.is_some(),
        diff: parts.diff,
    };
    let mut left_out = Vec::new();
    while !write_parts(out, change, remaining, matched, &left_out, limit) {
        let (part, name) = match remaining {
            Parts { old: true, .. } => (&mut remaining.old, "old"),
            Parts { new: true, .. } => (&mut remaining.new, "new"),
            Parts { diff: true, .. } => (&mut remaining.diff, "diff"),
            _ if matched.take().is_some() => {
                left_out.push("matched");
                out.truncate(head);
                continue;
            }
            _ => {
                let bytes = out.len();
                return Err(TooLarge { bytes, limit });
            }
        };
        *part = false;
        left_out.push(name);
        out.truncate(head);
    }
    Ok(())
}

/// Writes a change in the format of a notification, without id and registration, to `out`, which is cleared
/// first.
pub fn write_change(out: &mut String, change: &Change<'_>, parts: Parts) {
    out.clear();
    out.push('{');
    write_facts(out, change);
    write_parts(out, change, parts, None, &[], usize::MAX);
}

fn write_head(out: &mut String, id: NotificationId, registration: &str, change: &Change<'_>) {
    out.push_str("{\"id\":\"");
    id.write(out);
    out.push_str("\",\"registration\":\"");
    escape_into(out, registration);
    out.push_str("\",");
    write_facts(out, change);
}

fn write_facts(out: &mut String, change: &Change<'_>) {
    out.push_str("\"key\":\"");
    escape_into(out, change.key);
    if let Some(shadow) = change.shadow {
        out.push_str("\",\"shadow\":{\"id\":\"");
        escape_into(out, shadow.id);
        out.push_str("\",\"name\":\"");
        escape_into(out, shadow.name);
        out.push_str("\",\"state\":\"");
        out.push_str(shadow.state.as_str());
        out.push_str("\"},\"operation\":\"");
    } else {
        out.push_str("\",\"operation\":\"");
    }
    out.push_str(change.operation.as_str());
    out.push('"');
    if change.expired {
        out.push_str(",\"expired\":true");
    }
    let mut digits = itoa::Buffer::new();
    if let Some(version) = change.version {
        out.push_str(",\"version\":");
        out.push_str(digits.format(version));
    }
    if let Some(version) = change.previous_version {
        out.push_str(",\"previousVersion\":");
        out.push_str(digits.format(version));
    }
    if let Some(timestamp) = change.timestamp {
        out.push_str(",\"timestamp\":");
        out.push_str(digits.format(timestamp));
    }
    if let Some(token) = change.client_token {
        out.push_str(",\"clientToken\":\"");
        escape_into(out, token);
        out.push('"');
    }
}

/// Returns `false` if there are more than `limit` bytes; a diff or a list of leaves that is too large is not written to
/// its end. `matched` is the registration whose matched leaves are listed.
fn write_parts(
    out: &mut String,
    change: &Change<'_>,
    parts: Parts,
    matched: Option<&Registration>,
    left_out: &[&str],
    limit: usize,
) -> bool {
    if let Some(old) = change.old.filter(|_| parts.old) {
        out.push_str(",\"old\":");
        old.write_json(out);
    }
    if let Some(new) = change.new.filter(|_| parts.new) {
        out.push_str(",\"new\":");
        new.write_json(out);
    }
    if parts.diff {
        out.push_str(",\"diff\":");
        let rest = limit.saturating_sub(out.len());
        if !change.diff.diff().write_json(out, rest) {
            return false;
        }
    }
    if let Some(registration) = matched
        && !write_matched(out, registration, change, limit)
    {
        return false;
    }
    if !left_out.is_empty() {
        out.push_str(",\"truncated\":[\"");
        out.push_str(&left_out.join("\",\""));
        out.push_str("\"]");
    }
    out.push('}');
    out.len() <= limit
}

/// Writes the leaves that a registration matched; returns `false` if the text has more than `limit` bytes.
fn write_matched(
    out: &mut String,
    registration: &Registration,
    change: &Change<'_>,
    limit: usize,
) -> bool {
    out.push_str(",\"matched\":[");
    let start = out.len();
    registration.each_matched_leaf(change, &mut |leaf| {
        if out.len() > limit {
            return;
        }
        out.push_str(if out.len() > start { ",{" } else { "{" });
        out.push_str("\"path\":\"");
        leaf.pointer.write_escaped(out);
        out.push_str("\",\"change\":\"");
        out.push_str(leaf.change.as_str());
        out.push('"');
        for (name, value) in [(",\"old\":", leaf.old), (",\"new\":", leaf.new)] {
            if let Some(value) = value {
                out.push_str(name);
                value.write_json(out);
            }
        }
        out.push('}');
    });
    out.push(']');
    out.len() <= limit
}
