//! How much memory reading one event takes, in a process that does nothing else.

use antumbra_registration::Parts;

use crate::generate::Shape;
use crate::roads::{Listener, Shelf, load, rules};
use crate::variants::model;

/// Bytes of this process that are in memory now; 0 where the system does not say.
fn now() -> usize {
    status("VmRSS:")
}

fn status(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<usize>().ok())
        .map_or(0, |kilobytes| kilobytes * 1024)
}

/// Prints the growth over the bytes of the event, the event itself included.
pub(crate) fn print(road: &str, file: &str) {
    let rules = rules(10, true);
    let mut ours = Listener::new(&rules, Parts::default(), model(Shape::Large));
    let shelf = Shelf::new(&rules);
    let before = now();
    let event = std::fs::read(file).unwrap();
    let messages = match road {
        "shelf" => shelf.listen(&event),
        _ => ours.listen(&event),
    };
    let grown = status("VmHWM:").saturating_sub(before);
    let times = grown as f64 / event.len() as f64;
    let megabytes = event.len() as f64 / 1e6;
    println!("{times:.1} x of {megabytes:.1} MB, {messages} messages");
}

/// Prints what 10,000 registrations take, in a process that has not loaded any before.
pub(crate) fn print_loading() {
    let rules = rules(10_000, true);
    let before = now();
    let loaded = load(&rules);
    let megabytes = now().saturating_sub(before) as f64 / 1e6;
    println!("{megabytes:.1} MB for {}", loaded.len());
}
