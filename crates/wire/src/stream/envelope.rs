//! Reads the fields of every record of a stream event, and decodes the images that are needed.
//!
//! Fields are recorded as positions in the text; of an image that is not needed only the start, so that it can be decoded
//! later (`Record::images`). An invalid record is recorded with its fault and the fields found so far. It does not affect
//! other records.

use std::borrow::Cow;

use antumbra_registration::Operation;
use antumbra_shadow::scan::{ScannedString, Scanner, SyntaxError};
use antumbra_shadow::tape::Span;
use antumbra_shadow::text::unescape;

use super::skip::container_end;
use super::{EventError, Tape, attributes};
use crate::limits;

/// Position of a string in the event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Text {
    pub(crate) span: Span,
    pub(crate) escaped: bool,
}

impl From<ScannedString> for Text {
    fn from(string: ScannedString) -> Text {
        Text {
            span: Span::new(string.start, string.end),
            escaped: string.escaped,
        }
    }
}

impl Text {
    /// Returns the string without escapes. `text` is the event.
    pub(crate) fn of(self, text: &str) -> Cow<'_, str> {
        let raw = self.span.of(text);
        if self.escaped {
            unescape(raw)
        } else {
            Cow::Borrowed(raw)
        }
    }
}

/// One key attribute: its name and the text of its value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyEntry {
    pub(crate) name: Text,
    pub(crate) value: Text,
}

/// Start of an image, and its node if it is decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Image {
    pub(crate) start: u32,
    pub(crate) root: Option<u32>,
}

/// One record without its images.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entry {
    pub(crate) event_id: Option<Text>,
    pub(crate) operation: Option<Operation>,
    pub(crate) source_arn: Option<Text>,
    pub(crate) sequence_number: Option<Text>,
    pub(crate) created: Option<Span>,
    pub(crate) keys: [KeyEntry; limits::KEY_ATTRIBUTES],
    pub(crate) key_count: usize,
    pub(crate) has_change: bool,
    pub(crate) principal_is_dynamodb: bool,
    pub(crate) user_is_service: bool,
    pub(crate) old: Option<Image>,
    pub(crate) new: Option<Image>,
    /// Answer of [`Sink::needs_images`] for the keys. A record that is read has one.
    pub(crate) needs_images: Option<bool>,
    pub(crate) fault: Option<SyntaxError>,
}

/// Receives the records of an event, in the order of the stream.
pub(crate) trait Sink {
    /// A list of records begins. Of several lists the last counts, as in other JSON parsers.
    fn restart(&mut self);

    /// Returns whether the images of a record are needed. The record has its keys. Called at the first image behind the
    /// keys, and at the end of a record without such an image or with other keys after it.
    fn needs_images(&mut self, entry: &Entry, index: usize) -> bool;

    /// Takes a record, and the tape with its images if they are decoded.
    fn record(&mut self, entry: &Entry, index: usize, tape: &mut Tape);
}

/// Reads all records. `tape` holds the images of one record at a time.
pub(crate) fn read(text: &str, tape: &mut Tape, sink: &mut dyn Sink) -> Result<(), EventError> {
    let mut reader = Reader {
        scanner: Scanner::new(text),
        text,
    };
    reader.scanner.skip_space();
    let mut has_records = false;
    reader.members(|reader, name| {
        if reader.is(name, "Records") {
            has_records = true;
            return reader.records(tape, sink);
        }
        reader.skip_value().map_err(EventError::from)
    })?;
    reader.scanner.skip_space();
    if reader.scanner.peek().is_some() {
        return Err(reader.scanner.fault("text after the end").into());
    }
    if !has_records {
        return Err(EventError::NoRecords);
    }
    Ok(())
}

/// Ends [`first_source`] before the end of the event.
enum Stop {
    Found(Option<Text>),
    Unreadable,
}

impl From<SyntaxError> for Stop {
    fn from(_: SyntaxError) -> Stop {
        Stop::Unreadable
    }
}

/// Returns the `eventSource` of the first record. The text may be cut off after it.
pub(crate) fn first_source(text: &str) -> Option<Cow<'_, str>> {
    let mut reader = Reader {
        scanner: Scanner::new(text),
        text,
    };
    reader.scanner.skip_space();
    let read = reader.members(|reader, name| {
        if !reader.is(name, "Records") {
            return Ok(reader.skip_value()?);
        }
        reader.scanner.expect(b'[', "an array is expected")?;
        reader.scanner.skip_space();
        reader.members(|reader, name| match reader.is(name, "eventSource") {
            true => Err(Stop::Found(reader.text_or_null()?)),
            false => Ok(reader.skip_value()?),
        })?;
        Err(Stop::Found(None))
    });
    match read {
        Err(Stop::Found(source)) => source.map(|source| source.of(text)),
        _ => None,
    }
}

/// Destination of the images of a record.
struct ImageContext<'i> {
    index: usize,
    tape: &'i mut Tape,
    sink: &'i mut dyn Sink,
    was_asked: bool,
}

impl ImageContext<'_> {
    /// Asks once in a record, for its first keys. Images before them, and behind other keys, are skipped.
    fn are_needed(&mut self, entry: &mut Entry) -> bool {
        if !self.was_asked && entry.key_count > 0 {
            self.was_asked = true;
            entry.needs_images = Some(self.sink.needs_images(entry, self.index));
        }
        entry.needs_images == Some(true)
    }
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    text: &'a str,
}

impl<'a> Reader<'a> {
    /// Reads an object. Calls `member` with each name; it has to read or skip the value.
    #[inline]
    fn members<E: From<SyntaxError>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Text) -> Result<(), E>,
    ) -> Result<(), E> {
        self.scanner.expect(b'{', "an object is expected")?;
        self.scanner.skip_space();
        if self.scanner.peek() == Some(b'}') {
            self.scanner.at += 1;
            return Ok(());
        }
        loop {
            self.scanner.skip_space();
            let name = self.scanner.string()?.into();
            self.scanner.skip_space();
            self.scanner.expect(b':', "a colon is expected")?;
            self.scanner.skip_space();
            member(self, name)?;
            self.scanner.skip_space();
            match self.scanner.peek() {
                Some(b',') => self.scanner.at += 1,
                _ => {
                    return Ok(self
                        .scanner
                        .expect(b'}', "a comma or the end is expected")?);
                }
            }
        }
    }

    fn records(&mut self, tape: &mut Tape, sink: &mut dyn Sink) -> Result<(), EventError> {
        sink.restart();
        self.scanner.expect(b'[', "an array is expected")?;
        self.scanner.skip_space();
        if self.scanner.peek() == Some(b']') {
            self.scanner.at += 1;
            return Ok(());
        }
        for index in 0..limits::RECORDS {
            self.scanner.skip_space();
            tape.nodes.clear();
            let mut context = ImageContext {
                index,
                tape,
                sink,
                was_asked: false,
            };
            let mut entry = self.record(&mut context)?;
            if entry.fault.is_none() && entry.needs_images.is_none() {
                entry.needs_images = Some(sink.needs_images(&entry, index));
            }
            sink.record(&entry, index, tape);
            self.scanner.skip_space();
            match self.scanner.peek() {
                Some(b',') => self.scanner.at += 1,
                _ => {
                    return Ok(self
                        .scanner
                        .expect(b']', "a comma or the end is expected")?);
                }
            }
        }
        Err(EventError::TooManyRecords {
            limit: limits::RECORDS,
        })
    }

    /// Reads a record. Skips an invalid one up to its closing bracket; fails if there is none.
    fn record(&mut self, context: &mut ImageContext<'_>) -> Result<Entry, SyntaxError> {
        let start = self.scanner.at;
        let mut entry = Entry::default();
        let read = self.members(|reader, name| reader.record_member(name, &mut entry, context));
        if let Err(fault) = read {
            entry.fault = Some(fault);
            self.scanner.at = start;
            self.skip_value()?;
        } else {
            entry.fault = self.missing_field(&entry, start);
        }
        Ok(entry)
    }

    /// Returns a fault if a required field of a record is missing.
    fn missing_field(&self, entry: &Entry, offset: usize) -> Option<SyntaxError> {
        let reason = if entry.event_id.is_none() {
            "no eventID"
        } else if entry.operation.is_none() {
            "no eventName"
        } else if !entry.has_change {
            "no dynamodb"
        } else if entry.key_count == 0 {
            "no Keys"
        } else if entry.sequence_number.is_none() {
            "no SequenceNumber"
        } else {
            return None;
        };
        Some(SyntaxError { offset, reason })
    }

    fn record_member(
        &mut self,
        name: Text,
        entry: &mut Entry,
        context: &mut ImageContext<'_>,
    ) -> Result<(), SyntaxError> {
        match &*self.unescaped(name) {
            "eventID" => entry.event_id = self.text_or_null()?,
            "eventName" => entry.operation = self.operation()?,
            "eventSourceARN" => entry.source_arn = self.text_or_null()?,
            "userIdentity" if self.scanner.peek() == Some(b'{') => {
                self.members(|reader, name| reader.identity_member(name, entry))?;
            }
            "dynamodb" => {
                entry.has_change = true;
                self.members(|reader, name| reader.change_member(name, entry, context))?;
            }
            _ => self.skip_value()?,
        }
        Ok(())
    }

    fn change_member(
        &mut self,
        name: Text,
        entry: &mut Entry,
        context: &mut ImageContext<'_>,
    ) -> Result<(), SyntaxError> {
        match &*self.unescaped(name) {
            "SequenceNumber" => entry.sequence_number = self.text_or_null()?,
            "ApproximateCreationDateTime" => {
                let start = self.scanner.at;
                self.skip_value()?;
                entry.created = Some(Span::new(start, self.scanner.at));
            }
            "Keys" if self.scanner.peek() == Some(b'{') => {
                entry.key_count = 0;
                entry.needs_images = None;
                self.members(|reader, name| reader.key_member(name, entry))?;
            }
            "OldImage" => entry.old = self.image(entry, entry.new, context)?,
            "NewImage" => entry.new = self.image(entry, entry.old, context)?,
            _ => self.skip_value()?,
        }
        Ok(())
    }

    fn identity_member(&mut self, name: Text, entry: &mut Entry) -> Result<(), SyntaxError> {
        match &*self.unescaped(name) {
            "principalId" => {
                let principal = self.text_or_null()?;
                entry.principal_is_dynamodb =
                    principal.is_some_and(|text| self.is(text, "dynamodb.amazonaws.com"));
            }
            "type" => {
                let user = self.text_or_null()?;
                entry.user_is_service = user.is_some_and(|text| self.is(text, "Service"));
            }
            _ => self.skip_value()?,
        }
        Ok(())
    }

    /// Reads a key attribute, such as `"PK":{"S":"…"}`. Numbers and binary values are JSON strings too.
    fn key_member(&mut self, name: Text, entry: &mut Entry) -> Result<(), SyntaxError> {
        let previous = &entry.keys[..entry.key_count];
        if previous.len() == limits::KEY_ATTRIBUTES {
            return Err(self.scanner.fault("more than two key attributes"));
        }
        if previous
            .iter()
            .any(|key| self.unescaped(key.name) == self.unescaped(name))
        {
            return Err(self.scanner.fault("a key attribute twice"));
        }
        let mut value = None;
        self.members(|reader, value_type| {
            if value.is_some() || !matches!(&*reader.unescaped(value_type), "S" | "N" | "B") {
                return Err(reader.scanner.fault("a key of type S, N or B is expected"));
            }
            value = Some(reader.scanner.string()?.into());
            Ok(())
        })?;
        let Some(value) = value else {
            return Err(self.scanner.fault("a key of type S, N or B is expected"));
        };
        entry.keys[entry.key_count] = KeyEntry { name, value };
        entry.key_count += 1;
        Ok(())
    }

    fn operation(&mut self) -> Result<Option<Operation>, SyntaxError> {
        let Some(name) = self.text_or_null()? else {
            return Ok(None);
        };
        [
            ("MODIFY", Operation::Modify),
            ("INSERT", Operation::Insert),
            ("REMOVE", Operation::Remove),
        ]
        .into_iter()
        .find_map(|(text, operation)| self.is(name, text).then_some(operation))
        .map_or_else(
            || Err(self.scanner.fault("unknown eventName")),
            |found| Ok(Some(found)),
        )
    }

    /// Reads an image: decodes it if it is needed, and skips it otherwise. `None` if it is not an object.
    fn image(
        &mut self,
        entry: &mut Entry,
        other: Option<Image>,
        context: &mut ImageContext<'_>,
    ) -> Result<Option<Image>, SyntaxError> {
        let start = self.scanner.at;
        let is_object = self.scanner.peek() == Some(b'{');
        if is_object && context.are_needed(entry) {
            let nodes = &mut context.tape.nodes;
            let root = nodes.len() as u32;
            let other = other.and_then(|other| other.root);
            if let Ok(end) = attributes::decode(self.text, start, nodes, other) {
                self.scanner.at = end;
                return Ok(Some(Image {
                    start: start as u32,
                    root: Some(root),
                }));
            }
            // The fault is found again when the images are taken, if the rest of the record is valid.
        }
        self.skip_value()?;
        Ok(is_object.then_some(Image {
            start: start as u32,
            root: None,
        }))
    }

    fn text_or_null(&mut self) -> Result<Option<Text>, SyntaxError> {
        match self.scanner.peek() {
            Some(b'n') => self.scanner.word("null").map(|()| None),
            _ => Ok(Some(self.scanner.string()?.into())),
        }
    }

    fn skip_value(&mut self) -> Result<(), SyntaxError> {
        match self.scanner.peek() {
            Some(b'{' | b'[') => {
                let end = container_end(self.text.as_bytes(), self.scanner.at);
                self.scanner.at =
                    end.ok_or_else(|| self.scanner.fault("an object or array without its end"))?;
            }
            Some(b'"') => {
                self.scanner.string()?;
            }
            Some(b't') => self.scanner.word("true")?,
            Some(b'f') => self.scanner.word("false")?,
            Some(b'n') => self.scanner.word("null")?,
            _ => {
                self.scanner.number()?;
            }
        }
        Ok(())
    }

    fn unescaped(&self, text: Text) -> Cow<'a, str> {
        text.of(self.text)
    }

    fn is(&self, text: Text, expected: &str) -> bool {
        text.of(self.text) == expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs all images. Keeps the number of questions, and which images of each record are decoded.
    #[derive(Default)]
    struct Decoded {
        questions: usize,
        images: Vec<[Option<bool>; 2]>,
    }

    impl Sink for Decoded {
        fn restart(&mut self) {}

        fn needs_images(&mut self, _: &Entry, _: usize) -> bool {
            self.questions += 1;
            true
        }

        fn record(&mut self, entry: &Entry, _: usize, _: &mut Tape) {
            let is_decoded = |image: Image| image.root.is_some();
            self.images
                .push([entry.old, entry.new].map(|image| image.map(is_decoded)));
        }
    }

    #[test]
    fn images_behind_the_first_keys_are_decoded_in_the_same_pass() {
        let (keys, other_keys) = (r#""Keys":{"k":{"S":"a"}}"#, r#""Keys":{"k":{"S":"b"}}"#);
        let (old, new) = (
            r#""OldImage":{"a":{"N":"1"}}"#,
            r#""NewImage":{"a":{"N":"2"}}"#,
        );
        let broken = r#""NewImage":{"a":{"N":2}}"#;
        for (members, questions, images) in [
            (vec![keys, old, new], 1, [Some(true), Some(true)]),
            (vec![keys, new, old], 1, [Some(true), Some(true)]),
            (vec![keys, new], 1, [None, Some(true)]),
            (vec![old, keys, new], 1, [Some(false), Some(true)]),
            (vec![old, new, keys], 1, [Some(false), Some(false)]),
            (vec![keys, old, broken], 1, [Some(true), Some(false)]),
            (
                vec![keys, old, other_keys, new],
                2,
                [Some(true), Some(false)],
            ),
            (
                vec![keys, old, keys, old, keys, old, keys],
                2,
                [Some(false), None],
            ),
            (vec![keys], 1, [None, None]),
        ] {
            let members = members.join(",");
            let event = format!(
                r#"{{"Records":[{{"eventID":"e","eventName":"MODIFY","dynamodb":{{"SequenceNumber":"1",{members}}}}}]}}"#
            );
            let mut decoded = Decoded::default();
            read(&event, &mut Tape::default(), &mut decoded).unwrap();
            assert_eq!(decoded.images, [images], "{members}");
            assert_eq!(decoded.questions, questions, "{members}");
        }
    }
}
