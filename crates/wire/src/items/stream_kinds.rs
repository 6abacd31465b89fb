//! Kinds of stream records that the filters of the event sources let through to the listener.
//!
//! The templates have one filter per kind and switch it by a parameter; a test compares them with [`ItemKind`]. The listener
//! gets the same list and refuses registrations that can match anything else.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use antumbra_registration::{KeySet, Registration, Registrations};

use super::ItemKind;

/// Kind of stream records: the changes of some item kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamKind {
    /// Documents of shadows.
    Shadows,
    /// Latest states of sensors.
    States,
    /// Readings of sensors.
    Readings,
    /// Sensors, clients and their links.
    Registry,
    /// Deliveries to clients.
    Deliveries,
    /// Messages of the inbox.
    Messages,
}

impl StreamKind {
    /// Every kind.
    pub const ALL: [StreamKind; 6] = [
        StreamKind::Shadows,
        StreamKind::States,
        StreamKind::Readings,
        StreamKind::Registry,
        StreamKind::Deliveries,
        StreamKind::Messages,
    ];

    /// The word for it in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            StreamKind::Shadows => "shadows",
            StreamKind::States => "states",
            StreamKind::Readings => "readings",
            StreamKind::Registry => "registry",
            StreamKind::Deliveries => "deliveries",
            StreamKind::Messages => "messages",
        }
    }

    /// The item kinds with such records.
    pub fn items(self) -> impl Iterator<Item = ItemKind> {
        let kinds = ItemKind::ALL.iter().copied();
        kinds.filter(move |kind| kind.stream_kind() == Some(self))
    }
}

/// The word for a stream without filters.
const ALL: &str = "all";

/// Kinds of stream records that reach the listener.
///
/// ```
/// use antumbra_wire::items::{StreamKind, StreamKinds};
/// let kinds: StreamKinds = "shadows, states".parse().unwrap();
/// assert!(kinds.contains(StreamKind::States) && !kinds.contains(StreamKind::Readings));
/// assert_eq!(kinds.to_string(), "shadows,states");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StreamKinds {
    /// All records, also of kinds that have no filter and of items of other programs.
    #[default]
    All,
    /// Records of these kinds.
    Only(BTreeSet<StreamKind>),
}

/// A word that is not a kind of stream records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not one of shadows, states, readings, registry, deliveries, messages and all")]
pub struct UnknownStreamKind(String);

impl FromStr for StreamKinds {
    type Err = UnknownStreamKind;

    fn from_str(text: &str) -> Result<StreamKinds, UnknownStreamKind> {
        let mut kinds = BTreeSet::new();
        let mut all = false;
        for word in text.split(',').map(str::trim) {
            let kind = StreamKind::ALL
                .into_iter()
                .find(|kind| kind.as_str() == word);
            match kind {
                Some(kind) => drop(kinds.insert(kind)),
                None if word == ALL => all = true,
                None => return Err(UnknownStreamKind(word.to_owned())),
            }
        }
        Ok(match all {
            true => StreamKinds::All,
            false => StreamKinds::Only(kinds),
        })
    }
}

impl fmt::Display for StreamKinds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamKinds::All => formatter.write_str(ALL),
            StreamKinds::Only(kinds) => {
                let words: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
                formatter.write_str(&words.join(","))
            }
        }
    }
}

/// A registration that can match records which the filters leave out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "registration {registration} can match {missing}, but the streams are filtered by {given}; add {missing} to StreamKinds, or restrict on.key"
)]
pub struct FilteredOut {
    registration: String,
    missing: StreamKinds,
    given: StreamKinds,
}

impl StreamKinds {
    /// Returns `true` if records of this kind reach the listener.
    pub fn contains(&self, kind: StreamKind) -> bool {
        match self {
            StreamKinds::All => true,
            StreamKinds::Only(kinds) => kinds.contains(&kind),
        }
    }

    /// The kinds that registrations can match. One that matches no kind is meant for items of other programs, which
    /// only unfiltered streams have.
    pub fn needed_by(registrations: &Registrations) -> StreamKinds {
        let mut search = Search::default();
        let each = registrations.iter().map(|(_, one)| search.needed_by(one));
        each.fold(StreamKinds::Only(BTreeSet::new()), StreamKinds::and)
    }

    fn and(self, other: StreamKinds) -> StreamKinds {
        match (self, other) {
            (StreamKinds::Only(mut kinds), StreamKinds::Only(others)) => {
                kinds.extend(others);
                StreamKinds::Only(kinds)
            }
            _ => StreamKinds::All,
        }
    }

    /// Checks that every change that a registration can match reaches the listener.
    pub fn check(&self, registrations: &Registrations) -> Result<(), FilteredOut> {
        let StreamKinds::Only(given) = self else {
            return Ok(());
        };
        let mut search = Search::default();
        for (_, registration) in registrations.iter() {
            let missing = match search.needed_by(registration) {
                StreamKinds::All => StreamKinds::All,
                StreamKinds::Only(needed) => {
                    StreamKinds::Only(needed.difference(given).copied().collect())
                }
            };
            if missing != StreamKinds::Only(BTreeSet::new()) {
                return Err(FilteredOut {
                    registration: registration.name.to_string(),
                    missing,
                    given: self.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Finds the kinds that registrations can match.
struct Search {
    keys: Vec<(StreamKind, KeySet)>,
    /// Results by key expression and whether only shadows match.
    found: HashMap<(String, bool), StreamKinds>,
}

impl Default for Search {
    fn default() -> Search {
        let kinds = ItemKind::ALL.iter();
        let kinds = kinds.filter_map(|kind| Some((kind.stream_kind()?, kind.keys())));
        Search {
            keys: kinds.collect(),
            found: HashMap::new(),
        }
    }
}

impl Search {
    fn needed_by(&mut self, registration: &Registration) -> StreamKinds {
        let nothing = StreamKinds::Only(BTreeSet::new());
        if !registration.enabled {
            return nothing;
        }
        let Some(key) = &registration.on.key else {
            return StreamKinds::Only(BTreeSet::from([StreamKind::Shadows]));
        };
        let only_shadows = registration.matches_only_shadows();
        let found = self.found.entry((key.to_string(), only_shadows));
        let found = found.or_insert_with(|| {
            let mut kinds = BTreeSet::new();
            let can_match = registration.can_match();
            for (kind, keys) in &self.keys {
                if !kinds.contains(kind) && can_match(keys) {
                    kinds.insert(*kind);
                }
            }
            match kinds.is_empty() && !only_shadows {
                true => StreamKinds::All,
                false => StreamKinds::Only(kinds),
            }
        });
        found.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registrations(on: &[&str]) -> Registrations {
        let texts = on.iter().enumerate().map(|(number, on)| {
            let target = r#"{"sqs": {"queue": "changes"}}"#;
            let text = format!(r#"{{"name": "r{number}", "on": {on}, "to": {target}}}"#);
            (format!("r{number}.json"), text)
        });
        Registrations::load(texts, &|_| None).unwrap()
    }

    #[test]
    fn registrations_need_the_kinds_that_they_can_match() {
        for (on, needed) in [
            ("{}", "shadows"),
            (r#"{"key": "^DS#My House#"}"#, "shadows"),
            (r##"{"key": "#DSR#", "state": "reported"}"##, "shadows"),
            (r#"{"key": "^SENSOR#[^#]+#STATE$"}"#, "states"),
            (r#"{"key": "^SENSOR#door#STATE"}"#, "states"),
            (
                r#"{"key": "^SENSOR#[^#]+#(STATE|READ#.*)$"}"#,
                "states,readings",
            ),
            // A client may be called STATE.
            (r#"{"key": "^SENSOR#.*#STATE$"}"#, "states,registry"),
            // A message may come from a source called SENSOR.
            (
                r#"{"key": "^SENSOR#"}"#,
                "states,readings,registry,messages",
            ),
            (r#"{"key": "^CLIENT#[^#]+#DELIVERY#"}"#, "deliveries"),
            (r#"{"key": "^[^#]+#[^#]+$"}"#, "messages"),
            (r#"{"key": "^order-[0-9]+#LINE#"}"#, "all"),
            (r#"{"key": "^LIVENESS#QUEUE#"}"#, "all"),
        ] {
            let registrations = registrations(&[on]);
            assert_eq!(
                StreamKinds::needed_by(&registrations).to_string(),
                needed,
                "{on}"
            );
        }
        let disabled = r#"{"name": "a", "enabled": false, "on": {"key": "READ"}, "to": {"sqs": {"queue": "b"}}}"#;
        let disabled = Registrations::load([("a.json", disabled)], &|_| None).unwrap();
        assert_eq!(StreamKinds::needed_by(&disabled).to_string(), "");
    }

    #[test]
    fn a_registration_of_records_that_are_filtered_out_is_refused() {
        let all = registrations(&["{}", r#"{"key": "^SENSOR#[^#]+#READ#"}"#]);
        let kinds: StreamKinds = "shadows,states,messages".parse().unwrap();
        assert_eq!(
            kinds.check(&all).unwrap_err().to_string(),
            "registration r1 can match readings, but the streams are filtered by shadows,states,messages; \
             add readings to StreamKinds, or restrict on.key"
        );
        let more: StreamKinds = "shadows, readings".parse().unwrap();
        assert_eq!(more.check(&all), Ok(()));
        assert_eq!(StreamKinds::All.check(&all), Ok(()));
        let foreign = registrations(&[r#"{"key": "^order#LINE#"}"#]);
        let error = more.check(&foreign).unwrap_err().to_string();
        assert!(error.contains("add all to StreamKinds"), "{error}");
    }

    #[test]
    fn unknown_words_are_refused() {
        assert!("shadows,sensors".parse::<StreamKinds>().is_err());
        assert!("".parse::<StreamKinds>().is_err());
        assert_eq!("states,all".parse(), Ok(StreamKinds::All));
    }
}
