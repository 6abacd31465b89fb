//! Sensors from registration to the purge of their data.

use std::time::Duration;

use serde_json::{Value, json};

use super::Scenario;

impl Scenario {
    pub(super) async fn run_sensors(&mut self) {
        let place = json!({"city": "Poznań", "building": "A", "floor": "2", "room": "13"});
        let new = json!({"id": "door", "location": place, "silenceAfterSeconds": 60});
        self.call_api("POST", "/v1/sensors", &[], new, 201).await;
        let door = &["door"][..];
        let change = json!({"address": "at the back"});
        self.call_api("PATCH", "/v1/sensors/{}", door, change, 200)
            .await;
        let there = json!({"city": "Poznań", "building": "A", "floor": "2", "room": "14"});
        self.call_api("POST", "/v1/sensors/{}/move", door, there.clone(), 200)
            .await;
        let data = json!({"location": there, "address": "at the back", "silenceAfterSeconds": 60});
        self.call_api("PUT", "/v1/sensors/{}", door, data, 200)
            .await;
        let signals = json!({"signals": [{"sensor_id": "door", "data": 1, "ts": 1}]});
        self.call_api("POST", "/v1/signals", &[], signals, 200)
            .await;
        let readings = json!({"readings": [{"value": 1, "time": "2026-01-31T12:00:00Z"}]});
        self.call_api("POST", "/v1/sensors/{}/readings", door, readings, 204)
            .await;

        // A change, an invalid signal, and one of an unknown sensor.
        for value in 0..2 {
            self.signal(value).await;
            self.until("/v1/sensors/door/state", |state| state["value"] == value)
                .await;
        }
        self.home.send("antumbra-signals", "gibberish").await;
        self.home.received("antumbra-quarantine", "gibberish").await;
        let nobody = json!({"sensor_id": "nobody", "data": 1}).to_string();
        self.home.send("antumbra-signals", &nobody).await;
        match self.newcomers {
            true => {
                let state = "/v1/sensors/nobody/state";
                self.until(state, |state| state["value"] == 1).await;
            }
            false => drop(self.home.received("antumbra-quarantine", "nobody").await),
        }

        self.get("/v1/sensors/{}", door).await;
        self.get("/v1/sensors/{}/state", door).await;
        for path in [
            "/v1/sensors/{}/readings",
            "/v1/sensors/{}/readings?from=2026-01-01T00:00:00Z",
        ] {
            self.get(path, door).await;
        }
        self.get("/v1/sensors", &[]).await;
        for depth in 1..=4 {
            let path = format!("/v1/locations{}/sensors", "/{}".repeat(depth));
            let parts = &["Pozna%C5%84", "A", "2", "14"][..depth];
            let found = self.get(&path, parts).await;
            assert_eq!(
                found["sensors"].as_array().map(Vec::len),
                Some(1),
                "{found}"
            );
        }

        // It is lost, and restored. A changed timeout moves the next check, also that of a lost sensor.
        self.change_silence(120).await;
        let report = self.home.stack.sweep().await.unwrap();
        assert_eq!(report.rearmed, 1, "{report:?}");
        self.clock.shift(Duration::from_secs(3600));
        let report = self.home.stack.sweep().await.unwrap();
        assert_eq!(report.lost, 1 + usize::from(self.newcomers), "{report:?}");
        self.change_silence(60).await;
        let report = self.home.stack.sweep().await.unwrap();
        assert_eq!(report.gone, 1, "{report:?}");
        self.signal(0).await;
        self.until("/v1/sensors/door/state", |state| state["value"] == 0)
            .await;
    }

    async fn change_silence(&self, seconds: u32) {
        let change = json!({ "silenceAfterSeconds": seconds });
        self.call_api("PATCH", "/v1/sensors/{}", &["door"], change, 200)
            .await;
        // A sweep does not look at the last second.
        self.clock.shift(Duration::from_secs(2));
    }

    /// Unregisters the sensor, and sweeps until all its items are purged.
    pub(super) async fn end_of_sensor(&mut self) {
        let links = self.items("SENSOR#door", "CLIENT#").await;
        assert!(!links.is_empty());
        self.call_api("DELETE", "/v1/sensors/{}", &["door"], Value::Null, 204)
            .await;
        // Items left by a concurrent link.
        self.put_back(links).await;
        self.home.stack.sweep().await.unwrap();
        for _ in 0..3 {
            self.clock.shift(Duration::from_secs(2 * 86_400));
            self.home.stack.sweep().await.unwrap();
        }
        assert!(self.items("SENSOR#door", "CLIENT#").await.is_empty());
    }
}
