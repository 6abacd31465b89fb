//! Sensors from their registration to what is left of them.

use std::collections::HashMap;
use std::time::Duration;

use antumbra_dynamodb::MAIN;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use super::Play;

impl Play {
    pub(super) async fn play_sensors(&mut self) {
        let place = json!({"city": "Poznań", "building": "A", "floor": "2", "room": "13"});
        let new = json!({"id": "door", "location": place, "silenceAfterSeconds": 60});
        self.ask("POST", "/v1/sensors", &[], new).await.is(201);
        let door = &["door"][..];
        let change = json!({"address": "at the back"});
        self.ask("PATCH", "/v1/sensors/{}", door, change)
            .await
            .is(200);
        let there = json!({"city": "Poznań", "building": "A", "floor": "2", "room": "14"});
        self.ask("POST", "/v1/sensors/{}/move", door, there)
            .await
            .is(200);
        let readings = json!({"readings": [{"value": 1, "time": "2026-01-31T12:00:00Z"}]});
        self.ask("POST", "/v1/sensors/{}/readings", door, readings)
            .await
            .is(204);

        // A change, what is no signal, and nobody's.
        for value in 0..2 {
            let signal = json!({"sensor_id": "door", "data": value});
            self.send("antumbra-signals", &signal.to_string()).await;
            self.until("/v1/sensors/door/state", |state| state["value"] == value)
                .await;
        }
        self.send("antumbra-signals", "gibberish").await;
        self.received("antumbra-quarantine", "gibberish").await;
        let nobody = json!({"sensor_id": "nobody", "data": 1}).to_string();
        self.send("antumbra-signals", &nobody).await;
        match self.newcomers {
            true => {
                let state = "/v1/sensors/nobody/state";
                self.until(state, |state| state["value"] == 1).await;
            }
            false => self.received("antumbra-quarantine", "nobody").await,
        }

        self.ask("GET", "/v1/sensors/{}", door, Value::Null)
            .await
            .is(200);
        self.ask("GET", "/v1/sensors/{}/state", door, Value::Null)
            .await
            .is(200);
        for path in [
            "/v1/sensors/{}/readings",
            "/v1/sensors/{}/readings?from=2026-01-01T00:00:00Z",
        ] {
            self.ask("GET", path, door, Value::Null).await.is(200);
        }
        let all = self.ask("GET", "/v1/sensors", &[], Value::Null).await;
        all.is(200);
        for depth in 1..=4 {
            let path = format!("/v1/locations{}/sensors", "/{}".repeat(depth));
            let parts = &["Pozna%C5%84", "A", "2", "14"][..depth];
            let found = self.ask("GET", &path, parts, Value::Null).await.is(200);
            assert_eq!(
                found["sensors"].as_array().map(Vec::len),
                Some(1),
                "{found}"
            );
        }

        // It falls silent, and is back.
        self.stack.sweep().await.unwrap();
        self.clock.shift(Duration::from_secs(3600));
        let report = self.stack.sweep().await.unwrap();
        assert_eq!(report.lost, 1 + usize::from(self.newcomers), "{report:?}");
        let signal = json!({"sensor_id": "door", "data": 0});
        self.send("antumbra-signals", &signal.to_string()).await;
        self.until("/v1/sensors/door/state", |state| state["value"] == 0)
            .await;
    }

    /// Unregisters the sensor, and sweeps until nothing is left of it.
    pub(super) async fn end_of_sensor(&mut self) {
        let links = self.links_of("SENSOR#door").await;
        assert!(!links.is_empty());
        self.ask("DELETE", "/v1/sensors/{}", &["door"], Value::Null)
            .await
            .is(204);
        // Whoever linked it at that very moment has left these.
        for link in links {
            let put = self.database.put_item().table_name(MAIN.name);
            put.set_item(Some(link)).send().await.unwrap();
        }
        for _ in 0..3 {
            self.clock.shift(Duration::from_secs(2 * 86_400));
            self.stack.sweep().await.unwrap();
        }
        assert!(self.links_of("SENSOR#door").await.is_empty());
    }

    async fn links_of(&self, partition: &str) -> Vec<HashMap<String, AttributeValue>> {
        let found = self
            .database
            .query()
            .table_name(MAIN.name)
            .key_condition_expression("PK = :partition AND begins_with(SK, :link)")
            .expression_attribute_values(":partition", AttributeValue::S(partition.to_owned()))
            .expression_attribute_values(":link", AttributeValue::S("CLIENT#".to_owned()));
        found.send().await.unwrap().items.unwrap_or_default()
    }
}
