//! Counts of billed units, and their price.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::prices::{PRICES, Service, Unit};

/// Counts of billed units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bill([f64; PRICES.len()]);

impl Bill {
    /// Adds units.
    #[must_use]
    pub fn and(mut self, unit: Unit, count: f64) -> Bill {
        self.0[unit as usize] += count;
        self
    }

    #[must_use]
    pub fn plus(self, other: Bill) -> Bill {
        Bill(std::array::from_fn(|unit| self.0[unit] + other.0[unit]))
    }

    #[must_use]
    pub fn times(self, factor: f64) -> Bill {
        Bill(self.0.map(|count| count * factor))
    }

    /// The share of one of `count`.
    #[must_use]
    pub fn each_of(self, count: u32) -> Bill {
        self.times(1.0 / f64::from(count))
    }

    pub fn count(&self, unit: Unit) -> f64 {
        self.0[unit as usize]
    }

    /// Dollars, if these are the units of a month.
    pub fn dollars(&self) -> f64 {
        let counts = self.0.iter().zip(PRICES);
        counts.map(|(count, price)| price.dollars(*count)).sum()
    }

    /// Dollars for a million of this bill.
    pub fn dollars_per_million(&self) -> f64 {
        self.times(1_000_000.0).dollars()
    }

    /// Dollars of one service, if these are the units of a month.
    pub fn dollars_of(&self, service: Service) -> f64 {
        let counts = self.0.iter().zip(PRICES);
        let counts = counts.filter(|(_, price)| price.service == service);
        counts.map(|(count, price)| price.dollars(*count)).sum()
    }

    /// Counts of one service, by the name of the unit.
    pub(crate) fn units_of(&self, service: Service) -> impl Iterator<Item = (&'static str, f64)> {
        let counts = self.0.into_iter().zip(PRICES);
        let counts = counts.filter(move |(count, price)| *count > 0.0 && price.service == service);
        counts.map(|(count, price)| (price.name, count))
    }
}

/// Removes the noise of sums and quotients.
fn rounded(count: f64) -> f64 {
    (count * 1e6).round() / 1e6
}

impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.iter().zip(PRICES);
        let counts = counts.filter(|(count, _)| rounded(**count) > 0.0);
        let texts = counts.map(|(count, price)| {
            let plural = if rounded(*count) == 1.0 { "" } else { "s" };
            let count = format!("{count:.3}");
            let count = count.trim_end_matches('0').trim_end_matches('.');
            format!("{count} {}{plural}", price.name)
        });
        f.write_str(&texts.collect::<Vec<_>>().join(", "))
    }
}

impl Serialize for Bill {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = self.0.iter().zip(PRICES);
        let counts = counts.map(|(count, price)| (price.name, rounded(*count)));
        serializer.collect_map(counts.filter(|(_, count)| *count > 0.0))
    }
}

impl<'de> Deserialize<'de> for Bill {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bill, D::Error> {
        let counts = BTreeMap::<String, f64>::deserialize(deserializer)?;
        let mut bill = Bill::default();
        for (name, count) in counts {
            let price = PRICES.iter().find(|price| price.name == name);
            let price = price.ok_or_else(|| de::Error::custom(format!("{name:?} has no price")))?;
            bill = bill.and(price.unit, count);
        }
        Ok(bill)
    }
}
