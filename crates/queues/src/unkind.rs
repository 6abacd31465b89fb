//! Late, repeated and reordered deliveries, which SQS allows and rarely shows, by a seed.

use crate::queue::Chance;

/// Delivery faults of standard queues. The default has none: in order, once, at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unkindness {
    pub seed: u64,
    /// Receives per thousand that leave the message visible, so that it is received again.
    pub duplicates_per_mille: u32,
    /// Delivers messages in any order.
    pub reorder: bool,
    /// The longest extra delay of a message, in milliseconds.
    pub max_delay_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Dice {
    unkindness: Unkindness,
    random: fastrand::Rng,
}

impl Dice {
    pub(crate) fn new(unkindness: Unkindness) -> Dice {
        Dice {
            unkindness,
            random: fastrand::Rng::with_seed(unkindness.seed),
        }
    }

    /// The extra delay of one message.
    pub(crate) fn delay_ms(&mut self) -> u64 {
        match self.unkindness.max_delay_ms {
            0 => 0,
            most => self.random.u64(0..=most),
        }
    }
}

impl Chance for Dice {
    fn pick(&mut self, count: usize) -> usize {
        match self.unkindness.reorder {
            true => self.random.usize(0..count),
            false => 0,
        }
    }

    fn deliver_again(&mut self) -> bool {
        let chance = self.unkindness.duplicates_per_mille;
        chance > 0 && self.random.u32(0..1000) < chance
    }
}
