//! Random steps on DynamoDB and on the store in memory, the reference: after each step both return and
//! store the same.

use antumbra_service::sensors::{
    Address, LivenessIndex, Sensor, SensorStore, Signal, SilenceTimeout, StateStore, Value,
};
use antumbra_testkit::sensors::MemorySensors;
use antumbra_testkit::sensors::sample::{at, id, new, somewhere};

use crate::store::sensors;

fn some_value(random: &mut fastrand::Rng) -> Value {
    match random.u8(..10) {
        0 => Value::Boolean(random.bool()),
        1 => Value::text(["", "open", "1"][random.usize(..3)]).unwrap(),
        2 => Value::number("20.5").unwrap(),
        _ => Value::whole(random.i64(0..=1)),
    }
}

fn some_signal(random: &mut fastrand::Rng, clock: i64) -> Signal {
    let sent = clock - random.i64(0..=40);
    let measured = (random.u8(..5) > 0).then(|| at(sent + random.i64(-60..=20)));
    let number = random.bool().then(|| random.u64(0..2));
    let message = ["a", "b", "c"][random.usize(..3)];
    Signal::new(
        id("s"),
        some_value(random),
        measured,
        number,
        at(sent),
        message,
    )
    .unwrap()
}

fn some_change(random: &mut fastrand::Rng, mut sensor: Sensor) -> Sensor {
    if random.bool() {
        sensor.silence_after = SilenceTimeout::seconds(random.u64(1..=120)).unwrap();
    } else {
        sensor.address = Address::new(random.u8(..3).to_string()).unwrap();
    }
    sensor
}

async fn walk(seed: u64, steps: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let dynamodb = &*sensors().await;
    let memory = MemorySensors::new(dynamodb.shards());
    let mut first = new(somewhere("s"));
    first.sensor.silence_after = SilenceTimeout::seconds(60).unwrap();
    let registered = dynamodb.register(&first).await;
    assert_eq!(registered, memory.register(&first).await);
    let mut registered = registered.unwrap();
    let mut clock = 0;
    for step in 0..steps {
        clock += random.i64(0..=30);
        match random.u8(..20) {
            0 => {
                let after = some_change(&mut random, registered.sensor.clone());
                let changed = dynamodb.change(&registered, &after, at(clock)).await;
                assert_eq!(changed, memory.change(&registered, &after, at(clock)).await);
                registered = changed.unwrap();
            }
            1 => {
                let shard = id("s").shard(dynamodb.shards());
                let due = dynamodb.due(shard, at(clock), 10, None).await;
                assert_eq!(due, memory.due(shard, at(clock), 10, None).await);
                for sensor in due.unwrap().rows {
                    let checked = dynamodb.check(&sensor, at(clock)).await;
                    assert_eq!(checked, memory.check(&sensor, at(clock)).await);
                }
            }
            2 => {
                let checked = dynamodb.check(&id("s"), at(clock)).await;
                assert_eq!(checked, memory.check(&id("s"), at(clock)).await);
            }
            _ => {
                let signal = some_signal(&mut random, clock);
                let recorded = dynamodb.record(&signal).await;
                assert_eq!(
                    recorded,
                    memory.record(&signal).await,
                    "seed {seed} step {step}"
                );
            }
        }
        let state = dynamodb.state(&id("s")).await;
        assert_eq!(
            state,
            memory.state(&id("s")).await,
            "seed {seed} step {step}"
        );
    }
}

#[tokio::test]
async fn both_stores_behave_the_same() {
    for seed in 0..12 {
        walk(seed, 150).await;
    }
}
