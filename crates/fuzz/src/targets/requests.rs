//! Requests over MQTT to the inbox and to shadows. Each gets a response, below `response/` or on the topics
//! of its shadow, and names exactly one source or shadow.
//!
//! The input is the topic, the response topic of MQTT 5 (`-` for none), and the payload, one per line. The
//! whole input is also used as the event of an IoT rule.

use antumbra_service::inbox::{MessageId, Source};
use antumbra_service::shadows::ShadowId;
use antumbra_shadow::{Document, LeafTimes, Mode, Model, Timestamp, merge};
use antumbra_wire::events::rule::RuleEvent;
use antumbra_wire::inbox_request;
use antumbra_wire::limits::{TOPIC_BYTES, TOPIC_SLASHES};
use antumbra_wire::rules::Operation;
use antumbra_wire::shadow_mqtt::{
    self, Accepted, Part, Request, Sent, ShadowDocument, ShadowDocuments, ShadowTopic,
    accepted_get, accepted_update, escape_level, rejected, write_delta, write_documents,
};
use antumbra_wire::topic_prefix::TopicPrefix;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::oracle::has_twins;

/// Maximum size of payloads to check; AWS IoT allows 128 KiB.
const PAYLOAD_BYTES: usize = 200 * 1024;

pub(crate) fn run(bytes: &[u8]) {
    let _ = RuleEvent::decode(bytes, &TopicPrefix::default());
    let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
    let (topic, response_topic) = (parts.next(), parts.next());
    let payload = parts.next().unwrap_or_default();
    let text = |part: Option<&[u8]>| String::from_utf8(part.unwrap_or_default().to_vec()).ok();
    let (Some(topic), Some(response_topic)) = (text(topic), text(response_topic)) else {
        return;
    };
    if topic.is_empty() || payload.len() > PAYLOAD_BYTES {
        return;
    }
    let event = RuleEvent {
        payload: payload.to_vec(),
        topic,
        response_topic: Some(response_topic).filter(|topic| topic != "-"),
        ..RuleEvent::default()
    };
    selected(&event);
    for &operation in Operation::ALL {
        inbox(&event, operation);
    }
    if let Ok(topic) = ShadowTopic::parse(&event.topic) {
        shadow_topic(&event.topic, &topic);
    }
    for operation in [
        shadow_mqtt::Operation::Get,
        shadow_mqtt::Operation::Update,
        shadow_mqtt::Operation::Delete,
    ] {
        shadow_request(operation, payload);
    }
}

/// The event that the rule creates from a message decodes to that message.
fn selected(event: &RuleEvent) {
    let mut selected = json!({
        "payload": STANDARD.encode(&event.payload),
        "topic": event.topic,
        "clientId": "n/a",
    });
    if let Some(topic) = &event.response_topic {
        selected["responseTopic"] = topic.as_str().into();
    }
    let decoded = RuleEvent::decode(selected.to_string().as_bytes(), &TopicPrefix::default());
    assert_eq!(decoded.as_ref(), Ok(event));
}

fn inbox(event: &RuleEvent, operation: Operation) {
    let request = inbox_request::parse(event, operation, inbox_request::TokenPolicy::Open);
    let address = &request.address;
    for to in address.fallback_topic.iter().chain([&address.topic]) {
        assert!(to.starts_with("response/"), "{to}");
        assert!(!to.contains(['+', '#', '\0']), "{to}");
        assert!(!to.split('/').any(str::is_empty), "{to}");
        assert!(to.len() <= TOPIC_BYTES && to.matches('/').count() <= TOPIC_SLASHES);
    }
    assert!(!address.rejected || request.parsed.is_err());
    let parsed = match request.parsed {
        Ok(parsed) => parsed,
        Err(error) => return assert!(!error.to_string().is_empty() && !error.code().is_empty()),
    };
    let named = [parsed.names.uuid, parsed.names.message_id];
    let names: Vec<&str> = named.into_iter().filter(|name| !name.is_empty()).collect();
    let topic = format!("request/{}/{}", operation.word(), names.join("/"));
    assert_eq!(topic.trim_end_matches('/'), event.topic);
    let _ = (
        Source::new(parsed.names.uuid),
        MessageId::new(parsed.names.message_id),
    );
    let plain: Value = match event.payload.is_empty() {
        true => json!({}),
        false => serde_json::from_slice(&event.payload).unwrap_or_default(),
    };
    let member = |name: &str| plain.get(name).filter(|value| !value.is_null());
    if plain.is_null() {
        return;
    }
    if let Ok(list) = parsed.payload.list() {
        let limit = member("limit").and_then(Value::as_u64);
        assert_eq!(list.limit.map(|limit| limit as u64), limit);
        assert_eq!(
            list.cursor.as_deref(),
            member("cursor").and_then(Value::as_str)
        );
        assert_eq!(list.from.as_deref(), member("from").and_then(Value::as_str));
        assert_eq!(
            Some(list.bodies),
            member("bodies").map_or(Some(false), Value::as_bool)
        );
    }
    if let Ok(send) = parsed.payload.send() {
        let message: Value = serde_json::from_str(send.message.get()).unwrap();
        assert_eq!(Some(&message), member("message"));
    }
}

/// Topics and shadows correspond one to one.
fn shadow_topic(text: &str, topic: &ShadowTopic<'_>) {
    let (prefix, word) = (topic.prefix, topic.operation.as_str());
    assert_eq!(text, format!("{prefix}/{word}"));
    assert_eq!(topic.response_topic("accepted"), format!("{text}/accepted"));
    let Ok((thing, name)) = &topic.shadow else {
        return;
    };
    let start = match text.starts_with('$') {
        true => format!("$aws/things/{}/shadow", escape_level(thing)),
        false => format!("shadow/{}", escape_level(thing)),
    };
    let rebuilt = match topic.named {
        true => format!("{start}/name/{}/{word}", escape_level(name)),
        false => format!("{start}/{word}"),
    };
    assert_eq!(rebuilt, text);
    assert_eq!(topic.named, name != "main", "{text}");
    if let Ok(id) = ShadowId::named(thing.as_str(), name.as_str()) {
        assert_eq!((id.id(), id.name()), (&**thing, &**name));
    }
}

fn shadow_request(operation: shadow_mqtt::Operation, payload: &[u8]) {
    let requested = shadow_mqtt::read(operation, payload);
    let token = requested.client_token.as_deref();
    let plain: Option<Value> = serde_json::from_slice(payload).ok();
    if let (Some(plain), Some(token)) = (&plain, token) {
        assert_eq!(plain["clientToken"].as_str(), Some(token));
    }
    match requested.request {
        Err(rejection) => {
            let response: Value = serde_json::from_str(&rejected(&rejection, 7, token)).unwrap();
            assert_eq!(response["code"], rejection.code);
            assert_eq!(response.get("clientToken").and_then(Value::as_str), token);
        }
        Ok(Request::Update(update)) => {
            let plain = plain.unwrap();
            assert!(!has_twins(payload));
            for (name, part) in [("reported", &update.reported), ("desired", &update.desired)] {
                match part {
                    None => assert!(plain["state"].get(name).is_none()),
                    Some(Part::Clear) => assert!(plain["state"][name].is_null()),
                    Some(Part::Patch(_)) => assert!(plain["state"][name].is_object()),
                }
            }
            assert_eq!(
                update.version,
                plain.get("version").map(|v| v.as_i64().unwrap())
            );
            answers(&update, token);
        }
        Ok(Request::Get | Request::Delete { .. }) => {
            let known = ["clientToken", "version"];
            let members = plain.as_ref().and_then(Value::as_object);
            let mut names = members.into_iter().flat_map(|members| members.keys());
            assert!(names.all(|name| known.contains(&name.as_str())));
        }
    }
}

/// Every message about an update is JSON, and within the size limit.
fn answers(update: &shadow_mqtt::UpdateRequest, token: Option<&str>) {
    let model = Model::default();
    let now = Timestamp::from_nanoseconds(1_714_557_601_000_000_000);
    let section = |part: &Option<Part>| match part {
        Some(Part::Patch(sent)) => {
            let merged = merge(&Document::default(), sent, Mode::Patch, &model, now);
            let times = LeafTimes::all(&merged.document, now);
            Some(ShadowDocument {
                document: merged.document,
                times,
            })
        }
        _ => None,
    };
    let after = ShadowDocuments {
        reported: section(&update.reported),
        desired: section(&update.desired),
        version: 7,
    };
    let accepted = Accepted {
        version: 7,
        seconds: 1_714_557_601,
        client_token: token,
    };
    let sent = |part: &'_ Option<Part>, now: &'_ Option<ShadowDocument>| -> Option<String> {
        let (part, now) = (part.as_ref()?, now.as_ref()?);
        let sent = Sent { part, now };
        Some(accepted_update(Some(sent), None, None, &model, accepted))
    };
    let mut texts = vec![
        sent(&update.reported, &after.reported),
        sent(&update.desired, &after.desired),
        accepted_get(&after, &model, accepted).ok(),
    ];
    let mut out = String::new();
    let limit = 128 * 1024;
    let delta = write_delta(&mut out, &after, &model, 1, token, limit);
    texts.push(delta.is_ok_and(|response| response).then(|| out.clone()));
    let documents = write_documents(
        &mut out,
        &ShadowDocuments::default(),
        &after,
        1,
        token,
        limit,
    );
    texts.push(documents.is_ok().then(|| out.clone()));
    for text in texts.into_iter().flatten() {
        assert!(text.len() <= limit);
        let response: Value =
            serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}"));
        assert_eq!(response.get("clientToken").and_then(Value::as_str), token);
    }
}
