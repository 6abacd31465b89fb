//! Planning: from the bytes of an event to the messages to send. Pure.
//!
//! Decoding and matching use buffers that are kept from event to event.

use antumbra_registration::{
    Change, DiffCell, Form, KeyMatches, Registration, RegistrationId, Registrations, Scratch,
    TopicError, plan_found,
};
use antumbra_service::sensors::{SensorEvent, State};
use antumbra_shadow::{DiffBuffer, Model, Timestamp, View};
use antumbra_wire::items::{ItemChange, ItemKey, ItemKind, KeyBuffer, RecordKey};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::shadow_mqtt::{write_delta, write_documents};
use antumbra_wire::stream::{
    EventError, ReadRecord, Record, RecordHandler, Side, Tape, Undecodable, read_each,
};

use crate::deliveries::PendingDelivery;
use crate::dispatch_list::{Attributes, Content, DispatchList, Entry, Text};
use crate::routes::{Route, RoutedChannel, Routes};
use crate::shadow_messages::{
    self, Found, Other, ShadowChange, ShadowMessage, Unresolved, whole_arrays,
};
use crate::undeliverable::{Position, StoredNotification, Undeliverable};

/// Buffers that are reused from event to event.
#[derive(Default)]
pub(crate) struct Buffers {
    tape: Tape,
    record: RecordBuffers,
}

/// Room that buffers keep after an event with large items.
const KEPT_NODES: usize = 16 * 1024;
const KEPT_BYTES: usize = 64 * 1024;

/// The buffers except the tape, from which the images of a record borrow.
#[derive(Default)]
struct RecordBuffers {
    key: KeyBuffer,
    diff: DiffBuffer,
    matches: KeyMatches,
    scratch: Scratch,
    body: String,
}

/// The messages of an event, and the records that have none.
pub(crate) struct Plan<'l> {
    registrations: &'l Registrations,
    pub(crate) list: DispatchList,
    /// The sequence number of each record; empty if it has none.
    sequence_numbers: Vec<Text>,
    /// Sensor events whose clients are not known yet.
    pub(crate) deliveries: Vec<PendingDelivery>,
    pub(crate) undeliverable: Vec<Undeliverable>,
    /// Changes of shadows whose messages need both documents.
    shadow_changes: Vec<ShadowChange>,
    pub(crate) unfinished: Vec<usize>,
    pub(crate) matched: usize,
    /// The time of the oldest record, in seconds since 1970.
    pub(crate) oldest_seconds: Option<f64>,
}

#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) registration: RegistrationId,
    pub(crate) id: NotificationId,
    channel: usize,
    topic: Option<Text>,
    attributes: Attributes,
    body_limit: usize,
}

/// Plans the messages of each record while the event is read.
struct Planner<'p, 'l> {
    plan: Plan<'l>,
    routes: &'p Routes,
    model: &'p Model,
    buffers: &'p mut RecordBuffers,
}

impl RecordHandler for Planner<'_, '_> {
    fn restart(&mut self) {
        self.plan = Plan::empty(self.plan.registrations);
    }

    fn needs_images(&mut self, record: Record<'_>) -> bool {
        let key = self.buffers.key.read(record);
        self.plan.wants(&key, &mut self.buffers.matches)
    }

    fn record(&mut self, record: Result<ReadRecord<'_>, Undecodable>) {
        let plan = |record| {
            let buffers = &mut *self.buffers;
            self.plan.record(record, self.routes, self.model, buffers)
        };
        if let Err(undecodable) = record.and_then(plan) {
            self.plan.undecodable(&undecodable);
        }
    }
}

impl<'l> Plan<'l> {
    pub(crate) fn new(
        event: &[u8],
        registrations: &'l Registrations,
        routes: &Routes,
        model: &Model,
        buffers: &mut Buffers,
    ) -> Result<Plan<'l>, EventError> {
        let Buffers {
            tape,
            record: buffers,
        } = buffers;
        let mut planner = Planner {
            plan: Plan::empty(registrations),
            routes,
            model,
            buffers,
        };
        let read = read_each(event, tape, &mut planner);
        let Planner { plan, buffers, .. } = planner;
        tape.shrink_to(KEPT_NODES);
        buffers.diff.shrink();
        buffers.body.clear();
        buffers.body.shrink_to(KEPT_BYTES);
        read.map(|()| plan)
    }

    fn empty(registrations: &'l Registrations) -> Plan<'l> {
        Plan {
            registrations,
            list: DispatchList::default(),
            sequence_numbers: Vec::new(),
            deliveries: Vec::new(),
            undeliverable: Vec::new(),
            shadow_changes: Vec::new(),
            unfinished: Vec::new(),
            matched: 0,
            oldest_seconds: None,
        }
    }

    /// Returns whether a registration can match a change of the item with this key.
    fn wants(&self, key: &RecordKey<'_>, matches: &mut KeyMatches) -> bool {
        let is_shadow = key.item.shadow().is_some();
        key.item.notifies() && matches.find(self.registrations, key.text, is_shadow)
    }

    /// Plans the messages of a record. `buffers` hold its key and the matches of the key.
    fn record(
        &mut self,
        read: ReadRecord<'_>,
        routes: &Routes,
        model: &Model,
        buffers: &mut RecordBuffers,
    ) -> Result<(), Undecodable> {
        let (record, key) = (read.record, buffers.key.key());
        if !read.needs_images() {
            self.note_position(record);
            return Ok(());
        }
        if let Some(side) = record.missing_image() {
            let image = if side == Side::Old { "old" } else { "new" };
            self.note_position(record);
            let reason = format!("the record has no {image} image");
            self.reject_record(record, key.text, reason);
            return Ok(());
        }
        let images = read.images()?;
        self.note_position(record);
        let item = ItemChange::new(record, key, images);
        let planned = (self.list.len(), self.deliveries.len());
        let mut shadow_change: Option<ShadowChange> = None;
        for document in item.documents() {
            let cell =
                DiffCell::new(document.old, document.new, model).in_buffer(&mut buffers.diff);
            let change = item.change(document, &cell);
            if routes.of_shadows && shadow_change.is_none() {
                shadow_change = ShadowChange::new(record.index(), &item, &change);
            }
            let matches = &buffers.matches;
            for &id in plan_found(self.registrations, &change, matches, &mut buffers.scratch) {
                let of_shadows = self.registrations[id].form.is_of_shadows();
                match (routes.route(id), &mut shadow_change) {
                    (Some(Route::Channel(channel)), Some(shadow)) if of_shadows => {
                        if !shadow.has_subscriber(id) {
                            let draft = self.draft(record, id, channel, &change);
                            self.subscribe(record, draft, &change, shadow);
                        }
                    }
                    (Some(Route::Channel(channel)), _) => {
                        let draft = self.draft(record, id, channel, &change);
                        self.notify(record, draft, &change, &mut buffers.body);
                    }
                    (Some(Route::Clients), _) => self.plan_deliveries(record, id, &change),
                    (None, _) => {}
                }
            }
        }
        let shadow_change = shadow_change.filter(ShadowChange::is_needed);
        let has_subscribers = shadow_change
            .as_ref()
            .is_some_and(|change| !change.subscribers.is_empty());
        self.shadow_changes.extend(shadow_change);
        let has_messages = (self.list.len(), self.deliveries.len()) > planned;
        self.matched += usize::from(has_subscribers || has_messages);
        Ok(())
    }

    fn draft(
        &mut self,
        record: Record<'_>,
        registration: RegistrationId,
        channel: RoutedChannel,
        change: &Change<'_>,
    ) -> Draft {
        let Registration { name, form, .. } = &self.registrations[registration];
        let state = change.shadow.map(|shadow| shadow.state);
        // A message made of both documents has the same id, whichever of them changed.
        let state = state.filter(|_| !form.is_of_shadows());
        let attributes = self
            .list
            .store_attributes(self.registrations, registration, change);
        Draft {
            registration,
            id: NotificationId::new(&record.event_id(), name, state),
            channel: channel.index,
            topic: None,
            attributes,
            body_limit: channel.message_bytes.saturating_sub(attributes.bytes),
        }
    }

    fn render_topic(
        &mut self,
        registration: RegistrationId,
        change: &Change<'_>,
    ) -> Result<Option<Text>, TopicError> {
        let template = self.registrations[registration].to.properties().topic();
        let topic = template
            .map(|template| template.render(change))
            .transpose()?;
        Ok(topic.map(|topic| self.list.store(&topic)))
    }

    /// Adds the message of a registration whose content is in the record.
    fn notify(
        &mut self,
        record: Record<'_>,
        mut draft: Draft,
        change: &Change<'_>,
        body: &mut String,
    ) {
        let registration = &self.registrations[draft.registration];
        let limit = draft.body_limit;
        if let Err(too_large) =
            notification::write_message(body, draft.id, registration, change, limit)
        {
            return self.reject(record, &draft, change.key, too_large.to_string(), None);
        }
        match self.render_topic(draft.registration, change) {
            Ok(topic) => draft.topic = topic,
            Err(error) => {
                let body = Some(body.as_str());
                return self.reject(record, &draft, change.key, error.to_string(), body);
            }
        }
        self.push(record.index(), draft, change.key, body);
    }

    /// Notes that a registration needs a message of both documents.
    fn subscribe(
        &mut self,
        record: Record<'_>,
        mut draft: Draft,
        change: &Change<'_>,
        shadow: &mut ShadowChange,
    ) {
        match self.render_topic(draft.registration, change) {
            Ok(topic) => draft.topic = topic,
            Err(error) => {
                return self.reject(record, &draft, change.key, error.to_string(), None);
            }
        }
        shadow.subscribers.push(draft);
    }

    fn push(&mut self, record: usize, draft: Draft, key: &str, body: &str) {
        let content = Content::Notification {
            id: draft.id,
            key: self.list.store(key),
            body: self.list.store(body),
            topic: draft.topic,
            attributes: draft.attributes,
        };
        self.list.push(Entry {
            record,
            registration: draft.registration,
            channel: draft.channel,
            content,
            spilled: None,
        });
    }

    /// Returns `true` if the event has messages, or may have them once it is complete.
    pub(crate) fn has_messages(&self) -> bool {
        self.list.len() + self.deliveries.len() + self.shadow_changes.len() > 0
    }

    /// The documents that must be read to complete the messages of shadows.
    pub(crate) fn missing(&self) -> Vec<Other> {
        shadow_messages::missing(&self.shadow_changes)
    }

    /// Adds the messages that are made of both documents of a shadow.
    pub(crate) fn complete(&mut self, found: &Found, model: &Model) {
        let changes = std::mem::take(&mut self.shadow_changes);
        let resolved = shadow_messages::resolve(&changes, found);
        self.unfinished.extend(resolved.unfinished);
        for Unresolved {
            change,
            subscribers,
            reason,
        } in resolved.rejected
        {
            for draft in subscribers {
                self.reject_later(change, draft, reason.clone());
            }
        }
        let model = whole_arrays(model);
        let mut body = String::new();
        for message in &resolved.messages {
            for draft in &message.subscribers {
                self.push_shadow_message(message, draft, &model, &mut body);
            }
        }
    }

    fn push_shadow_message(
        &mut self,
        message: &ShadowMessage<'_>,
        draft: &Draft,
        model: &Model,
        body: &mut String,
    ) {
        let ShadowMessage {
            change,
            before,
            after,
            ..
        } = message;
        let (seconds, token) = (change.seconds, change.client_token.as_deref());
        let limit = draft.body_limit;
        let written = match self.registrations[draft.registration].form {
            Form::ShadowDelta => write_delta(body, after, model, seconds, token, limit),
            _ => write_documents(body, before, after, seconds, token, limit).map(|()| true),
        };
        match written {
            Ok(true) => self.push(change.record, draft.clone(), &change.order, body),
            // There is no delta.
            Ok(false) => {}
            Err(too_large) => self.reject_later(change, draft, too_large.to_string()),
        }
    }

    /// Plans the deliveries of a sensor event to the linked clients: once per record, however many registrations
    /// match. Only changes of a sensor's state have events.
    fn plan_deliveries(
        &mut self,
        record: Record<'_>,
        registration: RegistrationId,
        change: &Change<'_>,
    ) {
        let index = record.index();
        let planned = self
            .deliveries
            .last()
            .is_some_and(|last| last.record == index);
        if planned || !is_state(change) {
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
            Err(fault) => return self.reject_record(record, change.key, fault.to_string()),
        };
        let written = record
            .created_seconds()
            .map(|seconds| Timestamp::from_nanoseconds((seconds * 1e9) as i128));
        let events = SensorEvent::between(old.as_ref(), &new);
        let deliveries = events.into_iter().map(|event| PendingDelivery {
            record: index,
            registration,
            event,
            written,
        });
        self.deliveries.extend(deliveries);
    }

    fn note_position(&mut self, record: Record<'_>) {
        let sequence_number = self.list.store(&record.sequence_number());
        self.sequence_numbers.push(sequence_number);
        if let Some(seconds) = record.created_seconds() {
            let oldest = self.oldest_seconds.unwrap_or(seconds);
            self.oldest_seconds = Some(oldest.min(seconds));
        }
    }

    fn undecodable(&mut self, record: &Undecodable) {
        let sequence_number = record.sequence_number.as_deref().unwrap_or_default();
        let sequence_number = self.list.store(sequence_number);
        self.sequence_numbers.push(sequence_number);
        let stored = StoredNotification {
            reason: format!("the record cannot be decoded: {}", record.fault),
            record: record.into(),
            ..StoredNotification::default()
        };
        let undeliverable = Undeliverable::new(record.index, None, stored);
        self.undeliverable.push(undeliverable);
    }

    fn reject_record(&mut self, record: Record<'_>, key: &str, reason: String) {
        let stored = StoredNotification {
            reason,
            key: key.to_owned(),
            record: record.into(),
            ..StoredNotification::default()
        };
        let undeliverable = Undeliverable::new(record.index(), None, stored);
        self.undeliverable.push(undeliverable);
    }

    fn reject(
        &mut self,
        record: Record<'_>,
        draft: &Draft,
        key: &str,
        reason: String,
        body: Option<&str>,
    ) {
        let mut stored = self.stored(record.index(), draft.registration, key, reason);
        stored.record = record.into();
        if let Some(body) = body {
            stored = stored.with_body(body);
        }
        self.reject_stored(record.index(), draft.id.to_string(), stored);
    }

    /// Rejects a message after the records were read.
    fn reject_later(&mut self, change: &ShadowChange, draft: &Draft, reason: String) {
        let stored = self.stored(change.record, draft.registration, &change.key, reason);
        self.reject_stored(change.record, draft.id.to_string(), stored);
    }

    /// Rejects a delivery whose clients cannot be read.
    pub(crate) fn reject_delivery(&mut self, delivery: &PendingDelivery, reason: String) {
        let event = &delivery.event;
        let partition = ItemKind::SensorState.partition(event.sensor.as_str());
        let key = format!("{partition}#{}", ItemKind::SensorState.sort(""));
        let stored = self.stored(delivery.record, delivery.registration, &key, reason);
        self.reject_stored(delivery.record, event.id(), stored);
    }

    /// Rejects a message that its channel will never accept.
    pub(crate) fn reject_message(&mut self, index: usize, reason: String) {
        let Entry {
            record,
            registration,
            ..
        } = *self.list.entry(index);
        let name = self.name(registration);
        tracing::warn!(registration = name, reason, "undeliverable notification");
        let message = self.list.original(index, self.registrations);
        let stored = self.stored(record, registration, &message.key, reason);
        self.reject_stored(record, message.id.clone(), stored.with_message(&message));
    }

    pub(crate) fn stored(
        &self,
        record: usize,
        registration: RegistrationId,
        key: &str,
        reason: String,
    ) -> StoredNotification {
        StoredNotification {
            reason,
            registration: Some(self.name(registration).to_owned()),
            key: key.to_owned(),
            record: Position::sequence_number(self.sequence_number(record)),
            ..StoredNotification::default()
        }
    }

    fn reject_stored(&mut self, record: usize, id: String, stored: StoredNotification) {
        let undeliverable = Undeliverable::new(record, Some(id), stored);
        self.undeliverable.push(undeliverable);
    }

    pub(crate) fn records(&self) -> usize {
        self.sequence_numbers.len()
    }

    pub(crate) fn sequence_number(&self, record: usize) -> &str {
        self.list.text(&self.sequence_numbers[record])
    }

    pub(crate) fn name(&self, registration: RegistrationId) -> &'l str {
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
