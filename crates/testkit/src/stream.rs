//! Stream events for benchmarks, by a seed: MODIFY records with old and new images of a nested document of 50
//! timestamped sensors, of which a few changed.

use std::fmt::Write;

/// Size of a document: short names and two numbers per sensor, or long names and five values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// 1.4 KB as plain JSON, 5.5 KB as a stream record.
    Small,
    /// 4.0 KB as plain JSON, 13.2 KB as a stream record.
    Large,
}

impl Shape {
    /// All shapes with their names.
    pub const ALL: [(&'static str, Shape); 2] = [("1k", Shape::Small), ("4k", Shape::Large)];

    /// Returns the shape of a name.
    pub fn named(name: &str) -> Shape {
        let named = Shape::ALL.iter().find(|(known, _)| *known == name);
        named.expect("1k or 4k").1
    }

    /// Returns the member with the time of a sensor.
    pub fn timestamp_field(self) -> &'static str {
        match self {
            Shape::Small => "t",
            Shape::Large => "timestamp",
        }
    }

    /// Returns the member with the value of a sensor.
    pub fn value_field(self) -> &'static str {
        match self {
            Shape::Small => "v",
            Shape::Large => "value",
        }
    }
}

/// The order of members in the new image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As in the old image.
    Same,
    /// Shuffled at every level.
    Shuffled,
}

const GROUPS: usize = 5;
const SENSORS: usize = 10;
const CHANGED: usize = 3;

#[derive(Clone)]
struct Sensor {
    time: u64,
    value: u32,
    low: u32,
    high: u32,
}

/// Generates an event.
pub fn event(records: usize, shape: Shape, order: Order, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut out = String::from("{\"Records\":[");
    for index in 0..records {
        if index > 0 {
            out.push(',');
        }
        record(&mut out, index, shape, order, &mut random);
    }
    out.push_str("]}");
    out.into_bytes()
}

fn record(out: &mut String, index: usize, shape: Shape, order: Order, random: &mut fastrand::Rng) {
    let mut sensors: Vec<Sensor> = (0..GROUPS * SENSORS)
        .map(|_| Sensor {
            time: 1_731_700_000 + random.u64(..100_000),
            value: random.u32(..10),
            low: random.u32(..9),
            high: random.u32(30..50),
        })
        .collect();
    let id = random.u128(..);
    let keys = format!(
        "\"PK\":{{\"S\":\"DS#My House#Basement#{index:04}\"}},\"SK\":{{\"S\":\"DSR#main\"}}"
    );
    let _ = write!(
        out,
        "{{\"eventID\":\"{id:032x}\",\"eventName\":\"MODIFY\",\"eventVersion\":\"1.1\",\
         \"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"eu-west-1\",\"dynamodb\":{{\
         \"ApproximateCreationDateTime\":1731700000,\"Keys\":{{{keys}}},\"NewImage\":{{{keys},"
    );
    let version = random.u32(1..1_000);
    let mut old = String::new();
    image(&mut old, version, &sensors, shape, Order::Same, random);
    for _ in 0..CHANGED {
        let sensor = random.usize(..sensors.len());
        sensors[sensor].time += 60;
        sensors[sensor].value = (sensors[sensor].value + 1) % 10;
    }
    image(out, version + 1, &sensors, shape, order, random);
    let _ = write!(
        out,
        "}},\"OldImage\":{{{keys},{old}}},\"SequenceNumber\":\"{:021}\",\"SizeBytes\":2048,\
         \"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}},\"eventSourceARN\":\
         \"arn:aws:dynamodb:eu-west-1:123456789012:table/antumbra/stream/2024-11-15T20:26:40.123\"}}",
        index + 1_000_000,
    );
}

fn image(
    out: &mut String,
    version: u32,
    sensors: &[Sensor],
    shape: Shape,
    order: Order,
    random: &mut fastrand::Rng,
) {
    let _ = write!(
        out,
        "\"version\":{{\"N\":\"{version}\"}},\"timestamp\":{{\"N\":\"1731700000123456789\"}},\
         \"clientToken\":{{\"S\":\"token-{version}\"}},\"reported\":{{\"M\":{{"
    );
    let mut order_of = |count: usize| {
        let mut order_of: Vec<usize> = (0..count).collect();
        if order == Order::Shuffled {
            random.shuffle(&mut order_of);
        }
        order_of
    };
    for (place, group) in order_of(GROUPS).into_iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"room{group}\":{{\"M\":{{");
        for (place, index) in order_of(SENSORS).into_iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let sensor = &sensors[group * SENSORS + index];
            let _ = match shape {
                Shape::Small => write!(
                    out,
                    "{comma}\"{index}\":{{\"M\":{{\"t\":{{\"N\":\"{}\"}},\"v\":{{\"N\":\"{}\"}}}}}}",
                    sensor.time, sensor.value,
                ),
                Shape::Large => write!(
                    out,
                    "{comma}\"sensor-{index}\":{{\"M\":{{\"timestamp\":{{\"N\":\"{}123\"}},\
                     \"value\":{{\"N\":\"2{}.57\"}},\"unit\":{{\"S\":\"C\"}},\
                     \"low\":{{\"N\":\"{}\"}},\"high\":{{\"N\":\"{}\"}}}}}}",
                    sensor.time, sensor.value, sensor.low, sensor.high,
                ),
            };
        }
        out.push_str("}}");
    }
    out.push_str("}}");
}
