//! The page of sensors.

use std::time::Duration;

use antumbra_service::clients::{ClientId, Mode, NewClient};
use antumbra_service::liveness::SWEEP_PERIOD;
use antumbra_service::sensors::{
    LivenessIndex as _, Location, Reading, Sensor, SensorId, SensorType, SilenceTimeout, Value,
};

use crate::support::{TestConsole, text};

pub(crate) async fn register(
    console: &TestConsole,
    id: &str,
    place: Option<[&str; 4]>,
) -> SensorId {
    let id = SensorId::new(id).unwrap();
    let location = place
        .map(|[city, building, floor, room]| Location::new(city, building, floor, room).unwrap());
    let mut sensor = Sensor::new(id.clone(), location);
    sensor.sensor_type = SensorType::new("lock").unwrap();
    sensor.silence_after = SilenceTimeout::seconds(3600).unwrap();
    console.services.sensors.register(sensor).await.unwrap();
    id
}

pub(crate) async fn read(console: &TestConsole, id: &SensorId, values: &[&str]) {
    let readings: Vec<Reading> = values
        .iter()
        .map(|value| {
            console.clock.advance(Duration::from_secs(60));
            let now = console.services.clock.now();
            Reading::new(Value::number(value).unwrap(), None, now, None).unwrap()
        })
        .collect();
    console.services.sensors.save(id, &readings).await.unwrap();
}

/// Lets a sensor be silent for too long.
async fn lose(console: &TestConsole, id: &SensorId) {
    console
        .clock
        .advance(Duration::from_secs(3600) + SWEEP_PERIOD);
    let now = console.services.clock.now();
    console
        .services
        .sensors
        .store()
        .check(id, now)
        .await
        .unwrap();
}

#[tokio::test]
async fn sensors_are_shown_by_place_and_lost_ones_stand_out() {
    let console = TestConsole::start().await;
    assert!(text(&console.html("/sensors").await).contains("No sensors yet"));
    let lost = register(&console, "door-213", Some(["Poznań", "A", "2", "213"])).await;
    read(&console, &lost, &["0", "1"]).await;
    lose(&console, &lost).await;
    let online = register(&console, "door-101", Some(["Poznań", "A", "1", "101"])).await;
    read(&console, &online, &["0"]).await;
    register(&console, "door-107", Some(["Poznań", "B", "1", "107"])).await;
    register(&console, "roaming", None).await;
    let page = text(&console.html("/sensors").await);
    assert!(
        page.contains("4 sensors: 1 lost , 2 never seen, 1 online"),
        "{page}"
    );
    assert!(page.contains("Poznań A 1 lost B never"), "{page}");
    let html = console.html("/sensors?city=Pozna%C5%84&building=A").await;
    let page = text(&html);
    assert!(page.contains("Floor 2 213 lost Floor 1 101 0"), "{page}");
    assert!(html.contains(r#"class="room lost""#), "{html}");
    assert!(page.contains("2 sensors: 1 lost"), "{page}");
    let lost_at = page.find("Lost 1").unwrap();
    assert!(lost_at < page.find("Online 1").unwrap(), "{page}");
    let page = text(&console.html("/sensors?show=lost").await);
    assert!(
        page.contains("1 sensors: 1 lost") && !page.contains("door-101"),
        "{page}"
    );
    let page = text(&console.html("/sensors?city=Nowhere").await);
    assert!(page.contains("No sensor here matches."), "{page}");
}

#[tokio::test]
async fn a_sensor_shows_its_readings_occurrences_and_clients() {
    let console = TestConsole::start().await;
    let id = register(&console, "plant-1", Some(["Poznań", "A", "-1", "Plant"])).await;
    let client = NewClient {
        id: Some(ClientId::new("night-watch").unwrap()),
        name: "Night watch".to_owned(),
        url: "http://127.0.0.1:9/hook".to_owned(),
        mode: Mode::Every,
        requested: None,
    };
    console.services.clients.create(client).await.unwrap();
    let watch = ClientId::new("night-watch").unwrap();
    console.services.clients.link(&watch, &id).await.unwrap();
    read(&console, &id, &["31.2", "30.5", "32"]).await;
    let html = console.html("/sensors?id=plant-1").await;
    let page = text(&html);
    assert!(page.contains("Poznań / A / -1 / Plant"), "{page}");
    assert!(page.contains("Last state 32"), "{page}");
    assert!(page.contains("night-watch"), "{page}");
    assert!(
        html.contains("plant-1, last 24 hours: 3 readings from 30.5 to 32"),
        "{html}"
    );
    assert!(html.contains(r#"<path class="series" d="M"#), "{html}");
    let page = text(&console.html("/sensors?id=plant-1&view=table").await);
    assert!(
        page.contains("Time Value Unit") && page.contains("31.2"),
        "{page}"
    );
    lose(&console, &id).await;
    let page = text(&console.html("/sensors?id=plant-1").await);
    assert!(
        page.contains("LOST") && page.contains("after 3,600 s of silence"),
        "{page}"
    );
    let page = text(&console.html("/sensors?id=unknown").await);
    assert!(page.contains("The sensor cannot be shown."), "{page}");
    let page = text(&console.html("/sensors?id=%3Cb%3E").await);
    assert!(page.contains("The sensor cannot be shown."), "{page}");
}

#[tokio::test]
async fn hostile_places_are_text() {
    let console = TestConsole::start().await;
    let hostile = "<img src=x onerror=alert(1)>";
    let id = register(
        &console,
        "s-1",
        Some([hostile, "\u{202e}B\"'", "</a>", "<script>"]),
    )
    .await;
    read(&console, &id, &["1"]).await;
    for path in [
        "/sensors",
        "/sensors?id=s-1",
        "/sensors?city=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&id=s-1",
        "/sensors?city=%3Cscript%3E&building=%22%3E%3Cscript%3E&show=%3Cscript%3E",
    ] {
        let html = console.html(path).await;
        assert!(
            !html.contains("<img") && !html.contains("<script>"),
            "{path}: {html}"
        );
    }
}
