//! Decides what happens to a batch of stream records after an invocation. Pure.
//!
//! A fetched page of records is divided into [`Batch`]es. Each outcome of an invocation turns one batch into a
//! [`Next`], which the pump executes. The rules are those of Lambda's event source mapping:
//!
//! - Everything before the lowest reported failure is done; everything from there on is sent again.
//! - With bisecting on, a failed batch is split: at the reported failure, or in half if the failure is at its start
//!   or the whole invocation failed. A split uses up no attempt.
//! - Otherwise a failure uses up one attempt. If none is left, or the records are too old, the batch is discarded.

use std::{ops::Range, time::Duration};

use crate::batch_response::BatchResult;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum retries; `None` is unlimited, as AWS's default.
    pub retries: Option<u32>,
    /// Maximum age of a record; `None` is unlimited.
    pub max_age: Option<Duration>,
    /// Splits failed batches.
    pub bisect: bool,
    /// Reads batch item failures from the response; otherwise only function errors count.
    pub report_failures: bool,
    /// Delay of the first retry; it doubles with each further one.
    pub first_delay: Duration,
    pub longest_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: Some(10),
            max_age: None,
            bisect: true,
            report_failures: true,
            first_delay: Duration::from_millis(200),
            longest_delay: Duration::from_secs(30),
        }
    }
}

/// Consecutive records of a page that go to the function in one invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Positions in the page.
    pub(crate) records: Range<usize>,
    /// Failures that counted against the policy so far.
    pub(crate) failures: u32,
    /// Invocations so far, of this batch and those it was split from.
    pub(crate) calls: u32,
}

impl Batch {
    fn of(records: Range<usize>) -> Self {
        Self {
            records,
            failures: 0,
            calls: 0,
        }
    }
}

/// Outcome of an invocation, in positions of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Done up to this record, which is the lowest that failed.
    FailedFrom(usize),
    /// Nothing counts as done.
    Failed,
}

/// Reason why records were discarded, in the terms of AWS's failure record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    RetryAttemptsExhausted,
    RecordAgeExceeded,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// Every record before this one is processed: the new checkpoint.
    pub(crate) done_to: usize,
    /// Records to report to the failure destination before the checkpoint moves.
    pub(crate) given_up: Option<(Range<usize>, GivenUp)>,
    /// Batches to continue with, in order.
    pub(crate) batches: Vec<Batch>,
    pub(crate) wait: Duration,
}

/// Divides a page into batches within a number of records and of bytes. A record that is too large alone still makes
/// a batch.
pub(crate) fn cut(sizes: &[usize], max_records: usize, max_bytes: usize) -> Vec<Batch> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (position, size) in sizes.iter().enumerate() {
        let full = position - start == max_records.max(1) || bytes + size > max_bytes;
        if position > start && full {
            batches.push(Batch::of(start..position));
            (start, bytes) = (position, 0);
        }
        bytes += size;
    }
    if start < sizes.len() {
        batches.push(Batch::of(start..sizes.len()));
    }
    batches
}

/// Finds the first failed record of the batch.
pub(crate) fn outcome<'a>(
    batch: &Batch,
    answer: &BatchResult,
    sequence_number: impl Fn(usize) -> &'a str,
) -> Outcome {
    let failures = match answer {
        BatchResult::Success => return Outcome::Done,
        BatchResult::Invalid => return Outcome::Failed,
        BatchResult::Failures(failures) => failures,
    };
    let position = |failure: &String| {
        let mut records = batch.records.clone();
        records.find(|&record| sequence_number(record) == failure)
    };
    // An identifier that is not in the batch makes the whole response invalid.
    let lowest = failures.iter().map(position).collect::<Option<Vec<_>>>();
    lowest
        .and_then(|positions| positions.into_iter().min())
        .map_or(Outcome::Failed, Outcome::FailedFrom)
}

pub(crate) fn decide(batch: &Batch, outcome: &Outcome, policy: &RetryPolicy) -> Next {
    let Range { start, end } = batch.records;
    let from = match *outcome {
        Outcome::Done => return done(end),
        Outcome::FailedFrom(position) => position,
        Outcome::Failed => start,
    };
    let calls = batch.calls + 1;
    let part = |records: Range<usize>, failures| Batch {
        records,
        failures,
        calls,
    };
    if policy.bisect && from > start {
        return Next {
            batches: vec![part(from..end, batch.failures)],
            wait: delay(policy, batch.failures),
            ..done(from)
        };
    }
    if policy.bisect && end - start > 1 {
        let middle = start + (end - start) / 2;
        return Next {
            batches: vec![
                part(start..middle, batch.failures),
                part(middle..end, batch.failures),
            ],
            wait: delay(policy, batch.failures),
            ..done(start)
        };
    }
    let failures = batch.failures + 1;
    if policy.retries.is_some_and(|retries| failures > retries) {
        return Next {
            given_up: Some((from..end, GivenUp::RetryAttemptsExhausted)),
            ..done(end)
        };
    }
    Next {
        batches: vec![part(from..end, failures)],
        wait: delay(policy, batch.failures),
        ..done(from)
    }
}

/// Discards the records at the head of a batch that are too old; `None` if there are none. Ages only fall along a
/// shard, so the head is enough.
pub(crate) fn expire(
    batch: &Batch,
    policy: &RetryPolicy,
    age: impl Fn(usize) -> Duration,
) -> Option<Next> {
    let limit = policy.max_age?;
    let old = batch
        .records
        .clone()
        .take_while(|&r| age(r) > limit)
        .count();
    if old == 0 {
        return None;
    }
    let alive = batch.records.start + old;
    let rest = Batch {
        records: alive..batch.records.end,
        ..batch.clone()
    };
    Some(Next {
        given_up: Some((batch.records.start..alive, GivenUp::RecordAgeExceeded)),
        batches: Some(rest)
            .filter(|b| !b.records.is_empty())
            .into_iter()
            .collect(),
        ..done(alive)
    })
}

fn done(done_to: usize) -> Next {
    Next {
        done_to,
        given_up: None,
        batches: Vec::new(),
        wait: Duration::ZERO,
    }
}

fn delay(policy: &RetryPolicy, failures: u32) -> Duration {
    let doubled = policy
        .first_delay
        .saturating_mul(2_u32.saturating_pow(failures));
    doubled.min(policy.longest_delay)
}

#[cfg(test)]
mod tests;
