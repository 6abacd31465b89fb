//! The exchanges of `testdata/exchanges.json`: cases of our own after AWS's developer guide. Every request gets
//! exactly the response written there, and every change exactly those messages.

use antumbra_service::shadows::{DocumentSet, Layout, ShadowId, Shadows, Update, Zone};
use antumbra_shadow::{Arrays, Document, Model};
use antumbra_wire::shadow_mqtt::{ShadowTopic, write_delta, write_documents};
use serde::Deserialize;
use serde_json::Value;

use crate::support::{START, in_memory, sections};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    name: String,
    /// `separate` or `combined` where the versions are not the same in both.
    layout: Option<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Seconds that pass before.
    #[serde(default)]
    after: u64,
    topic: String,
    payload: Option<Value>,
    /// Accepted or rejected, and the payload of the response.
    answer: (String, Value),
    delta: Option<Value>,
    documents: Option<Value>,
}

#[tokio::test]
async fn every_exchange_is_as_written() {
    let exchanges = include_str!("../../testdata/exchanges.json");
    let exchanges: Vec<Exchange> = serde_json::from_str(exchanges).unwrap();
    assert!(exchanges.len() >= 20);
    for (layout, word) in [
        (Layout::Separate, "separate"),
        (Layout::Combined, "combined"),
    ] {
        for exchange in &exchanges {
            if exchange.layout.as_deref().is_none_or(|only| only == word) {
                run(exchange, layout).await;
            }
        }
    }
}

async fn run(exchange: &Exchange, layout: Layout) {
    let (function, store) = in_memory(layout);
    let model = Model {
        arrays: Arrays::Whole,
        ..Model::default()
    };
    let mut now = START;
    for (number, step) in exchange.steps.iter().enumerate() {
        let place = format!("{} ({layout:?}), step {number}", exchange.name);
        function
            .clock
            .advance(std::time::Duration::from_secs(step.after));
        now += i64::try_from(step.after).unwrap();
        let parsed = ShadowTopic::parse(&step.topic).unwrap();
        let shadow = parsed.shadow.clone().ok();
        let shadow = shadow.map(|(id, name)| ShadowId::named(id, name).unwrap());
        let before = match &shadow {
            Some(shadow) => sections(&store, shadow).await,
            None => Default::default(),
        };
        let payload = step
            .payload
            .as_ref()
            .map(Value::to_string)
            .unwrap_or_default();
        let (topic, response) = function.request(&step.topic, payload.as_bytes()).await;
        assert_eq!(
            topic,
            parsed.response_topic(&step.answer.0),
            "{place}: {response}"
        );
        assert_eq!(response, step.answer.1, "{place}");

        let after = match &shadow {
            Some(shadow) => sections(&store, shadow).await,
            None => Default::default(),
        };
        let token = step
            .payload
            .as_ref()
            .and_then(|payload| payload["clientToken"].as_str());
        let changed = before.version != after.version && !after.is_absent();
        if step.answer.0 == "rejected" {
            assert_eq!(before, after, "{place}: nothing is written");
        }
        let mut body = String::new();
        let has_delta =
            changed && write_delta(&mut body, &after, &model, now, token, usize::MAX).unwrap();
        let delta: Option<Value> = has_delta.then(|| serde_json::from_str(&body).unwrap());
        assert_eq!(delta, step.delta, "{place}: delta");
        if changed {
            write_documents(&mut body, &before, &after, now, token, usize::MAX).unwrap();
            if let Some(documents) = &step.documents {
                let actual: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(actual, *documents, "{place}: documents");
            }
        } else {
            assert_eq!(step.documents, None, "{place}: documents");
        }
    }
}

/// AWS's payloads have no zone, so no update over MQTT names one.
#[tokio::test]
async fn the_zones_of_both_documents_stay() {
    let (function, store) = in_memory(Layout::Separate);
    let shadows = Shadows::with_clock(store, function.clock.clone());
    let lamp = ShadowId::new("lamp").unwrap();
    let (report, desire) = (r#"{"led":1}"#, r#"{"led":2}"#);
    let update = Update::report(lamp.clone(), Document::parse(report).unwrap());
    let update = update.and_desire(Document::parse(desire).unwrap());
    let update = update.zone(Zone::new("Asia/Tokyo").unwrap());
    shadows.update(update).await.unwrap();
    for update in [
        r#"{"state":{"reported":{"led":3},"desired":{"led":4}}}"#,
        r#"{"state":{"reported":{"led":4}},"acknowledge":true}"#,
    ] {
        let (topic, _) = function
            .request("shadow/lamp/update", update.as_bytes())
            .await;
        assert_eq!(topic, "shadow/lamp/update/accepted");
        let shadow = shadows.read(&lamp, DocumentSet::Both).await.unwrap();
        for held in [shadow.reported, shadow.desired] {
            assert_eq!(held.unwrap().zone.unwrap().as_str(), "Asia/Tokyo");
        }
    }
}
