//! Measures the listener including `lambda_runtime`: a second process polls the runtime API, as on AWS.
//!
//! The result is the CPU time of that process, so that waiting for the next event does not count.

use std::time::Duration;

use antumbra_stream_listener::{NAME, StreamListener};
use antumbra_testkit::lambda::Lambda;

use crate::listeners::{Ours, Sent, rules};
use crate::rounds::MeasuredRun;
use crate::variants::{RECORDS, SEED};
use antumbra_testkit::stream::{self, Order, Shape};

/// Events per run: enough that the resolution of the CPU time does not matter.
const EVENTS: usize = 10;

/// Runs this process as the function, until it is killed. It has 1,000 registrations, and every record matches one.
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

/// Starts this executable again as the function. Returns a run that measures its CPU time per record.
pub(crate) fn run(shape: Shape) -> MeasuredRun {
    let executable = std::env::current_exe().unwrap();
    let shape_name = Shape::ALL
        .iter()
        .find(|(_, known)| *known == shape)
        .unwrap()
        .0;
    let environment = [("SHAPE", shape_name.to_owned())];
    let function = Lambda::start(executable.to_str().unwrap(), &environment);
    let event = stream::event(RECORDS, shape, Order::Same, SEED);
    let event = String::from_utf8(event).unwrap();
    Box::new(move || {
        let invoke = || {
            let response = function.invoke(&event).unwrap();
            assert_eq!(response, r#"{"batchItemFailures":[]}"#);
        };
        // One event first, so that starting the process is not measured.
        invoke();
        let before = cpu_time(function.id());
        (0..EVENTS).for_each(|_| invoke());
        let took = cpu_time(function.id()).saturating_sub(before);
        took.as_secs_f64() * 1e6 / (EVENTS * RECORDS) as f64
    })
}

/// Waits until a process is idle, which is when its CPU time no longer grows, and returns that time.
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
