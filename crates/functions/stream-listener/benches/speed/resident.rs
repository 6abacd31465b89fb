//! Memory measurements, each in a process of its own.

use antumbra_testkit::lambda::{Lambda, nowhere};

use crate::listeners::{Ours, Sent, Shelf, files, load, rules};
use crate::variants::{RECORDS, SEED};
use antumbra_testkit::stream::{self, Order, Shape};

/// A field of the process status in bytes; 0 if the system does not have it.
fn status(process: &str, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<usize>().ok())
        .map_or(0, |kilobytes| kilobytes * 1024)
}

/// Prints the growth of memory as a multiple of the event's bytes, including the event.
pub(crate) fn print(reader: &str, file: &str) {
    let rules = rules(10, true);
    let ours = Ours::new(&rules, Sent::Diff, Shape::Large);
    let shelf = Shelf::new(&rules);
    let before = status("self", "VmRSS:");
    let event = std::fs::read(file).unwrap();
    let messages = match reader {
        "shelf" => shelf.listen(&event),
        _ => ours.handle(&event).sent,
    };
    let grown = status("self", "VmHWM:").saturating_sub(before);
    let times = grown as f64 / event.len() as f64;
    assert!(messages > 400, "{messages} messages");
    println!("{times:.2}");
}

/// Prints the memory of 10,000 registrations in MB.
pub(crate) fn print_loading() {
    let rules = rules(10_000, true);
    let before = status("self", "VmRSS:");
    let loaded = load(&rules, Sent::Diff);
    let megabytes = status("self", "VmRSS:").saturating_sub(before) as f64 / 1e6;
    assert_eq!(loaded.len(), 10_000);
    println!("{megabytes:.1}");
}

/// Prints the peak memory in MB of the real function with 10,000 registrations and an event.
pub(crate) fn print_function() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files(&rules(10_000, false), Sent::Diff) {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://{}", nowhere())),
        (
            "UNDELIVERABLE_QUEUE_URL",
            "http://queue/undeliverable".to_owned(),
        ),
        (
            "REGISTRATIONS",
            directory.path().to_str().unwrap().to_owned(),
        ),
    ];
    let function = Lambda::start(env!("CARGO_BIN_EXE_antumbra-stream-listener"), &environment);
    let event = stream::event(RECORDS, Shape::Large, Order::Same, SEED);
    let event = String::from_utf8(event).unwrap();
    assert_eq!(
        function.invoke(&event).unwrap(),
        r#"{"batchItemFailures":[]}"#
    );
    let highest = status(&function.id().to_string(), "VmHWM:") as f64 / 1e6;
    println!("{highest:.1}");
}
