//! A month of a small fleet: sensors that fall silent and come back, a queue that nobody reads for hours,
//! restarts, two sweeps at once, duplicates, wrong clocks. Never early, at most a sweep's period and its
//! run late, once per outage.

use std::fmt;

use futures_util::future::join;

use crate::fleet::{DELIVERY_MS, Habit, PERIOD_MS, SETTLE, Seen, WAIT, World};
use antumbra_testkit::sensors::sample::NOON_MS;

const DAY_MS: i64 = 24 * 3_600_000;
const MINUTE_MS: i64 = 60_000;
/// A sweep's own run: it waits for its marker, which is among what may be delivered three seconds late,
/// and for what the marker overtook.
const RUN_MS: i64 = SETTLE.as_millis() as i64 + DELIVERY_MS + 1000;

/// A time in which something kept the sweep from its work.
#[derive(Debug, Clone, Copy)]
struct Trouble {
    from: i64,
    /// When it was over and everything that waited was taken in.
    to: i64,
}

#[derive(Debug, Default)]
struct Figures {
    messages: i64,
    outages: usize,
    lost: usize,
    too_short: usize,
    restored: usize,
    changed: usize,
    /// In milliseconds after the deadline.
    latest: i64,
    mean: i64,
    in_trouble: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages, {} outages, {} found lost ({} ended before a sweep), none early, none twice; \
             late by {:.1} s on average and {:.1} s at most, without {} in a paused queue or a broken sweep; \
             {} restored, {} changed",
            self.messages,
            self.outages,
            self.lost,
            self.too_short,
            self.mean as f64 / 1000.0,
            self.latest as f64 / 1000.0,
            self.in_trouble,
            self.restored,
            self.changed,
        )
    }
}

/// Compares what was found with what was so.
fn judge(registered_at: i64, end: i64, all: &[(Habit, Seen)], troubles: &[Trouble]) -> Figures {
    let mut figures = Figures::default();
    let mut late = Vec::new();
    for (habit, seen) in all {
        figures.restored += seen.restored;
        figures.changed += seen.changed;
        let mut found = seen.lost.iter().copied().peekable();
        let spoke = std::iter::once(registered_at).chain(seen.sent.iter().copied());
        let next = seen.sent.iter().copied().chain(std::iter::once(i64::MAX));
        for (last, next) in spoke.zip(next) {
            let deadline = last + habit.silence_s * 1000;
            if next <= deadline || deadline > end {
                continue;
            }
            figures.outages += 1;
            // Troubles that touch the time in which it should have been found, the last of them.
            let mut due = deadline + PERIOD_MS + RUN_MS;
            let mut troubled = false;
            for trouble in troubles {
                if trouble.from <= due && trouble.to >= deadline {
                    due = trouble.to + PERIOD_MS + RUN_MS;
                    troubled = true;
                }
            }
            match found.peek() {
                Some(&at) if at < next.saturating_add(RUN_MS) => {
                    found.next();
                    assert!(at >= deadline, "early by {} ms: {habit:?}", deadline - at);
                    assert!(
                        at <= due,
                        "{} ms too late: {habit:?}, deadline {deadline}",
                        at - due
                    );
                    figures.lost += 1;
                    if troubled {
                        figures.in_trouble += 1;
                    } else {
                        late.push(at - deadline);
                    }
                }
                _ => {
                    assert!(
                        next <= due || due > end,
                        "never found: {habit:?}, due {due}, next {next}"
                    );
                    figures.too_short += 1;
                }
            }
        }
        assert_eq!(
            found.next(),
            None,
            "found lost without an outage, or twice: {habit:?}"
        );
    }
    figures.latest = late.iter().copied().max().unwrap_or_default();
    figures.mean = late.iter().sum::<i64>() / (late.len() as i64).max(1);
    figures
}

async fn month(seed: u64, days: i64, sensors: usize) -> Figures {
    let world = World::new(seed);
    for index in 0..sensors {
        let silence_s = [600, 3600, 3600, 3600, 86_400][index % 5];
        let habit = Habit {
            silence_s,
            // Most speak in time, at times just about.
            every_ms: (silence_s * 300, silence_s * 998),
            falls_silent: 150,
            silent_ms: (silence_s * 1000, silence_s * 1000 + 6 * 3_600_000),
            // A third without a clock, a third right, the others an hour off either way.
            clock_ms: [
                None,
                Some(0),
                Some(-3_600_000),
                None,
                Some(3_600_000),
                Some(0),
            ][index % 6],
        };
        let first = (index % 50 != 0).then(|| world.between((0, silence_s * 900)));
        world.add(habit, first).await;
    }
    let mut troubles: Vec<Trouble> = Vec::new();
    let end = NOON_MS + days * DAY_MS;
    let mut resume_at = None;
    for tick in 1.. {
        let at = NOON_MS + tick * PERIOD_MS;
        if at > end {
            break;
        }
        world.until(at).await;
        // Twice a week nobody reads the queue for up to three hours.
        if tick % (3 * 1440 + 1234) == 0 {
            world.pause(true);
            let minutes = world.between((5, 180));
            resume_at = Some(tick + minutes);
            troubles.push(Trouble {
                from: at - MINUTE_MS,
                to: i64::MAX,
            });
        }
        if resume_at == Some(tick) {
            world.pause(false);
            resume_at = None;
            if let Some(last) = troubles.last_mut() {
                last.to = at + 5 * 1000;
            }
        }
        // Every few hours a deployment.
        if tick % 311 == 0 {
            world.restart();
        }
        let deadline = world.after(58_000);
        if tick % 977 == 0 {
            // A sweep that ends before it began: the next one does its work.
            let _ = world.sweeper().sweep(world.after(0)).await;
            troubles.push(Trouble { from: at, to: at });
            continue;
        }
        if tick % 7 == 0 {
            let (one, two) = (world.sweeper(), world.sweeper());
            let (one, two) = join(one.sweep(deadline), two.sweep(deadline)).await;
            assert!(one.unwrap().failed + two.unwrap().failed == 0);
        } else {
            let report = world.sweeper().sweep(deadline).await.unwrap();
            assert_eq!(report.failed, 0);
        }
    }
    assert!(WAIT > SETTLE);
    troubles.sort_by_key(|trouble| trouble.from);
    let mut figures = judge(NOON_MS, end, &world.seen(), &troubles);
    figures.messages = world.messages.load(std::sync::atomic::Ordering::Relaxed);
    figures
}

/// The figures go where the test's output goes.
#[tokio::test]
async fn a_month_of_silences_is_found_right() {
    let figures = month(7, 30, 40).await;
    eprintln!("a month of 40 sensors: {figures}");
    assert!(figures.lost > 100, "{figures}");
    assert!(figures.latest <= PERIOD_MS + RUN_MS, "{figures}");
    assert!(figures.in_trouble > 0, "{figures}");
}

#[tokio::test]
async fn so_are_other_days() {
    for seed in 100..103 {
        let figures = month(seed, 3, 40).await;
        assert!(figures.lost > 5, "seed {seed}: {figures}");
    }
}
