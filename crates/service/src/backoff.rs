//! Delays before retries.

use std::time::Duration;

/// Ceiling of the first delay.
const FIRST: Duration = Duration::from_millis(25);
/// Ceiling of all delays.
const LONGEST: Duration = Duration::from_secs(2);

/// Returns a delay with full jitter: random between zero and a ceiling that doubles with each failure. `random` is in 0..1.
///
/// ```
/// use antumbra_service::backoff::delay;
/// assert!(delay(1, 0.999).as_millis() < 25);
/// assert!(delay(60, 0.999).as_secs() < 2);
/// ```
pub fn delay(failures: u32, random: f64) -> Duration {
    let doubled = FIRST.saturating_mul(
        1_u32
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u32::MAX),
    );
    doubled.min(LONGEST).mul_f64(random.clamp(0.0, 1.0))
}
