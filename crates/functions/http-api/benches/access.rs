//! Time of a request by a caller with every grant, with 100 grants of which the last one covers it, and of one that no
//! grant covers. They alternate in one run, minima compared. Prints a table; `cargo bench -p antumbra-http-api`.

// The benchmark prints its result, and panics if it cannot continue.
#![allow(clippy::print_stdout, clippy::unwrap_used, dead_code)]

#[path = "../tests/it/services.rs"]
mod services;
#[path = "../tests/it/support.rs"]
mod support;

use std::time::{Duration, Instant};

use support::TestApi;

const GRANTS: usize = 100;
const ROUNDS: usize = 21;
const REQUESTS: u32 = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let many: Vec<String> = (1..=GRANTS)
        .map(|n| format!("shadows:read:tenant-{n}:"))
        .collect();
    let many = many.join(" ");
    let other = "sensors:read";
    let api = TestApi::start_with(&[&many, other]).await;
    let path = format!("/v1/shadows/tenant-{GRANTS}:lamp");
    let report = r#"{"reported":{"led":{"value":"on","timestamp":"2026-01-31T11:59:00Z"}}}"#;
    api.patch(&path, report).await.ok(200);
    let callers = [("*", 200), (&many[..], 200), (other, 403)];
    let mut fastest = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        for ((grants, status), fastest) in callers.iter().zip(&mut fastest) {
            let start = Instant::now();
            for _ in 0..REQUESTS {
                let request = match *grants {
                    "*" => api.request("GET", &path),
                    grants => api.request_as(grants, "GET", &path),
                };
                assert_eq!(request.send().await.status, *status);
            }
            *fastest = (*fastest).min(start.elapsed() / REQUESTS);
        }
    }
    let [all, many, refused] = fastest.map(|time| time.as_secs_f64() * 1e6);
    println!("| read of a shadow over HTTP | µs | against all grants |\n|---|---|---|");
    println!("| all grants | {all:.0} | 1.00 |");
    println!(
        "| {GRANTS} grants, the last one covers it | {many:.0} | {:.2} |",
        many / all
    );
    println!(
        "| refused, without a call to DynamoDB | {refused:.0} | {:.2} |",
        refused / all
    );
}
