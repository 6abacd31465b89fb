use super::*;

fn policy(bisect: bool, retries: Option<u32>) -> RetryPolicy {
    RetryPolicy {
        retries,
        bisect,
        first_delay: Duration::from_millis(100),
        longest_delay: Duration::from_secs(1),
        ..RetryPolicy::default()
    }
}

fn batch(records: Range<usize>, failures: u32) -> Batch {
    Batch {
        records,
        failures,
        calls: failures,
    }
}

/// The ranges that follow and the failures each has used up.
fn rest(next: &Next) -> Vec<(Range<usize>, u32)> {
    let part = |b: &Batch| (b.records.clone(), b.failures);
    next.batches.iter().map(part).collect()
}

#[test]
fn a_page_is_cut_by_count_and_by_bytes() {
    let ranges = |sizes: &[usize], records, bytes| -> Vec<Range<usize>> {
        let batches = cut(sizes, records, bytes);
        batches.into_iter().map(|b| b.records).collect()
    };
    assert!(ranges(&[], 3, 100).is_empty());
    assert_eq!(ranges(&[1, 1, 1, 1, 1], 2, 100), [0..2, 2..4, 4..5]);
    assert_eq!(ranges(&[60, 40, 1, 99], 10, 100), [0..2, 2..4]);
    assert_eq!(ranges(&[500, 1, 500], 10, 100), [0..1, 1..2, 2..3]);
}

#[test]
fn the_lowest_failure_counts_whatever_the_order() {
    let numbers = ["s0", "s1", "s2", "s3"];
    let read = |ids: &[&str]| {
        let answer = BatchResult::Failures(ids.iter().map(ToString::to_string).collect());
        outcome(&batch(1..4, 0), &answer, |position| numbers[position])
    };
    assert_eq!(read(&["s3", "s2"]), Outcome::FailedFrom(2));
    assert_eq!(read(&["s1"]), Outcome::FailedFrom(1));
    assert_eq!(read(&["s0"]), Outcome::Failed, "not in this batch");
    assert_eq!(read(&["s2", "nonsense"]), Outcome::Failed);
}

#[test]
fn success_moves_the_checkpoint_past_the_batch() {
    let next = decide(&batch(3..7, 2), &Outcome::Done, &policy(true, Some(3)));
    assert_eq!(next, done(7));
}

#[test]
fn without_bisecting_a_partial_failure_retries_the_rest_and_counts() {
    let next = decide(
        &batch(0..4, 0),
        &Outcome::FailedFrom(2),
        &policy(false, Some(3)),
    );
    assert_eq!(next.done_to, 2);
    assert_eq!(rest(&next), [(2..4, 1)]);
    assert_eq!(next.wait, Duration::from_millis(100));
    assert_eq!(next.given_up, None);
}

#[test]
fn bisecting_splits_at_the_reported_record_for_free() {
    let next = decide(
        &batch(0..4, 1),
        &Outcome::FailedFrom(3),
        &policy(true, Some(1)),
    );
    assert_eq!(next.done_to, 3);
    assert_eq!(rest(&next), [(3..4, 1)]);
}

#[test]
fn bisecting_halves_when_the_failure_is_at_the_start() {
    for outcome in [Outcome::Failed, Outcome::FailedFrom(2)] {
        let next = decide(&batch(2..7, 0), &outcome, &policy(true, Some(0)));
        assert_eq!(next.done_to, 2, "nothing is done yet");
        assert_eq!(rest(&next), [(2..4, 0), (4..7, 0)]);
    }
}

#[test]
fn a_single_record_is_retried_and_then_discarded() {
    let policy = policy(true, Some(2));
    let first = decide(&batch(4..5, 0), &Outcome::Failed, &policy);
    assert_eq!(rest(&first), [(4..5, 1)]);
    assert_eq!(first.done_to, 4);
    let second = decide(&first.batches[0], &Outcome::Failed, &policy);
    assert_eq!(rest(&second), [(4..5, 2)]);
    let last = decide(&second.batches[0], &Outcome::Failed, &policy);
    assert_eq!(last.given_up, Some((4..5, GivenUp::RetryAttemptsExhausted)));
    assert_eq!(last.done_to, 5, "the shard moves on");
    assert!(last.batches.is_empty());
}

#[test]
fn discarding_keeps_what_the_last_invocation_processed() {
    let next = decide(
        &batch(0..4, 1),
        &Outcome::FailedFrom(2),
        &policy(false, Some(1)),
    );
    assert_eq!(next.given_up, Some((2..4, GivenUp::RetryAttemptsExhausted)));
    assert_eq!(next.done_to, 4);
}

#[test]
fn unlimited_retries_discard_nothing() {
    let next = decide(&batch(0..1, 9_999), &Outcome::Failed, &policy(true, None));
    assert_eq!(rest(&next), [(0..1, 10_000)]);
    assert_eq!(next.wait, Duration::from_secs(1), "the wait has a ceiling");
}

#[test]
fn the_delay_doubles() {
    let policy = policy(false, None);
    let waits = [0, 1, 2, 3, 4].map(|n| delay(&policy, n).as_millis());
    assert_eq!(waits, [100, 200, 400, 800, 1000]);
}

#[test]
fn old_records_are_discarded() {
    let ages = [90, 61, 60, 10].map(Duration::from_secs);
    let limited = RetryPolicy {
        max_age: Some(Duration::from_secs(60)),
        ..policy(true, None)
    };
    let next = expire(&batch(0..4, 0), &limited, |r| ages[r]).expect("two are too old");
    assert_eq!(next.given_up, Some((0..2, GivenUp::RecordAgeExceeded)));
    assert_eq!(next.done_to, 2);
    assert_eq!(rest(&next), [(2..4, 0)]);
    assert_eq!(expire(&batch(2..4, 0), &limited, |r| ages[r]), None);
    assert_eq!(
        expire(&batch(0..4, 0), &policy(true, None), |r| ages[r]),
        None
    );
}

/// However invocations fail, every record is processed or discarded, in order: the page always ends.
#[test]
fn every_pattern_of_poison_records_ends_with_the_whole_page_processed() {
    const RECORDS: usize = 6;
    for poison in 0_u32..(1 << RECORDS) {
        for bisect in [true, false] {
            let policy = policy(bisect, Some(1));
            let mut queue = cut(&[1; RECORDS], RECORDS, 100);
            let (mut taken, mut given_up, mut done_to) = (Vec::new(), Vec::new(), 0);
            while !queue.is_empty() {
                let batch = queue.remove(0);
                let bad = batch.records.clone().find(|r| poison & (1 << r) != 0);
                taken.extend(batch.records.start..bad.unwrap_or(batch.records.end));
                let outcome = bad.map_or(Outcome::Done, Outcome::FailedFrom);
                let next = decide(&batch, &outcome, &policy);
                assert!(next.done_to >= done_to, "a checkpoint never goes back");
                done_to = next.done_to;
                given_up.extend(next.given_up.into_iter().flat_map(|(range, _)| range));
                queue.splice(0..0, next.batches);
            }
            assert_eq!(done_to, RECORDS);
            for record in 0..RECORDS {
                let is_poison = poison & (1 << record) != 0;
                assert!(taken.contains(&record) || given_up.contains(&record));
                assert!(!is_poison || given_up.contains(&record));
                let alone = bisect && !is_poison;
                assert!(
                    !alone || !given_up.contains(&record),
                    "bisecting isolates poison"
                );
            }
        }
    }
}
