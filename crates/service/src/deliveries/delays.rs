//! Delays between the attempts of a delivery. Pure.

use std::time::Duration;

use crate::words::word_enum;

word_enum! {
    /// Growth of delays.
    #[derive(Default)]
    pub enum Curve as "curve" {
        /// Random between zero and a ceiling that doubles with each failure.
        #[default]
        Exponential = "exponential",
        /// Grows with the logarithm of the attempt: `first · (1 + ln n)`.
        Logarithmic = "logarithmic",
    }
}

/// Delays between the attempts of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// Growth.
    pub curve: Curve,
    /// Ceiling of the first delay.
    pub first: Duration,
    /// Ceiling of all delays.
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
    /// Returns the delay after this many failures. `random` is in 0..1.
    ///
    /// ```
    /// use antumbra_service::deliveries::{Curve, Delays};
    /// use std::time::Duration;
    ///
    /// let delays = Delays::default();
    /// assert_eq!(delays.after(3, 1.0), Duration::from_secs(240));
    /// assert_eq!(delays.after(3, 0.5), Duration::from_secs(120));
    /// assert_eq!(delays.after(99, 1.0), delays.longest);
    ///
    /// let seed = Delays { curve: Curve::Logarithmic, ..delays };
    /// assert_eq!(seed.after(1, 0.3), delays.first);
    /// ```
    pub fn after(&self, failures: u32, random: f64) -> Duration {
        let failures = failures.max(1);
        match self.curve {
            Curve::Exponential => {
                let doubled = 1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX);
                let ceiling = self.first.saturating_mul(doubled).min(self.longest);
                ceiling.mul_f64(random.clamp(0.0, 1.0))
            }
            Curve::Logarithmic => {
                let grown = self.first.mul_f64(1.0 + f64::from(failures).ln());
                grown.min(self.longest)
            }
        }
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
                    let delay = delays.after(failures, 1.0);
                    assert!(
                        delay >= last && delay <= delays.longest,
                        "{curve:?} {failures}"
                    );
                    last = delay;
                    for random in [-1.0, 0.0, 0.5, 2.0] {
                        assert!(delays.after(failures, random) <= delays.longest);
                    }
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
