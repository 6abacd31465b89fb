//! The decision: an event's bytes to the messages that are to be sent.
//!
//! Pure. Decoding and matching use buffers that are kept from event to event; the texts to be sent lie in
//! one arena per event, so that a record costs no allocation of its own until its message is made.

use std::ops::Range;

use antumbra_registration::{
    Change, DiffCell, Form, RegistrationId, Registrations, Scratch, plan, wants,
};
use antumbra_service::notifications::{Message, Outbox, attribute_bytes};
use antumbra_service::sensors::{SensorEvent, State};
use antumbra_shadow::{DiffBuffer, Model, Timestamp, View};
use antumbra_wire::items::{ItemChange, ItemKey, ItemKind, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::shadow_mqtt::{write_delta, write_documents};
use antumbra_wire::stream::{EventError, Record, Side, StreamBatch, Tape, Undecodable};

use crate::deliveries::PendingDelivery;
use crate::routes::{self, Routes};
use crate::shadow_messages::{
    self, Found, Other, ShadowChange, ShadowMessage, Subscriber, whole_arrays,
};
use crate::undeliverable::Undeliverable;

/// Room for planning, kept from event to event.
#[derive(Default)]
pub(crate) struct Buffers {
    batch: StreamBatch,
    tape: Tape,
    key: KeyBuffer,
    diff: DiffBuffer,
    scratch: Scratch,
    body: String,
}

/// A message to be sent: where its texts lie in the arena, and whose it is.
struct Entry {
    record: u32,
    registration: RegistrationId,
    channel: u32,
    id: NotificationId,
    key: Range<u32>,
    body: Range<u32>,
    topic: Option<Range<u32>>,
    /// Which of the plan's attributes are its own.
    attributes: Range<u32>,
    attribute_bytes: u32,
}

/// All that an event asks for.
pub(crate) struct Plan<'l> {
    registrations: &'l Registrations,
    entries: Vec<Entry>,
    /// Names and values.
    attributes: Vec<(Range<u32>, Range<u32>)>,
    /// The sequence number of each record; empty where none was found.
    sequence_numbers: Vec<Range<u32>>,
    arena: String,
    /// What clients are to be told; whom, is not known yet.
    pub(crate) to_tell: Vec<PendingDelivery>,
    /// What can never be sent.
    pub(crate) parked: Vec<Undeliverable>,
    /// Changes of shadows that are told of with both documents.
    pending: Vec<ShadowChange>,
    /// Records to be looked at again.
    pub(crate) undone: Vec<usize>,
    /// Records that at least one registration wanted.
    pub(crate) wanted: usize,
    /// The time of the oldest record, in seconds since 1970.
    pub(crate) oldest_seconds: Option<f64>,
}

impl<'l> Plan<'l> {
    pub(crate) fn of(
        event: &[u8],
        registrations: &'l Registrations,
        routes: &Routes,
        model: &Model,
        buffers: &mut Buffers,
    ) -> Result<Plan<'l>, EventError> {
        let mut plan = Plan {
            registrations,
            entries: Vec::new(),
            attributes: Vec::new(),
            sequence_numbers: Vec::new(),
            arena: String::new(),
            to_tell: Vec::new(),
            parked: Vec::new(),
            pending: Vec::new(),
            undone: Vec::new(),
            wanted: 0,
            oldest_seconds: None,
        };
        let Buffers {
            batch,
            tape,
            key,
            diff,
            scratch,
            body,
        } = buffers;
        let records = batch.read(event)?;
        plan.sequence_numbers.reserve(records.len());
        let mut rest = Rest {
            tape,
            key,
            diff,
            scratch,
            body,
        };
        for record in records.iter() {
            let planned = record.and_then(|record| plan.record(record, routes, model, &mut rest));
            if let Err(undecodable) = planned {
                plan.undecodable(undecodable);
            }
        }
        Ok(plan)
    }

    fn record(
        &mut self,
        record: Record<'_>,
        routes: &Routes,
        model: &Model,
        rest: &mut Rest<'_>,
    ) -> Result<(), Undecodable> {
        let key = rest.key.read(record);
        if !key.item.notifies() {
            self.seen(record);
            return Ok(());
        }
        if !wants(
            self.registrations,
            key.text,
            key.item.shadow().is_some(),
            rest.scratch,
        ) {
            self.seen(record);
            return Ok(());
        }
        if let Some(side) = record.missing_image() {
            let image = if side == Side::Old { "old" } else { "new" };
            self.seen(record);
            self.parked.push(Undeliverable::record(
                record,
                key.text,
                format!("the stream carries no {image} image"),
            ));
            return Ok(());
        }
        let images = record.images(rest.tape)?;
        self.seen(record);
        let item = ItemChange::new(record, key, images);
        let before = (self.entries.len(), self.to_tell.len());
        let mut pending: Option<ShadowChange> = None;
        for document in item.documents() {
            let cell = DiffCell::new(document.old, document.new, model).in_buffer(rest.diff);
            let change = item.change(document, &cell);
            if routes.of_shadows && pending.is_none() {
                pending = ShadowChange::new(record.index(), &item, &change);
            }
            // What is matched is in the scratch; the loop below needs the scratch no more.
            let matched = plan(self.registrations, &change, rest.scratch);
            for &id in matched {
                match &mut pending {
                    Some(pending) if self.registrations[id].form.is_of_shadows() => {
                        self.want(record, id, &change, routes, pending);
                    }
                    _ => self.notify(record, id, &change, routes, rest.body),
                }
            }
        }
        let pending = pending.filter(ShadowChange::matters);
        let told = pending
            .as_ref()
            .is_some_and(|pending| !pending.wanted.is_empty());
        self.pending.extend(pending);
        self.wanted += usize::from(told || (self.entries.len(), self.to_tell.len()) > before);
        Ok(())
    }

    /// Notes that a registration wants to hear of a shadow's change: once, whichever half it matched.
    fn want(
        &mut self,
        record: Record<'_>,
        id: RegistrationId,
        change: &Change<'_>,
        routes: &Routes,
        pending: &mut ShadowChange,
    ) {
        let registration = &self.registrations[id];
        let known = pending
            .wanted
            .iter()
            .any(|wanted| wanted.registration == id);
        let Some(channel) = routes.channel(id).filter(|_| !known) else {
            return;
        };
        let notification = NotificationId::new(&record.event_id(), &registration.name, None);
        let topic = match &registration.to {
            antumbra_registration::Target::Mqtt(mqtt) => match mqtt.topic.render(change) {
                Ok(topic) => Some(topic),
                Err(fault) => {
                    self.parked.push(Undeliverable::notification(
                        record,
                        notification,
                        change.key,
                        &registration.name,
                        fault.to_string(),
                        None,
                    ));
                    return;
                }
            },
            _ => None,
        };
        let mut attributes = Vec::new();
        let mut bytes = 0;
        routes::each_attribute(registration, change, |name, value| {
            bytes += attribute_bytes(name, value);
            attributes.push((name.to_owned(), value.to_owned()));
        });
        pending.wanted.push(Subscriber {
            registration: id,
            channel,
            id: notification,
            topic,
            attributes,
            limit: routes.body_limit(channel, bytes),
        });
    }

    /// The documents that have to be read to tell of changes of shadows.
    pub(crate) fn missing(&self) -> Vec<Other> {
        shadow_messages::missing(&self.pending)
    }

    /// Makes the messages that are made of both documents of a shadow.
    pub(crate) fn complete(&mut self, found: &Found, model: &Model) {
        let pending = std::mem::take(&mut self.pending);
        let sequence_number = |record: usize| self.sequence_number(record).to_owned();
        let resolved =
            shadow_messages::resolve(&pending, found, self.registrations, &sequence_number);
        self.undone.extend(resolved.undone);
        self.parked.extend(resolved.parked);
        let model = whole_arrays(model);
        let mut body = String::new();
        for told in resolved.told {
            for wanted in &told.wanted {
                self.tell(&told, wanted, &model, &mut body);
            }
        }
    }

    fn tell(
        &mut self,
        told: &ShadowMessage<'_>,
        wanted: &Subscriber,
        model: &Model,
        body: &mut String,
    ) {
        let registration = &self.registrations[wanted.registration];
        let pending = told.pending;
        let (seconds, token) = (pending.seconds, pending.client_token.as_deref());
        let written = match registration.form {
            Form::ShadowDelta => {
                write_delta(body, &told.after, model, seconds, token, wanted.limit)
            }
            _ => {
                let (before, after) = (&told.before, &told.after);
                write_documents(body, before, after, seconds, token, wanted.limit).map(|()| true)
            }
        };
        match written {
            Ok(true) => {}
            Ok(false) => return,
            Err(too_large) => {
                let message = Message {
                    id: wanted.id.to_string(),
                    key: pending.key.clone(),
                    ..Message::default()
                };
                self.parked.push(Undeliverable::refused(
                    pending.record,
                    self.sequence_number(pending.record),
                    &registration.name,
                    &message,
                    &too_large.to_string(),
                ));
                return;
            }
        }
        let from = self.attributes.len() as u32;
        let mut bytes = 0;
        for (name, value) in &wanted.attributes {
            bytes += attribute_bytes(name, value);
            let attribute = (put(&mut self.arena, name), put(&mut self.arena, value));
            self.attributes.push(attribute);
        }
        let entry = Entry {
            record: pending.record as u32,
            registration: wanted.registration,
            channel: wanted.channel as u32,
            id: wanted.id,
            key: self.put(&pending.order),
            body: self.put(body),
            topic: wanted.topic.as_ref().map(|topic| self.put(topic)),
            attributes: from..self.attributes.len() as u32,
            attribute_bytes: bytes as u32,
        };
        self.entries.push(entry);
    }

    fn seen(&mut self, record: Record<'_>) {
        let sequence_number = self.put(&record.sequence_number());
        self.sequence_numbers.push(sequence_number);
        if let Some(seconds) = record.created_seconds() {
            self.oldest_seconds = Some(
                self.oldest_seconds
                    .map_or(seconds, |oldest| oldest.min(seconds)),
            );
        }
    }

    fn undecodable(&mut self, undecodable: Undecodable) {
        let sequence_number = self.put(undecodable.sequence_number.as_deref().unwrap_or_default());
        self.sequence_numbers.push(sequence_number);
        self.parked.push(Undeliverable::undecodable(undecodable));
    }

    fn notify(
        &mut self,
        record: Record<'_>,
        id: RegistrationId,
        change: &Change<'_>,
        routes: &Routes,
        body: &mut String,
    ) {
        let registration = &self.registrations[id];
        if matches!(registration.to, antumbra_registration::Target::Clients(_)) {
            return self.tell_clients(record, id, change);
        }
        let Some(channel) = routes.channel(id) else {
            return;
        };
        let state = change.shadow.map(|shadow| shadow.state);
        let notification = NotificationId::new(&record.event_id(), &registration.name, state);
        let mut bytes = 0;
        routes::each_attribute(registration, change, |name, value| {
            bytes += attribute_bytes(name, value);
        });
        let limit = routes.body_limit(channel, bytes);
        let mut refuse = |reason: String, with: Option<&str>| {
            self.parked.push(Undeliverable::notification(
                record,
                notification,
                change.key,
                &registration.name,
                reason,
                with,
            ));
        };
        if let Err(too_large) =
            notification::write_message(body, notification, registration, change, limit)
        {
            return refuse(too_large.to_string(), None);
        }
        let topic = match &registration.to {
            antumbra_registration::Target::Mqtt(mqtt) => match mqtt.topic.render(change) {
                Ok(topic) => Some(topic),
                Err(fault) => return refuse(fault.to_string(), Some(body)),
            },
            _ => None,
        };
        let key = self.put(change.key);
        let body = self.put(body);
        let topic = topic.map(|topic| self.put(&topic));
        let from = self.attributes.len() as u32;
        routes::each_attribute(registration, change, |name, value| {
            let attribute = (put(&mut self.arena, name), put(&mut self.arena, value));
            self.attributes.push(attribute);
        });
        self.entries.push(Entry {
            record: record.index() as u32,
            registration: id,
            channel: channel as u32,
            id: notification,
            key,
            body,
            topic,
            attributes: from..self.attributes.len() as u32,
            attribute_bytes: bytes as u32,
        });
    }

    /// What a change of a sensor's state tells its clients. Nothing else has any, and however many
    /// registrations want it told, it is told once.
    fn tell_clients(
        &mut self,
        record: Record<'_>,
        registration: RegistrationId,
        change: &Change<'_>,
    ) {
        let is_told = |told: &PendingDelivery| told.record == record.index();
        if !is_state(change) || self.to_tell.last().is_some_and(is_told) {
            return;
        }
        let Some(new) = change.new else {
            return;
        };
        let read = |view: View<'_>| State::read(&view);
        let states = change
            .old
            .map(read)
            .transpose()
            .and_then(|old| Ok((old, read(new)?)));
        let (old, new) = match states {
            Ok(states) => states,
            Err(fault) => {
                return self.parked.push(Undeliverable::record(
                    record,
                    change.key,
                    fault.to_string(),
                ));
            }
        };
        let written = record
            .created_seconds()
            .map(|seconds| Timestamp::from_nanoseconds((seconds * 1e9) as i128));
        let pending = |event| PendingDelivery {
            record: record.index(),
            registration,
            event,
            written,
        };
        let events = SensorEvent::between(old.as_ref(), &new);
        self.to_tell.extend(events.into_iter().map(pending));
    }

    fn put(&mut self, text: &str) -> Range<u32> {
        put(&mut self.arena, text)
    }

    fn text(&self, range: &Range<u32>) -> &str {
        &self.arena[range.start as usize..range.end as usize]
    }

    /// What occurred at a sensor whose links cannot be read, to be parked.
    pub(crate) fn unaddressed(&self, position: usize, reason: &str) -> Undeliverable {
        let PendingDelivery {
            record,
            registration,
            event,
            ..
        } = &self.to_tell[position];
        let message = Message {
            id: event.id(),
            key: format!(
                "{}#{}",
                ItemKind::SensorState.partition(event.sensor.as_str()),
                ItemKind::SensorState.sort("")
            ),
            ..Message::default()
        };
        let sequence_number = self.sequence_number(*record);
        let registration = self.name_of(*registration);
        Undeliverable::refused(*record, sequence_number, registration, &message, reason)
    }

    /// How many records there are.
    pub(crate) fn records(&self) -> usize {
        self.sequence_numbers.len()
    }

    /// Where a record stands in the stream.
    pub(crate) fn sequence_number(&self, record: usize) -> &str {
        self.text(&self.sequence_numbers[record])
    }

    /// The record that caused a message.
    pub(crate) fn record_of(&self, index: usize) -> usize {
        self.entries[index].record as usize
    }

    /// The registration that asked for a message.
    pub(crate) fn registration_of(&self, index: usize) -> RegistrationId {
        self.entries[index].registration
    }

    /// A registration's name.
    pub(crate) fn name_of(&self, registration: RegistrationId) -> &str {
        &self.registrations[registration].name
    }
}

fn is_state(change: &Change<'_>) -> bool {
    let keys = (change.key_attributes.partition, change.key_attributes.sort);
    let (Some((_, partition)), Some((_, sort))) = keys else {
        return false;
    };
    let item = ItemKey::parse(partition, sort);
    matches!(item, ItemKey::Known(ItemKind::SensorState, ..))
}

fn put(arena: &mut String, text: &str) -> Range<u32> {
    let from = arena.len() as u32;
    arena.push_str(text);
    from..arena.len() as u32
}

/// The buffers but the batch, which lends out the records.
struct Rest<'b> {
    tape: &'b mut Tape,
    key: &'b mut KeyBuffer,
    diff: &'b mut DiffBuffer,
    scratch: &'b mut Scratch,
    body: &'b mut String,
}

impl Outbox for Plan<'_> {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn channel(&self, index: usize) -> usize {
        self.entries[index].channel as usize
    }

    fn key(&self, index: usize) -> &str {
        self.text(&self.entries[index].key)
    }

    fn bytes(&self, index: usize) -> usize {
        let entry = &self.entries[index];
        entry.body.len() + entry.attribute_bytes as usize
    }

    fn message(&self, index: usize) -> Message {
        let entry = &self.entries[index];
        let own = entry.attributes.start as usize..entry.attributes.end as usize;
        let attribute = |(name, value): &(Range<u32>, Range<u32>)| {
            (self.text(name).to_owned(), self.text(value).to_owned())
        };
        let mut message = Message {
            id: entry.id.to_string(),
            key: self.key(index).to_owned(),
            body: self.text(&entry.body).to_owned(),
            attributes: self.attributes[own].iter().map(attribute).collect(),
            topic: entry
                .topic
                .as_ref()
                .map(|topic| self.text(topic).to_owned()),
            ..Message::default()
        };
        routes::apply_target_options(&mut message, &self.registrations[entry.registration]);
        message
    }
}
