//! Decodes DynamoDB stream events into records and images.
//!
//! A record without a matching registration is cheap, because its images are skipped. [`read_each`] asks for each record,
//! as soon as its keys are known, whether its images are needed, and decodes them in the same pass. [`StreamBatch::read`]
//! skips all images; [`Record::images`] decodes those of one record when they are needed. With warm buffers nothing is
//! allocated, and nothing is copied: all values point into the event's text.

mod attributes;
mod envelope;
mod skip;

use std::borrow::Cow;

use antumbra_registration::Operation;
use antumbra_shadow::View;
use antumbra_shadow::scan::SyntaxError;
use antumbra_shadow::tape::Node;

use crate::limits;
use envelope::{Entry, Image, Sink, Text};

/// The reason why a whole event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is not JSON, or the boundaries of its records are unclear.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error("not UTF-8 after byte {valid}")]
    NotUtf8 { valid: usize },
    #[error("the event has no Records")]
    NoRecords,
    #[error("more than {limit} records")]
    TooManyRecords { limit: usize },
    #[error("the event has {bytes} bytes, the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
}

/// Bytes in which AWS writes the source of a stream's first record.
const HEAD_BYTES: usize = 4096;

/// The `eventSource` of the first record of an event, which distinguishes a queue from a stream.
///
/// ```
/// use antumbra_wire::stream::event_source;
///
/// let event = br#"{"Records":[{"messageId":"1","body":"{}","eventSource":"aws:sqs"}]}"#;
/// assert_eq!(event_source(event).as_deref(), Some("aws:sqs"));
/// ```
pub fn event_source(event: &[u8]) -> Option<Cow<'_, str>> {
    let head = event.get(..HEAD_BYTES).unwrap_or(event);
    let head = head.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let source = envelope::first_source(head);
    if source.is_some() || event.len() <= HEAD_BYTES {
        return source;
    }
    envelope::first_source(std::str::from_utf8(event).ok()?)
}

/// Reusable buffer for the records of an event.
#[derive(Debug, Default)]
pub struct StreamBatch {
    entries: Vec<Entry>,
}

impl StreamBatch {
    /// Reads everything but the images.
    pub fn read<'a>(&'a mut self, event: &'a [u8]) -> Result<Records<'a>, EventError> {
        self.entries.clear();
        let text = event_text(event)?;
        envelope::read(text, &mut Tape::default(), &mut Collect(&mut self.entries))?;
        Ok(Records {
            text,
            entries: &self.entries,
        })
    }
}

fn event_text(event: &[u8]) -> Result<&str, EventError> {
    if event.len() > limits::EVENT_BYTES {
        return Err(EventError::TooLong {
            bytes: event.len(),
            limit: limits::EVENT_BYTES,
        });
    }
    std::str::from_utf8(event).map_err(|error| EventError::NotUtf8 {
        valid: error.valid_up_to(),
    })
}

/// Keeps all records.
struct Collect<'e>(&'e mut Vec<Entry>);

impl Sink for Collect<'_> {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn needs_images(&mut self, _: &Entry, _: usize) -> bool {
        false
    }

    fn record(&mut self, entry: &Entry, _: usize, _: &mut Tape) {
        self.0.push(*entry);
    }
}

/// Handles the records of an event while they are read, in the order of the stream.
pub trait RecordHandler {
    /// The list of records begins. If an event has several lists, only the last counts: records before it are to be
    /// forgotten.
    fn restart(&mut self);

    /// Returns whether the images of a record are needed. Of the record only the keys are complete. If a record names its
    /// keys twice, the last answer is that for its last keys.
    fn needs_images(&mut self, record: Record<'_>) -> bool;

    /// Handles a record, or the reason why it cannot be decoded.
    fn record(&mut self, record: Result<ReadRecord<'_>, Undecodable>);
}

/// A record that was read in one pass.
#[derive(Debug)]
pub struct ReadRecord<'a> {
    pub record: Record<'a>,
    tape: &'a mut Tape,
}

impl<'a> ReadRecord<'a> {
    /// Returns whether the images are needed, as the handler answered for the keys.
    pub fn needs_images(&self) -> bool {
        self.record.entry.needs_images == Some(true)
    }

    /// Returns the images. Those that were not decoded while the event was read are decoded now.
    pub fn images(self) -> Result<Images<'a>, Undecodable> {
        let Entry { old, new, .. } = *self.record.entry;
        let is_decoded = |image: Option<Image>| image.is_none_or(|image| image.root.is_some());
        if !is_decoded(old) || !is_decoded(new) {
            return self.record.images(self.tape);
        }
        let root = |image: Option<Image>| image?.root;
        Ok(self.tape.images(self.record.text, root(old), root(new)))
    }
}

/// Reads an event in one pass. If it fails, the records that were handled before do not count.
pub fn read_each(
    event: &[u8],
    tape: &mut Tape,
    handler: &mut impl RecordHandler,
) -> Result<(), EventError> {
    let text = event_text(event)?;
    envelope::read(text, tape, &mut HandlerSink { text, handler })
}

struct HandlerSink<'h, H> {
    text: &'h str,
    handler: &'h mut H,
}

impl<H: RecordHandler> Sink for HandlerSink<'_, H> {
    fn restart(&mut self) {
        self.handler.restart();
    }

    fn needs_images(&mut self, entry: &Entry, index: usize) -> bool {
        let text = self.text;
        self.handler.needs_images(Record { text, entry, index })
    }

    fn record(&mut self, entry: &Entry, index: usize, tape: &mut Tape) {
        let text = self.text;
        let record = Record { text, entry, index }.checked();
        let record = record.map(|record| ReadRecord { record, tape });
        self.handler.record(record);
    }
}

/// The records of an event, in the order of the stream.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    text: &'a str,
    entries: &'a [Entry],
}

impl<'a> Records<'a> {
    /// Number of records, including those that cannot be decoded.
    pub fn len(self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(self, index: usize) -> Option<Result<Record<'a>, Undecodable>> {
        self.iter().nth(index)
    }

    /// Each record, or why it cannot be decoded.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Result<Record<'a>, Undecodable>> {
        let Records { text, entries } = self;
        let records = entries.iter().enumerate();
        records.map(move |(index, entry)| Record { text, entry, index }.checked())
    }
}

/// A record that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {index} cannot be decoded")]
pub struct Undecodable {
    /// Its position in the event.
    pub index: usize,
    pub event_id: Option<String>,
    pub sequence_number: Option<String>,
    #[source]
    pub fault: SyntaxError,
}

/// One change of one item.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    text: &'a str,
    entry: &'a Entry,
    index: usize,
}

/// An image of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Old,
    New,
}

impl<'a> Record<'a> {
    /// Its position in the event.
    pub fn index(self) -> usize {
        self.index
    }

    fn text(self, text: Option<Text>) -> Option<Cow<'a, str>> {
        text.map(|text| text.of(self.text))
    }

    /// The id of the stream event, the same at every delivery.
    pub fn event_id(self) -> Cow<'a, str> {
        self.text(self.entry.event_id).unwrap_or_default()
    }

    /// Its sequence number, which batch item failures name.
    pub fn sequence_number(self) -> Cow<'a, str> {
        self.text(self.entry.sequence_number).unwrap_or_default()
    }

    pub fn source_arn(self) -> Option<Cow<'a, str>> {
        self.text(self.entry.source_arn)
    }

    pub fn operation(self) -> Operation {
        // A record without an operation is never returned.
        self.entry.operation.unwrap_or(Operation::Modify)
    }

    /// The table's time to live removed the item.
    pub fn expired(self) -> bool {
        self.operation() == Operation::Remove
            && self.entry.principal_is_dynamodb
            && self.entry.user_is_service
    }

    /// Approximate time of the write, in seconds since 1970.
    pub fn created_seconds(self) -> Option<f64> {
        self.entry.created?.of(self.text).parse().ok()
    }

    /// The key attributes by name: strings, and the texts of numbers and binary values.
    pub fn keys(self) -> impl ExactSizeIterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        let text = self.text;
        self.entry.keys[..self.entry.key_count]
            .iter()
            .map(move |key| (key.name.of(text), key.value.of(text)))
    }

    pub fn key(self, name: &str) -> Option<Cow<'a, str>> {
        self.keys().find(|key| key.0 == name).map(|key| key.1)
    }

    /// The record has this image.
    pub fn has(self, side: Side) -> bool {
        match side {
            Side::Old => self.entry.old.is_some(),
            Side::New => self.entry.new.is_some(),
        }
    }

    /// An image that the operation should have and the record lacks: the stream's view type is not
    /// `NEW_AND_OLD_IMAGES`.
    pub fn missing_image(self) -> Option<Side> {
        let called_for: &[Side] = match self.operation() {
            Operation::Insert => &[Side::New],
            Operation::Modify => &[Side::Old, Side::New],
            Operation::Remove => &[Side::Old],
        };
        called_for.iter().copied().find(|side| !self.has(*side))
    }

    /// Decodes the images onto the tape, which is cleared first.
    pub fn images<'t>(self, tape: &'t mut Tape) -> Result<Images<'t>, Undecodable>
    where
        'a: 't,
    {
        tape.nodes.clear();
        let mut decode = |image: Option<Image>, other: Option<u32>| {
            let Some(image) = image else { return Ok(None) };
            let root = tape.nodes.len() as u32;
            attributes::decode(self.text, image.start as usize, &mut tape.nodes, other)
                .map_err(|fault| self.undecodable(fault))?;
            Ok(Some(root))
        };
        let old = decode(self.entry.old, None)?;
        let new = decode(self.entry.new, old)?;
        Ok(tape.images(self.text, old, new))
    }

    fn checked(self) -> Result<Record<'a>, Undecodable> {
        match self.entry.fault {
            Some(fault) => Err(self.undecodable(fault)),
            None => Ok(self),
        }
    }

    fn undecodable(self, fault: SyntaxError) -> Undecodable {
        Undecodable {
            index: self.index,
            event_id: self.text(self.entry.event_id).map(Cow::into_owned),
            sequence_number: self.text(self.entry.sequence_number).map(Cow::into_owned),
            fault,
        }
    }
}

/// Reusable buffer for the images of a record.
#[derive(Debug, Default)]
pub struct Tape {
    nodes: Vec<Node>,
}

impl Tape {
    /// The images with these roots. `text` is the event.
    fn images<'t>(&'t self, text: &'t str, old: Option<u32>, new: Option<u32>) -> Images<'t> {
        let view = |root| View::new(text, &self.nodes).at(root);
        Images {
            old: old.map(view),
            new: new.map(view),
        }
    }

    /// Gives back memory beyond that of this many nodes.
    pub fn shrink_to(&mut self, nodes: usize) {
        self.nodes.clear();
        self.nodes.shrink_to(nodes);
    }
}

/// The images of a record as plain JSON values that point into the event's text.
#[derive(Debug, Clone, Copy)]
pub struct Images<'a> {
    /// The item before, with all its attributes.
    pub old: Option<View<'a>>,
    /// The item after.
    pub new: Option<View<'a>>,
}
