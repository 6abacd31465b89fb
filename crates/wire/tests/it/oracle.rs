//! Two readers side by side: that of this crate, and serde_json into `aws_lambda_events`.

use std::collections::HashSet;
use std::fmt;

use antumbra_registration::Operation;
use antumbra_wire::stream::{
    EventError, Images, ReadRecord, Record, RecordHandler, StreamBatch, Tape, Undecodable,
    read_each,
};
use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::plain::Plain;

/// The results of reading an event both ways.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Both readers agree on this many records; ours rejects this many with good reason.
    Agreed { records: usize, refused: usize },
    /// serde_json rejects the event, so there is nothing to compare.
    Refused,
}

/// Reads an event both ways. An `Err` says where they differ.
pub(crate) fn compare(
    bytes: &[u8],
    batch: &mut StreamBatch,
    tape: &mut Tape,
) -> Result<Outcome, String> {
    let in_two_passes = batch.read(bytes).map(|records| {
        let records = records.iter();
        records
            .map(|record| described(record.and_then(|record| read(record, record.images(tape)?))))
            .collect()
    });
    for needed in [Needed::All, Needed::None, Needed::EverySecond] {
        let in_one_pass = in_one_pass(bytes, needed, tape);
        if in_one_pass != in_two_passes {
            return Err(format!(
                "{needed:?}: {in_one_pass:?} is not {in_two_passes:?}"
            ));
        }
    }
    let slow: Option<Event> = serde_json::from_slice(bytes).ok();
    let slow = slow.filter(|_| objects_are_objects(bytes));
    let fast = batch.read(bytes);
    // JSON is UTF-8; serde_json does not look at it in what it ignores.
    if std::str::from_utf8(bytes).is_err() {
        return match fast {
            Ok(_) => Err("not UTF-8, and read".to_owned()),
            Err(_) => Ok(Outcome::Refused),
        };
    }
    let Some(slow) = slow else {
        // Nothing to compare with, but nothing may go wrong either.
        if let Ok(records) = fast {
            for record in records.iter().flatten() {
                if let Ok(images) = record.images(tape) {
                    let _ = (
                        images.old.map(Plain::of_view),
                        images.new.map(Plain::of_view),
                    );
                }
            }
        }
        return Ok(Outcome::Refused);
    };
    let records = fast.map_err(|fault| format!("our reader rejects the event: {fault}"))?;
    if records.len() != slow.records.len() {
        return Err(format!(
            "{} records for {}",
            records.len(),
            slow.records.len()
        ));
    }
    let mut refused = 0;
    for (fast, slow) in records.iter().zip(slow.records) {
        match fast.and_then(|record| read(record, record.images(tape)?)) {
            Ok(fast) => agree(&fast, slow)?,
            Err(_) if has_excuse(bytes, &slow) => refused += 1,
            Err(fault) => return Err(format!("{fault}: {} {slow:?}", fault.fault)),
        }
    }
    Ok(Outcome::Agreed {
        records: records.len(),
        refused,
    })
}

/// Questions that are answered with yes.
#[derive(Debug, Clone, Copy)]
enum Needed {
    All,
    None,
    EverySecond,
}

/// The records of an event in one pass, or the reason why it cannot be read.
fn in_one_pass(bytes: &[u8], needed: Needed, tape: &mut Tape) -> Result<Vec<String>, EventError> {
    let mut each = Each {
        needed,
        questions: 0,
        records: Vec::new(),
    };
    read_each(bytes, tape, &mut each).map(|()| each.records)
}

struct Each {
    needed: Needed,
    questions: usize,
    records: Vec<String>,
}

impl RecordHandler for Each {
    fn restart(&mut self) {
        self.records.clear();
    }

    fn needs_images(&mut self, record: Record<'_>) -> bool {
        assert!(record.keys().len() > 0);
        self.questions += 1;
        match self.needed {
            Needed::All => true,
            Needed::None => false,
            Needed::EverySecond => self.questions.is_multiple_of(2),
        }
    }

    fn record(&mut self, record: Result<ReadRecord<'_>, Undecodable>) {
        let read = record.and_then(|one| read(one.record, one.images()?));
        self.records.push(described(read));
    }
}

/// Everything that a record says, or why it cannot be decoded.
fn described(read: Result<Read<'_>, Undecodable>) -> String {
    match read {
        Ok(Read { record, old, new }) => format!(
            "{} {} {} {:?} {:?} {:?} {} {:?} {old:?} {new:?}",
            record.index(),
            record.event_id(),
            record.sequence_number(),
            record.source_arn(),
            record.operation(),
            record.created_seconds(),
            record.expired(),
            record.keys().collect::<Vec<_>>(),
        ),
        Err(undecodable) => format!("{undecodable:?}"),
    }
}

/// serde's derived structs take an array of their fields in place of an object. No stream sends such.
fn objects_are_objects(bytes: &[u8]) -> bool {
    let Ok(event) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return false;
    };
    let records = event["Records"].as_array().into_iter().flatten();
    event.is_object()
        && records.clone().all(serde_json::Value::is_object)
        && records
            .flat_map(|record| [&record["dynamodb"], &record["userIdentity"]])
            .all(|part| !part.is_array())
}

/// The record as our reader returns it.
struct Read<'a> {
    record: Record<'a>,
    old: Option<Plain>,
    new: Option<Plain>,
}

fn read<'a>(record: Record<'a>, images: Images<'_>) -> Result<Read<'a>, Undecodable> {
    Ok(Read {
        record,
        old: images.old.map(Plain::of_view),
        new: images.new.map(Plain::of_view),
    })
}

fn agree(fast: &Read<'_>, slow: EventRecord) -> Result<(), String> {
    let record = fast.record;
    let same = |what: &str, fast: Option<String>, slow: Option<String>| {
        (fast == slow)
            .then_some(())
            .ok_or_else(|| format!("{what}: {fast:?} is not {slow:?}"))
    };
    let owned = |text: std::borrow::Cow<'_, str>| Some(text.into_owned());
    same("eventID", owned(record.event_id()), Some(slow.event_id))?;
    same(
        "ARN",
        record.source_arn().and_then(owned),
        slow.event_source_arn,
    )?;
    same(
        "sequence",
        owned(record.sequence_number()),
        slow.change.sequence_number,
    )?;
    let operation = record.operation().as_str().to_uppercase();
    same("operation", Some(operation), Some(slow.event_name))?;
    let expired = record.operation() == Operation::Remove
        && slow.user_identity.is_some_and(|user| {
            user.type_ == "Service" && user.principal_id == "dynamodb.amazonaws.com"
        });
    if expired != record.expired() {
        return Err(format!("expired: {expired}"));
    }
    let keys = record
        .keys()
        .map(|(name, value)| (name.into_owned(), value.into_owned()));
    let keys: std::collections::BTreeMap<_, _> = keys.collect();
    let Plain::Object(slow_keys) = Plain::of_item(slow.change.keys) else {
        return Err("keys".to_owned());
    };
    let slow_keys = slow_keys
        .into_iter()
        .filter_map(|(name, value)| match value {
            Plain::String(text) | Plain::Number(text) => Some((name, text)),
            _ => None,
        });
    if !keys
        .iter()
        .map(|(a, b)| (a.clone(), b.clone()))
        .eq(slow_keys)
    {
        return Err(format!("keys: {keys:?}"));
    }
    for (what, fast, slow) in [
        ("old", &fast.old, Plain::of_item(slow.change.old_image)),
        ("new", &fast.new, Plain::of_item(slow.change.new_image)),
    ] {
        let same = match fast {
            Some(fast) => *fast == slow,
            None => slow.is_empty_object(),
        };
        if !same {
            return Err(format!("{what} image: {fast:?} is not {slow:?}"));
        }
    }
    Ok(())
}

/// Reasons for our reader, which is stricter, to reject a record that serde_json accepts.
fn has_excuse(bytes: &[u8], slow: &EventRecord) -> bool {
    let images = [
        &slow.change.old_image,
        &slow.change.new_image,
        &slow.change.keys,
    ];
    let odd_number = images
        .iter()
        .any(|item| !Plain::of_item((*item).clone()).numbers_are_json());
    let keys = Plain::of_item(slow.change.keys.clone());
    let odd_keys = match &keys {
        Plain::Object(keys) => {
            keys.is_empty()
                || keys.len() > 2
                || keys
                    .values()
                    .any(|key| !matches!(key, Plain::String(_) | Plain::Number(_)))
        }
        _ => true,
    };
    // Numbers and types written with escapes, which nobody does, are refused.
    let escapes = bytes.contains(&b'\\');
    // Of two members of one name serde_json keeps the last and drops the other.
    odd_number
        || odd_keys
        || has_twins(bytes)
        || escapes
        || slow.change.sequence_number.is_none()
        || !["INSERT", "MODIFY", "REMOVE"].contains(&slow.event_name.as_str())
}

/// Returns `true` if some object of a JSON text has two members of one name.
pub(crate) fn has_twins(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Unique>(bytes).is_err()
}

/// Any JSON in which no object has two members of one name.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unique, D::Error> {
        deserializer.deserialize_any(Unique)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Unique, A::Error> {
        while list.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
        let mut names = HashSet::new();
        while let Some((name, _)) = map.next_entry::<String, Unique>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("two members of one name"));
            }
        }
        Ok(Unique)
    }
}
