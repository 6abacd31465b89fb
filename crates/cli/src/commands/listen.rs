//! `antumbra listen`: a webhook endpoint that verifies signatures and prints deliveries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use antumbra_local::receiver::{self, Received, Verdict};
use antumbra_service::clients::Secret;
use clap::Args;

use crate::error::CliError;
use crate::output::{BAD, FAINT, GOOD, STRONG, styled};
use crate::signals::Signals;

#[derive(Debug, Args)]
pub(crate) struct ListenArguments {
    /// Port; 0 for any free one.
    #[arg(long, default_value_t = 9000, value_name = "PORT")]
    port: u16,
    /// Signing secret of the client (whsec_…); both secrets, comma-separated, during a rotation. Without it
    /// signatures are not verified.
    #[arg(
        long,
        value_name = "SECRET",
        env = "ANTUMBRA_WEBHOOK_SECRET",
        value_delimiter = ','
    )]
    secret: Vec<String>,
    /// Status of the responses.
    #[arg(long, default_value_t = 204, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
    /// Fail this number of deliveries with status 500 first.
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    fail_first: u32,
    /// Stop after this number of deliveries.
    #[arg(long, value_name = "COUNT")]
    count: Option<u32>,
    /// Host name that requests may have beside loopback ones, for example of a tunnel. Can be repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
}

pub(crate) async fn run(arguments: ListenArguments, json: bool) -> Result<(), CliError> {
    let secrets: Vec<Secret> = arguments
        .secret
        .iter()
        .map(|text| Secret::new(text))
        .collect::<Result<_, _>>()
        .map_err(CliError::invalid)?;
    let verified = !secrets.is_empty();
    let failures = Arc::new(AtomicU32::new(arguments.fail_first));
    let status = arguments.status;
    let respond = move |verdict: &Verdict| {
        let fails = failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        match verdict {
            Verdict::Refused(_) => 401,
            _ if fails => 500,
            _ => status,
        }
    };
    let hosts = arguments.allow_host.into_iter().collect();
    let mut signals = Signals::listen().map_err(CliError::unavailable)?;
    let mut receiver = receiver::start(arguments.port, secrets, hosts, respond)
        .await
        .map_err(CliError::unavailable)?;
    anstream::eprintln!("{}", banner(receiver.address(), verified));
    let mut left = arguments.count;
    while left != Some(0) {
        let received = tokio::select! {
            received = receiver.next() => received,
            () = signals.next() => None,
        };
        let Some(received) = received else {
            break;
        };
        if !crate::output::print_while_read(&line(&received, json))? {
            break;
        }
        left = left.map(|left| left - 1);
    }
    Ok(())
}

fn banner(address: SocketAddr, verified: bool) -> String {
    let verification = if verified {
        "signatures are verified"
    } else {
        "signatures are not verified; give --secret"
    };
    format!(
        "{} http://{address}/  {}",
        styled(STRONG, "listening on"),
        styled(FAINT, verification)
    )
}

fn line(received: &Received, json: bool) -> String {
    if json {
        return received.json().to_string();
    }
    let verdict = match &received.verdict {
        Verdict::Verified => styled(GOOD, "verified"),
        Verdict::Unverified => styled(FAINT, "not verified"),
        Verdict::Refused(reason) => format!("{}: {reason}", styled(BAD, "invalid")),
    };
    format!(
        "{} {} {verdict} {}\n  {}",
        styled(STRONG, &received.kind()),
        received.status,
        styled(FAINT, &received.id),
        received.body
    )
}
