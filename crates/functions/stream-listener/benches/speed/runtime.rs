//! The listener behind `lambda_runtime`: a process that polls the runtime API, as on AWS.
//!
//! Measured is the CPU time of that process; waiting for the next event costs nothing.

use std::time::Duration;

use antumbra_stream_listener::{NAME, StreamListener};
use antumbra_testkit::lambda::Lambda;

use crate::listeners::{Ours, Sent, rules};
use crate::rounds::MeasuredRun;
use crate::variants::{RECORDS, SEED};
use antumbra_testkit::stream::{self, Order, Shape};

/// Events per run, so that the resolution of the clock does not matter.
const EVENTS: usize = 10;

/// Serves events until the process is ended: 1,000 rules, all records match.
pub(crate) fn run_as_function() {
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

/// CPU time per record of a process that receives events.
pub(crate) fn turn(shape: Shape) -> MeasuredRun {
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
        // Wait until the process sleeps, waiting for an event.
        invoke();
        let before = cpu_time(function.id());
        (0..EVENTS).for_each(|_| invoke());
        let took = cpu_time(function.id()).saturating_sub(before);
        took.as_secs_f64() * 1e6 / (EVENTS * RECORDS) as f64
    })
}

/// The CPU time of the process, as soon as it waits.
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
