//! The contract of the sensor ports, in memory.

use std::sync::{Arc, Mutex};

use antumbra_service::sensors::SensorStore;
use antumbra_testkit::sensors::sample::id;
use antumbra_testkit::sensors::storm::{Image, Storm, assert_end, assert_history};
use antumbra_testkit::sensors::{MemorySensors, contract};

pub(crate) async fn fresh() -> impl contract::Store {
    MemorySensors::new(4)
}

antumbra_testkit::sensor_contract!(crate::sensors::fresh);

#[tokio::test]
async fn a_storm_ends_right_and_leaves_no_gap() {
    for seed in 0..200 {
        let store = MemorySensors::default();
        let images: Arc<Mutex<Vec<Image>>> = Arc::default();
        let seen = Arc::clone(&images);
        store.watch(move |old, new| seen.lock().unwrap().push((old.cloned(), new.clone())));
        let storm = Storm {
            seed,
            sensors: 3,
            signals: 40,
            workers: 4,
        };
        let (signals, _) = storm.blow(&store).await;
        for n in 0..storm.sensors {
            let end = store.state(&id(&format!("s{n}"))).await.unwrap();
            assert_end(&signals, &end);
        }
        assert!(assert_history(&images.lock().unwrap()) > 0, "seed {seed}");
    }
}
