//! Load on one local stack, and a check that nothing is lost.
//!
//! Reports at a steady rate, each a read and a write in DynamoDB and a notification in a queue; signals of
//! sensors, each a state, a reading and a signed POST to a client. Everything uses the network protocols. Afterwards
//! every change must have arrived in order and without a gap, and every reading and delivery must be there.
//!
//! `cargo run --release -p antumbra-local --example load -- [REPORTS_PER_SECOND] [SECONDS]`, and any of
//! `signals=PER_SECOND`, `devices=COUNT`, `memory` (keep nothing), `unkind=SEED` (faults that AWS allows), `growth` (then with 1,000, 10,000 and
//! 100,000 devices; `growth=10,20` for other counts), `no-history`, `svg=FILE`, `markdown=FILE`.
//!
//! With `saturate` it finds the highest rates of reports and of signals that the stack sustains, each for SECONDS;
//! `0 SECONDS saturate` measures signals alone, `signals=0` reports alone.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod growth;
mod home;
mod measure;
mod plan;
mod plot;
mod received;
mod run;
mod saturate;
mod send;
mod table;
mod verify;

use std::process::ExitCode;

use home::Home;
use plan::Plan;

// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let plan = match Plan::parse(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::from(2);
        }
    };
    let home = Home::start(&plan).await;
    println!("up: {} MB resident", measure::resident_megabytes());
    if plan.saturate {
        let (_, faults) = saturate::measure(&home, &plan).await;
        home.stack.stop().await;
        return exit_code(&faults);
    }
    let (home, outcome) = run::run(home, &plan).await;
    println!("{}", table::sentences(&outcome));
    let mut grown = Vec::new();
    let mut faults = outcome.faults.clone();
    if !plan.growth.is_empty() {
        let (rows, more) = growth::measure(home, &plan).await;
        faults.extend(more);
        grown = rows;
    } else {
        home.stack.stop().await;
    }
    let markdown = table::markdown(&plan, &outcome, &grown);
    if !plan.growth.is_empty() {
        println!("{markdown}");
    }
    if let Some(file) = &plan.markdown {
        std::fs::write(file, markdown).unwrap();
    }
    if let Some(file) = &plan.svg {
        std::fs::write(file, plot::svg(&outcome.seconds)).unwrap();
    }
    exit_code(&faults)
}

fn exit_code(faults: &[String]) -> ExitCode {
    for fault in faults {
        eprintln!("FAULT: {fault}");
    }
    ExitCode::from(u8::from(!faults.is_empty()))
}
