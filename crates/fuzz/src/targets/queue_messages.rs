//! Bodies of queue messages as each function parses them: an inbox message, a signal, a delivery.

use antumbra_service::deliveries::DeliveryMessage;
use antumbra_service::inbox::{
    InboxMessage, IncomingMessage, MessageId, MessageParser, Padding, RESPONSE_BYTES, Source,
    TOPIC_BYTES,
};
use antumbra_service::sensors::{self, ReadingTime, SignalMessage, SignalPayload, ValueType};
use antumbra_shadow::{Document, Timestamp};
use serde_json::Value;

const QUEUE_ID: &str = "7d7efcff-bdcf-4d98-917e-d171d27cc0b4";
const SENT: Timestamp = Timestamp::from_nanoseconds(1_714_557_601_250_000_000);

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        check(text, QUEUE_ID, SENT);
    }
}

/// Checks all parsers with a body.
pub(crate) fn check(text: &str, queue_id: &str, sent: Timestamp) {
    let arrival = IncomingMessage {
        text,
        queue_id,
        sent_milliseconds: (sent.nanoseconds() / 1_000_000) as u64,
    };
    inbox(&arrival, &MessageParser::default());
    let nested = MessageParser {
        uuid: "header.uuid".parse().unwrap(),
        message_id: "header.seq".parse().unwrap(),
        padding: Padding::digits(12).unwrap(),
        retention: Some(std::time::Duration::from_secs(60)),
    };
    inbox(&arrival, &nested);
    signal(text, queue_id, sent);
    delivery(text);
}

fn inbox(arrival: &IncomingMessage<'_>, intake: &MessageParser) {
    let read = intake.read(arrival, SENT);
    assert_eq!(read, intake.read(arrival, SENT));
    let message = match read {
        Ok(message) => message,
        Err(refusal) => {
            assert!(!refusal.detail.is_empty());
            return;
        }
    };
    let InboxMessage {
        source, id, body, ..
    } = &message;
    assert_eq!(Source::new(source.as_str()).as_ref(), Ok(source));
    assert_eq!(MessageId::new(id.as_str()).as_ref(), Ok(id));
    let sent = arrival.sent_milliseconds;
    assert!(
        id.as_str()
            .ends_with(&format!("-{sent}-{}", arrival.queue_id))
    );
    assert_eq!(Document::parse(arrival.text).as_ref(), Ok(body.document()));
    // The response has the predicted size, and fits.
    let text = |text: &str| serde_json::to_string(text).unwrap();
    let (id_text, uuid) = (text(id.as_str()), text(source.as_str()));
    let body = body.as_json();
    let answer = format!(r#"{{"body":{body},"messageId":{id_text},"uuid":{uuid}}}"#);
    assert_eq!(answer.len(), message.response_bytes());
    assert!(message.response_bytes() <= RESPONSE_BYTES);
    let topic = format!("request/delete/{source}/{id}");
    assert!(
        topic.len() <= TOPIC_BYTES && topic.split('/').count() == 4,
        "{topic}"
    );
}

fn signal(text: &str, queue_id: &str, sent: Timestamp) {
    let scalar = SignalMessage::parse(text, ValueType::Scalar);
    if let Ok(binary) = SignalMessage::parse(text, ValueType::Binary) {
        assert_eq!(Ok(&binary), scalar.as_ref());
        if let SignalMessage::Signal(signal) = binary {
            let is = |number| signal.data == sensors::Value::whole(number);
            assert!(is(0) || is(1), "{text}");
        }
    }
    let payload = match scalar {
        Ok(SignalMessage::Signal(payload)) => payload,
        Ok(SignalMessage::Marker) => return assert_eq!(text, sensors::MARKER),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let plain: Value = serde_json::from_str(text).unwrap();
    let id = payload.sensor_id.as_str();
    assert_eq!(plain["sensor_id"].as_str(), Some(id));
    let further = payload.fields.as_ref().map_or(0, |fields| {
        let fields: Value = fields.to_value().unwrap();
        fields.as_object().unwrap().len()
    });
    assert!(plain.as_object().unwrap().len() <= 4 + further);
    match &payload.data {
        sensors::Value::Number(_) => assert!(plain["data"].is_number()),
        sensors::Value::Text(text) => assert_eq!(plain["data"].as_str(), Some(&**text)),
        sensors::Value::Boolean(yes) => assert_eq!(plain["data"].as_bool(), Some(*yes)),
    }
    let SignalPayload {
        sensor_id,
        data,
        ts,
        seq,
        fields: _,
    } = payload;
    let Ok(signal) = sensors::Signal::new(sensor_id, data, ts, seq, sent, queue_id) else {
        return;
    };
    let moment = signal.moment();
    assert_eq!(
        ReadingTime::parse(&moment.to_string()).as_ref(),
        Some(moment)
    );
    let latest = signal.sent().after(sensors::CLOCK_AHEAD);
    assert!(moment.time() <= latest, "{text}");
}

fn delivery(text: &str) {
    let Ok(message) = DeliveryMessage::decode(text) else {
        return;
    };
    let again = DeliveryMessage::decode(&message.encode());
    assert_eq!(again.as_ref(), Ok(&message));
    let queued = message.to_queue();
    assert!(queued.id.len() <= 128, "{}", queued.id);
    assert_eq!(queued.body, message.encode());
}
