//! Writes of attempts and their results.
//!
//! An attempt is claimed by one update before its request is sent, and its result is another one. A delivery
//! that leaves the queue to wait is put into the list of that place by the same transaction.

use antumbra_service::deliveries::{
    Attempt, DeliveryContext, DeliveryId, DeliveryMessage, DeliveryRecord, Status, Transition,
    Wait, Waiting, begun,
};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ItemKind;
use aws_sdk_dynamodb::types::AttributeValue;

use super::DynamoDbDeliveries;
use super::item::{
    BEGUN, HELD_AT, ROUND, chain_key, decode, deferred_key, due_key, encode_attempts, held_key, key,
};
use crate::table::{Item, Key, Refusal, Write};
use crate::value::{epoch_milliseconds, epoch_seconds, number, text, time};

/// Attempts that the record of one delivery keeps.
const ATTEMPTS_KEPT: usize = 50;
/// Condition: nothing happened to the delivery since it was read.
pub(super) const UNCHANGED: &str = "#round = :seenRound AND #begun = :seenBegun AND #queued = :seenQueued \
     AND #status = :seenStatus AND (attribute_not_exists(#claim) OR #claimedUntil <= :now)";
/// Condition of a success: it counts even if the delivery changed meanwhile.
pub(super) const NOT_DELIVERED: &str = "attribute_exists(#PK) AND \
     (attribute_not_exists(#deliveredRound) OR #deliveredRound < :deliveredRound)";
pub(super) const CLAIM: &str = "claim";

impl DynamoDbDeliveries {
    /// The writes of a transition, and the message to queue after them.
    pub(super) async fn writes(
        &self,
        transition: &Transition<'_>,
        record: &DeliveryRecord,
        chain: Chain,
        condition: &str,
    ) -> Result<(Vec<Write>, Option<DeliveryMessage>), StoreError> {
        let mut writes = vec![self.update(transition, record, condition)?];
        let next = match transition.wait {
            Some(wait) => {
                writes.extend(self.defer(transition, record, wait));
                let is_due = matches!(wait, Wait::Due(_));
                is_due.then(|| DeliveryMessage {
                    queued: due_queued(record, transition.message),
                    ..transition.message.clone()
                })
            }
            None if is_settled(transition, record) => {
                self.leave(transition, record, chain, &mut writes).await?
            }
            None => None,
        };
        Ok((writes, next))
    }

    /// The write of the delivery itself.
    fn update(
        &self,
        transition: &Transition<'_>,
        record: &DeliveryRecord,
        condition: &str,
    ) -> Result<Write, StoreError> {
        let Transition { message, now, .. } = *transition;
        let is_settled = is_settled(transition, record);
        let mut change = RecordUpdate::new(record, message);
        if !is_later(transition, record) {
            change.set("begun", number(begun_with_claim(transition)));
        }
        if is_settled || transition.wait.is_some() {
            change.set("status", text(transition.status.as_str()));
            change.remove(&["waiting", "notBefore", CLAIM, "claimedUntil"]);
        }
        change.set("updated", time(now));
        if !transition.attempts.is_empty() {
            change.attempts(record, &transition.attempts)?;
        }
        match transition.wait {
            None if is_settled => {
                change.set("ttl", epoch_seconds(now.after(self.retention)));
                change.remove(&["chained"]);
            }
            None => {}
            Some(wait) => change.wait(wait, transition.in_order),
        }
        if let Some(Wait::Due(_)) = transition.wait {
            change.queued = due_queued(record, message);
        }
        if transition.status == Status::Delivered {
            change.set("deliveredRound", number(message.round));
        }
        let mut condition = condition.to_owned();
        if is_joining(transition, record) {
            condition.push_str(" AND attribute_not_exists(#chained)");
        }
        let write = change.write().condition(&condition);
        Ok(match transition.claim {
            _ if condition.starts_with(UNCHANGED) => seen(write, record, now),
            Some(claim) if condition.starts_with("#claim") => write.value(":claim", text(claim)),
            _ => write,
        })
    }

    /// The writes that put a delivery into the list of the place where it waits.
    fn defer(
        &self,
        transition: &Transition<'_>,
        record: &DeliveryRecord,
        wait: Wait,
    ) -> Vec<Write> {
        let id = &transition.message.id;
        let put = |key: Key| Write::put(self.table.attributes(&key));
        let mut writes = match wait {
            Wait::Due(at) => vec![put(due_key(id, at))],
            Wait::Held => {
                let mut item = self.table.attributes(&held_key(id.client(), &id.order()));
                item.insert(ROUND.to_owned(), number(transition.message.round));
                item.insert(BEGUN.to_owned(), number(begun_with_claim(transition)));
                item.insert(HELD_AT.to_owned(), epoch_milliseconds(transition.now));
                vec![Write::put(item)]
            }
            Wait::Behind => Vec::new(),
        };
        let Some(sensor) = &transition.message.sensor else {
            return writes;
        };
        let is_joining = is_joining(transition, record);
        let update = match is_joining {
            true => "ADD #deferred :one, #version :one",
            false if wait == Wait::Behind => "ADD #version :one",
            false => return writes,
        };
        if is_joining {
            writes.push(put(deferred_key(id, sensor)));
        }
        let chain = chain_key(id.client(), sensor);
        let chain = Write::update(chain, update).value(":one", number(1));
        writes.push(match wait {
            // Without a delivery to wait for, nothing would end the wait.
            Wait::Behind => Chain::of(transition.context)
                .unchanged(chain, "#deferred > :none AND ")
                .value(":none", number(0)),
            _ => chain,
        });
        writes
    }

    /// The writes that remove a settled delivery from its chain and move the next one, if that waits behind it, to
    /// the due index. Returns the message of the next one.
    async fn leave(
        &self,
        transition: &Transition<'_>,
        record: &DeliveryRecord,
        chain: Chain,
        writes: &mut Vec<Write>,
    ) -> Result<Option<DeliveryMessage>, StoreError> {
        let message = transition.message;
        let Some(sensor) = message.sensor.as_ref().filter(|_| record.progress.chained) else {
            return Ok(None);
        };
        let (id, client) = (&message.id, message.id.client());
        writes.push(Write::delete(deferred_key(id, sensor)));
        let leave = match chain.deferred {
            0 | 1 => Write::delete(chain_key(client, sensor)),
            _ => {
                let update = "ADD #deferred :less, #version :one";
                Write::update(chain_key(client, sensor), update)
                    .value(":less", number(-1))
                    .value(":one", number(1))
            }
        };
        writes.push(chain.unchanged(leave, ""));
        let Some(next) = self.next_behind(id, sensor).await? else {
            return Ok(None);
        };
        let next_id = &next.delivery.id;
        let wake = "SET #waiting = :due, #notBefore = :now, #queued = :queued";
        let queued = next.progress.queued.saturating_add(1);
        writes.push(
            Write::update(key(next_id), wake)
                .condition("#waiting = :behind")
                .value(":due", text(Waiting::Due.as_str()))
                .value(":behind", text(Waiting::Behind.as_str()))
                .value(":now", epoch_milliseconds(transition.now))
                .value(":queued", number(queued)),
        );
        writes.push(Write::put(
            self.table.attributes(&due_key(next_id, transition.now)),
        ));
        Ok(Some(DeliveryMessage {
            queued,
            ..next.message()
        }))
    }

    /// The oldest other deferred delivery of the client and sensor, if it waits behind this one.
    async fn next_behind(
        &self,
        id: &DeliveryId,
        sensor: &SensorId,
    ) -> Result<Option<DeliveryRecord>, StoreError> {
        let (client, own) = (id.client(), id.order());
        let deferred = self.deferred_deliveries(client, sensor, 2).await?;
        let Some(order) = deferred.into_iter().find(|order| *order != own) else {
            return Ok(None);
        };
        let key = Key::new(ItemKind::Delivery, client.as_str(), &order);
        let next = self.table.get(&key).await?.map(decode).transpose()?;
        Ok(next.filter(|next| next.progress.waiting == Some(Waiting::Behind)))
    }
}

/// The chain of deferred deliveries of a client and sensor, as it was read.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    deferred: u32,
    version: u64,
}

impl Chain {
    pub(super) fn of(context: &DeliveryContext) -> Chain {
        Chain {
            deferred: context.deferred,
            version: context.chain_version,
        }
    }

    /// Adds the condition that no delivery joined or left the chain, or began to wait in it, since it was read.
    fn unchanged(self, write: Write, other: &str) -> Write {
        match self.version {
            0 => write.condition(format!("{other}attribute_not_exists(#version)")),
            version => write
                .condition(format!("{other}#version = :version"))
                .value(":version", number(version)),
        }
    }
}

/// Returns whether the delivery is in a later round than the message.
pub(super) fn is_later(transition: &Transition<'_>, record: &DeliveryRecord) -> bool {
    record.progress.round > transition.message.round
}

/// Returns whether the transition settles the delivery. A success of the round before settles a released delivery, but
/// not one that is requested by hand.
fn is_settled(transition: &Transition<'_>, record: &DeliveryRecord) -> bool {
    transition.wait.is_none() && !(is_later(transition, record) && record.progress.manual)
}

/// The attempts of a transition that the record does not have.
pub(super) fn new_attempts<'a>(
    transition: &'a Transition<'_>,
    record: &'a DeliveryRecord,
) -> impl Iterator<Item = &'a Attempt> {
    transition.attempts.iter().filter(move |new| {
        let is_same = |known: &Attempt| (known.round, known.number) == (new.round, new.number);
        !record.attempts.iter().any(is_same)
    })
}

/// The write that adds the attempts of a transition to the history, and changes nothing else.
pub(super) fn add_attempts(
    transition: &Transition<'_>,
    record: &DeliveryRecord,
) -> Result<Write, StoreError> {
    let new = encode_attempts(new_attempts(transition, record))?;
    let key = key(&transition.message.id);
    Ok(match record.attempts.len() {
        0 => Write::update(key, "SET #attempts = :new")
            .condition("attribute_exists(#PK) AND attribute_not_exists(#attempts)")
            .value(":new", new),
        known => Write::update(key, "SET #attempts = list_append(#attempts, :new)")
            .condition("size(#attempts) = :known")
            .value(":known", number(known))
            .value(":new", new),
    })
}

/// Returns whether a delivery leaves the queue in a way that later ones have to wait for it.
fn is_joining(transition: &Transition<'_>, record: &DeliveryRecord) -> bool {
    transition.wait.is_some() && transition.in_order && !record.progress.chained
}

/// Attempts begun in the round of the message, with the one that was made.
fn begun_with_claim(transition: &Transition<'_>) -> u32 {
    begun(transition.record, transition.message) + u32::from(transition.claim.is_some())
}

/// The number with which a delivery that is put into the due index is queued again.
fn due_queued(record: &DeliveryRecord, message: &DeliveryMessage) -> u32 {
    record.progress.queued.max(message.queued).saturating_add(1)
}

pub(super) fn is_claimed_by(refusal: &Refusal, token: &str) -> bool {
    let stored = refusal.stored.as_ref().and_then(|item| item.get(CLAIM));
    stored == Some(&text(token))
}

/// The values of [`UNCHANGED`].
pub(super) fn seen(write: Write, record: &DeliveryRecord, now: Timestamp) -> Write {
    let progress = &record.progress;
    write
        .value(":seenRound", number(progress.round))
        .value(":seenBegun", number(progress.begun))
        .value(":seenQueued", number(progress.queued))
        .value(":seenStatus", text(record.status.as_str()))
        .value(":now", epoch_milliseconds(now))
}

/// The update of the item of a delivery.
pub(super) struct RecordUpdate {
    key: Key,
    set: Item,
    remove: Vec<&'static str>,
    queued: u32,
}

impl RecordUpdate {
    /// The round and number of the message, unless the record is further.
    pub(super) fn new(record: &DeliveryRecord, message: &DeliveryMessage) -> RecordUpdate {
        let progress = &record.progress;
        let mut change = RecordUpdate {
            key: key(&message.id),
            set: Item::new(),
            remove: Vec::new(),
            queued: progress.queued.max(message.queued),
        };
        if message.round >= progress.round {
            change.set("round", number(message.round));
            change.set("manual", AttributeValue::Bool(message.manual));
        }
        change
    }

    pub(super) fn set(&mut self, name: &'static str, value: AttributeValue) {
        self.remove.retain(|removed| *removed != name);
        self.set.insert(name.to_owned(), value);
    }

    pub(super) fn remove(&mut self, names: &[&'static str]) {
        let kept = names.iter().filter(|name| !self.set.contains_key(**name));
        self.remove.extend(kept);
    }

    fn wait(&mut self, wait: Wait, in_order: bool) {
        let place = match wait {
            Wait::Due(until) => {
                self.set("notBefore", epoch_milliseconds(until));
                Waiting::Due
            }
            Wait::Held => Waiting::Held,
            Wait::Behind => Waiting::Behind,
        };
        self.set("waiting", text(place.as_str()));
        if in_order {
            self.set("chained", AttributeValue::Bool(true));
        }
        self.remove(&["ttl"]);
    }

    /// Adds attempts, and keeps the newest ones.
    pub(super) fn attempts(
        &mut self,
        record: &DeliveryRecord,
        new: &[Attempt],
    ) -> Result<(), StoreError> {
        let all: Vec<_> = record.attempts.iter().chain(new).collect();
        let kept = all.len().saturating_sub(ATTEMPTS_KEPT);
        self.set("attempts", encode_attempts(all[kept..].iter().copied())?);
        Ok(())
    }

    pub(super) fn write(mut self) -> Write {
        self.set.insert("queued".to_owned(), number(self.queued));
        Write::set(self.key, self.set, &self.remove)
    }
}
