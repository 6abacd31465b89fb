//! The listener behind `lambda_runtime`: a process that polls the runtime API, as on AWS.
//!
//! What counts is the CPU time of that process, since whoever waits for the next event costs nothing.

use std::time::Duration;

use antumbra_stream_listener::{NAME, StreamListener};
use antumbra_testkit::lambda::Lambda;

use crate::listeners::{Ours, Sent, rules};
use crate::rounds::Turn;
use crate::variants::{RECORDS, SEED};
use antumbra_testkit::stream::{self, Order, Shape};

/// Events in one turn, so that what happens between two looks at the clock does not count.
const EVENTS: usize = 10;

/// Serves events until the process is ended: 1,000 rules, all records match.
pub(crate) fn be_the_function() {
    let shape = Shape::named(&std::env::var("SHAPE").unwrap());
    let ours = Ours::new(&rules(1_000, true), Sent::Diff, shape);
    let listener = StreamListener(ours.listener);
    let serving = async move { antumbra_lambda_kit::run(NAME, listener).await.unwrap() };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(serving);
}

/// CPU time of a record, of a process that is handed events.
pub(crate) fn turn(shape: Shape) -> Turn {
    let this = std::env::current_exe().unwrap();
    let name = Shape::ALL
        .iter()
        .find(|(_, known)| *known == shape)
        .unwrap()
        .0;
    let environment = [("SHAPE", name.to_owned())];
    let function = Lambda::start(this.to_str().unwrap(), &environment);
    let event = stream::event(RECORDS, shape, Order::Same, SEED);
    let event = String::from_utf8(event).unwrap();
    Box::new(move || {
        let invoke = || {
            let answer = function.invoke(&event).unwrap();
            assert_eq!(answer, r#"{"batchItemFailures":[]}"#);
        };
        // The first one waits for the process to be asleep, waiting for an event.
        invoke();
        let before = cpu_time(function.id());
        (0..EVENTS).for_each(|_| invoke());
        let took = cpu_time(function.id()).saturating_sub(before);
        took.as_secs_f64() * 1e6 / (EVENTS * RECORDS) as f64
    })
}

/// What the process has computed so far, once it waits.
fn cpu_time(process: u32) -> Duration {
    let schedstat = || {
        let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
        let nanoseconds = text.split(' ').next().unwrap().parse().unwrap();
        Duration::from_nanos(nanoseconds)
    };
    let mut last = schedstat();
    loop {
        std::thread::sleep(Duration::from_millis(2));
        let now = schedstat();
        if now == last {
            return now;
        }
        last = now;
    }
}
