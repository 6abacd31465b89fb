//! Clients and links as items.

use antumbra_service::clients::{
    Circuit, Client, ClientId, ClientState, Link, Mode, RequestKey, Secret, Secrets,
};
use antumbra_service::deliveries::milliseconds;
use antumbra_service::sensors::SensorId;
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;

use super::keys::{CLIENTS, Item, client_key, secrets_key};
use crate::tables::LISTED;

pub(crate) const ID: &str = "clientId";
pub(crate) const NAME: &str = "name";
pub(crate) const URL: &str = "url";
pub(crate) const MODE: &str = "mode";
pub(crate) const STATE: &str = "state";
pub(crate) const ENABLED: &str = "enabled";
pub(crate) const DISABLED: &str = "disabled";
pub(crate) const REASON: &str = "reason";
pub(crate) const SINCE: &str = "since";
pub(crate) const VERSION: &str = "version";
pub(crate) const CREATED: &str = "created";
pub(crate) const UPDATED: &str = "updated";
pub(crate) const FAILURES: &str = "failures";
pub(crate) const OPEN_UNTIL: &str = "openUntil";
pub(crate) const SENSOR: &str = "sensorId";
pub(crate) const CURRENT: &str = "current";
pub(crate) const PREVIOUS: &str = "previous";
pub(crate) const PREVIOUS_UNTIL: &str = "previousUntil";
pub(crate) const REQUESTED_BY: &str = "requestedBy";
pub(crate) const REQUESTED_UNTIL: &str = "requestedUntil";

/// A text.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A number.
pub(crate) fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// An instant, as people read it.
pub(crate) fn time(time: Timestamp) -> AttributeValue {
    s(milliseconds(time))
}

/// An instant that is compared.
pub(crate) fn epoch_ms(time: Timestamp) -> AttributeValue {
    n(time.nanoseconds().div_euclid(1_000_000))
}

/// The instant in such a number.
fn of_epoch_ms(milliseconds: i128) -> Timestamp {
    Timestamp::from_nanoseconds(milliseconds * 1_000_000)
}

/// An item that is not as we write it.
pub(crate) fn unreadable(what: &str) -> StoreError {
    StoreError::Invalid(format!("a stored {what} cannot be read"))
}

/// A text that must be there.
pub(crate) fn text<'i>(item: &'i Item, name: &str) -> Result<&'i str, StoreError> {
    optional_text(item, name).ok_or_else(|| unreadable(name))
}

/// A text that may be there.
pub(crate) fn optional_text<'i>(item: &'i Item, name: &str) -> Option<&'i str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// A number that may be there.
pub(crate) fn optional_number<T: std::str::FromStr>(
    item: &Item,
    name: &str,
) -> Result<Option<T>, StoreError> {
    match item.get(name) {
        None => Ok(None),
        Some(value) => value
            .as_n()
            .ok()
            .and_then(|digits| digits.parse().ok())
            .map(Some)
            .ok_or_else(|| unreadable(name)),
    }
}

/// A number that must be there.
pub(crate) fn number<T: std::str::FromStr>(item: &Item, name: &str) -> Result<T, StoreError> {
    optional_number(item, name)?.ok_or_else(|| unreadable(name))
}

/// A time that must be there.
pub(crate) fn instant(item: &Item, name: &str) -> Result<Timestamp, StoreError> {
    Timestamp::parse(text(item, name)?).ok_or_else(|| unreadable(name))
}

/// The client as an item, as it is first written.
pub(crate) fn encode(client: &Client) -> Item {
    let mut item = client_key(&client.id);
    item.extend(
        [
            (ID, s(client.id.as_str())),
            (NAME, s(&client.name)),
            (URL, s(&client.url)),
            (MODE, s(client.mode.as_str())),
            (STATE, s(ENABLED)),
            (VERSION, n(client.version.0)),
            (CREATED, time(client.created)),
            (UPDATED, time(client.updated)),
            (FAILURES, n(0)),
            (LISTED.partition_key, s(CLIENTS)),
            (LISTED.sort_key.0, s(client.id.as_str())),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    item
}

/// The client in an item.
pub(crate) fn decode(item: &Item) -> Result<Client, StoreError> {
    let state = match text(item, STATE)? {
        ENABLED => ClientState::Enabled,
        _ => ClientState::Disabled {
            reason: text(item, REASON)?.to_owned(),
            since: instant(item, SINCE)?,
        },
    };
    let open_until: Option<i128> = optional_number(item, OPEN_UNTIL)?;
    Ok(Client {
        id: client_id(item)?,
        name: text(item, NAME)?.to_owned(),
        url: text(item, URL)?.to_owned(),
        mode: Mode::of_store(text(item, MODE)?)?,
        state,
        circuit: Circuit {
            failures: optional_number(item, FAILURES)?.unwrap_or(0),
            open_until: open_until.map(of_epoch_ms),
        },
        version: Version(number(item, VERSION)?),
        created: instant(item, CREATED)?,
        updated: instant(item, UPDATED)?,
    })
}

/// Whose item it is.
pub(crate) fn client_id(item: &Item) -> Result<ClientId, StoreError> {
    ClientId::new(text(item, ID)?).map_err(|_| unreadable(ID))
}

/// Which sensor's item it is.
pub(crate) fn sensor_id(item: &Item) -> Result<SensorId, StoreError> {
    SensorId::new(text(item, SENSOR)?).map_err(|_| unreadable(SENSOR))
}

/// The first secret as an item.
pub(crate) fn encode_secret(client: &ClientId, secret: &Secret, requested: &RequestKey) -> Item {
    let mut item = secrets_key(client);
    item.extend(
        [
            (CURRENT, s(secret.reveal())),
            (REQUESTED_BY, s(&requested.by)),
            (REQUESTED_UNTIL, epoch_ms(requested.until)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    item
}

/// The secrets in an item.
pub(crate) fn decode_secrets(item: &Item) -> Result<Secrets, StoreError> {
    let secret = |name: &str| Secret::new(text(item, name)?).map_err(|_| unreadable("secret"));
    let previous = match item.contains_key(PREVIOUS) {
        true => Some((secret(PREVIOUS)?, instant(item, PREVIOUS_UNTIL)?)),
        false => None,
    };
    let requested = match optional_text(item, REQUESTED_BY) {
        None => None,
        Some(by) => Some(RequestKey {
            by: by.to_owned(),
            until: of_epoch_ms(number(item, REQUESTED_UNTIL)?),
        }),
    };
    Ok(Secrets {
        current: secret(CURRENT)?,
        previous,
        requested,
    })
}

/// The link in an item, from whichever side.
pub(crate) fn decode_link(item: &Item) -> Result<Link, StoreError> {
    Ok(Link {
        client: client_id(item)?,
        sensor: sensor_id(item)?,
        mode: Mode::of_store(text(item, MODE)?)?,
        since: instant(item, SINCE)?,
    })
}
