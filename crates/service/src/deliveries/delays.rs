//! Delays between the attempts of a delivery. Pure.

use std::time::Duration;

use antumbra_shadow::word_enum;

/// Largest random part of a delay, as a share of it.
const JITTER: f64 = 0.2;

word_enum! {
    /// Growth of delays.
    #[derive(Default)]
    pub enum Curve as "curve" {
        /// Doubles with each failure, plus up to a fifth at random.
        #[default]
        Exponential = "exponential",
        /// Grows with the logarithm of the attempt: `first · (1 + ln n)`.
        Logarithmic = "logarithmic",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    pub curve: Curve,
    /// The first delay, without its random part.
    pub first: Duration,
    /// Longest delay, with its random part.
    pub longest: Duration,
}

/// Ten attempts within some hours: after 1, 2, 4, … minutes, at most four hours.
impl Default for Delays {
    fn default() -> Delays {
        Delays {
            curve: Curve::Exponential,
            first: Duration::from_secs(60),
            longest: Duration::from_secs(4 * 3600),
        }
    }
}

impl Delays {
    /// Returns the delay after this many failures. `random` is in 0..1. Each delay is at least as long as the
    /// one before, whatever the random parts are.
    ///
    /// ```
    /// use antumbra_service::deliveries::{Curve, Delays};
    /// use std::time::Duration;
    ///
    /// let delays = Delays::default();
    /// assert_eq!(delays.after(3, 0.0), Duration::from_secs(240));
    /// assert_eq!(delays.after(3, 0.5), Duration::from_secs(264));
    /// assert_eq!(delays.after(99, 0.5), delays.longest);
    ///
    /// let seed = Delays { curve: Curve::Logarithmic, ..delays };
    /// assert_eq!(seed.after(1, 0.3), delays.first);
    /// ```
    pub fn after(&self, failures: u32, random: f64) -> Duration {
        let failures = failures.max(1);
        let delay = match self.curve {
            Curve::Exponential => {
                let doubled = 1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX);
                let delay = self.first.saturating_mul(doubled).min(self.longest);
                delay.saturating_add(delay.mul_f64(JITTER * random.clamp(0.0, 1.0)))
            }
            Curve::Logarithmic => self.first.mul_f64(1.0 + f64::from(failures).ln()),
        };
        delay.min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_the_longest_and_never_panic() {
        for &curve in Curve::ALL {
            for first in [
                Duration::ZERO,
                Duration::from_secs(60),
                Duration::from_secs(1 << 40),
            ] {
                let delays = Delays {
                    curve,
                    first,
                    ..Delays::default()
                };
                let mut last = Duration::ZERO;
                for failures in [0, 1, 2, 3, 9, 10, 31, 32, 33, 64, u32::MAX] {
                    // The next delay has no random part, the one before the largest.
                    assert!(delays.after(failures, -1.0) >= last, "{curve:?} {failures}");
                    last = match failures {
                        0 => Duration::ZERO,
                        _ => delays.after(failures, 2.0),
                    };
                    assert!(last <= delays.longest);
                }
            }
        }
    }

    #[test]
    fn the_logarithm_grows_as_the_seed_says() {
        let delays = Delays {
            curve: Curve::Logarithmic,
            ..Delays::default()
        };
        let seconds = |failures| delays.after(failures, 0.0).as_secs();
        assert_eq!([1, 2, 5, 10].map(seconds), [60, 101, 156, 198]);
    }
}
