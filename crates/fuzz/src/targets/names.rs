//! Names and small values of paths, queries, members and keys: accepted values are kept unchanged, and their
//! text parses to the same value.

use std::str::FromStr;

use antumbra_service::access::Grant;
use antumbra_service::clients::{ClientId, Mode, Secret};
use antumbra_service::deliveries::DeliveryId;
use antumbra_service::inbox::{FieldPath, MessageId, Padding, Source};
use antumbra_service::sensors::escape::{escape, unescape};
use antumbra_service::sensors::{
    Address, Generation, Location, LocationPrefix, Part, ReadingTime, SensorId, SensorType,
    SilenceTimeout, Unit, Value,
};
use antumbra_service::shadows::{ClientToken, ShadowId, Zone};
use antumbra_shadow::{Document, pointer};
use antumbra_wire::shadow_mqtt::{ShadowTopic, escape_level};

use crate::json::Decimal;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let lines: Vec<&str> = text.split('\n').collect();
    for line in &lines {
        ids(line);
        clients(line);
        keys(line);
        numbers(line);
        parts(line);
    }
    for pair in lines.windows(2) {
        order(pair[0], pair[1]);
    }
    if let [city, building, floor, room, ..] = lines[..] {
        places(city, building, floor, room);
    }
}

fn ids(text: &str) {
    if let Ok(id) = SensorId::new(text) {
        assert_eq!(id.as_str(), text);
        assert!((1..=64).contains(&text.len()) && text.is_ascii());
        assert!(id.shard(7) < 7 && id.shard(0) == 0);
    }
    for kept in [
        SensorType::new(text).map(|kind| kind.as_str().to_owned()),
        Generation::new(text).map(|one| one.as_str().to_owned()),
        Unit::new(text).map(|unit| unit.as_str().to_owned()),
        Address::new(text).map(|address| address.as_str().to_owned()),
    ] {
        match kept {
            Ok(kept) => assert_eq!(kept, text),
            Err(fault) => assert!(!fault.to_string().is_empty()),
        }
    }
    for name in [
        Source::new(text).map(|source| source.as_str().to_owned()),
        MessageId::new(text).map(|id| id.as_str().to_owned()),
    ]
    .into_iter()
    .flatten()
    {
        assert_eq!(name, text);
        assert!(!name.contains(['/', '+', '#']) && !name.contains(char::is_control));
    }
    if let Ok(shadow) = ShadowId::named(text, text) {
        let topic = format!("shadow/{0}/name/{0}/get", escape_level(text));
        let named = ShadowTopic::parse(&topic).unwrap().shadow;
        let expected = Ok((shadow.id().to_owned(), shadow.name().to_owned()));
        assert!(named == expected || text == "main", "{topic}");
    }
    let _ = (ClientToken::new(text), Zone::new(text));
}

fn clients(text: &str) {
    if let Ok(grant) = text.parse::<Grant>() {
        assert_eq!(grant.to_string().parse(), Ok(grant.clone()));
        let prefix = grant.prefix().map(|prefix| prefix.as_str().to_owned());
        assert!(prefix.is_none_or(|prefix| grant.prefix().is_some_and(|own| own.covers(&prefix))));
    }
    if let Ok(id) = ClientId::new(text) {
        assert_eq!(id.as_str(), text);
        assert!(!text.contains(['.', '#', '/']));
    }
    if let Ok(id) = DeliveryId::from_str(text) {
        assert_eq!(id.to_string(), text);
        assert!(id.to_string().starts_with(id.client().as_str()));
        assert!(DeliveryId::order_from(id.time()) <= id.order());
    }
    if let Ok(secret) = Secret::new(text) {
        assert_eq!(secret.reveal(), text);
        assert!(!format!("{secret:?}").contains(&text["whsec_".len()..]));
    }
    if let Ok(mode) = Mode::from_str(text) {
        assert_eq!(mode.as_str(), text);
    }
    if let Ok(path) = FieldPath::from_str(text) {
        assert_eq!(path.to_string(), text);
    }
    if let Ok(padding) = Padding::from_str(text) {
        assert!((0..=38).any(|digits| Padding::digits(digits) == Ok(padding)));
    }
}

/// Parts of keys, moments and pointers.
fn keys(text: &str) {
    let escaped = escape(text);
    assert!(!escaped.contains('#'));
    assert_eq!(unescape(&escaped).as_deref(), Some(text));
    if let Some(unescaped) = unescape(text) {
        assert_eq!(escape(&unescaped), text);
    }
    if let Some(moment) = ReadingTime::parse(text) {
        assert_eq!(moment.to_string(), text);
    }
    let mut path = String::new();
    pointer::push_key(&mut path, text);
    let document = serde_json::json!({ text: 7 });
    let document = Document::from_value(&document).unwrap();
    let found = document.pointer(&path).unwrap();
    assert_eq!((found.key().as_ref(), found.raw()), (text, "7"));
    let _ = document.pointer(text);
}

fn numbers(text: &str) {
    let json = serde_json::from_str::<serde_json::Value>(text);
    if let Ok(value) = Value::number(text) {
        assert!(json.is_ok_and(|json| json.is_number()), "{text}");
        let kept = Decimal::of(&value.to_string());
        assert!(kept.is_some() && kept == Decimal::of(text.trim()), "{text}");
    }
    if let Ok(value) = Value::text(text) {
        assert_eq!(
            serde_json::from_str::<String>(&value.to_string()).unwrap(),
            text
        );
        assert!(value.mark().ends_with(text));
    }
    if let Some(silence) = text
        .parse()
        .ok()
        .and_then(|s: u64| SilenceTimeout::seconds(s).ok())
    {
        assert_eq!(
            silence.as_seconds().to_string(),
            text.parse::<u64>().unwrap().to_string()
        );
    }
}

fn parts(text: &str) {
    if let Ok(part) = Part::new("room", text) {
        assert_eq!(Part::new("room", part.as_str()).as_ref(), Ok(&part));
        assert!((1..=100).contains(&part.as_str().len()));
    }
}

fn places(city: &str, building: &str, floor: &str, room: &str) {
    let Ok(location) = Location::new(city, building, floor, room) else {
        return;
    };
    for (floor, room) in [(None, None), (Some(floor), None), (Some(floor), Some(room))] {
        let place = LocationPrefix::new(city, Some(building), floor, room).unwrap();
        assert!(place.holds(&location));
    }
    assert!(LocationPrefix::new(city, None, Some(floor), None).is_err());
}

/// Escaping keeps the order of texts as far as keys need it, and reading times sort as their texts do.
fn order(one: &str, other: &str) {
    if other.starts_with(one) && one != other {
        assert!(escape(one) < escape(other));
    }
    assert_eq!(escape(one) == escape(other), one == other);
    if let (Some(one), Some(other)) = (ReadingTime::parse(one), ReadingTime::parse(other)) {
        assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
    }
}
