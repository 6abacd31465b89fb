//! The model: what in a document counts as a timestamped value, and what identifies an element.

use std::time::Duration;

use crate::pairs::all_twins;
use crate::tape::{Kind, View};
use crate::timestamp::Timestamp;

/// Interpretation of a fleet's documents.
///
/// ```
/// use antumbra_shadow::Model;
/// let model = Model { timestamp_fields: vec!["timestamp".into(), "ts".into()], ..Model::default() };
/// assert_eq!(model.id_field, "id");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The members that make an object a timestamped value. The first of them that is a time counts.
    pub timestamp_fields: Vec<String>,
    /// The member by which elements of an array are matched.
    pub id_field: String,
    /// Time that a timestamp may lie in the future; a value beyond is refused. `None`: no bound.
    pub max_future: Option<Duration>,
    /// Treatment of arrays.
    pub arrays: Arrays,
}

/// Treatment of arrays by merge and acknowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arrays {
    /// Values of their own, matched by id or else by position.
    #[default]
    Matched,
    /// One value: what is sent replaces what is stored.
    Whole,
}

impl Default for Model {
    fn default() -> Model {
        Model {
            timestamp_fields: vec!["timestamp".to_owned()],
            id_field: "id".to_owned(),
            max_future: None,
            arrays: Arrays::Matched,
        }
    }
}

impl Model {
    /// Returns the time of a timestamped value; `None` for plain values.
    pub fn time(&self, view: View<'_>) -> Option<Timestamp> {
        let mut fields = self.timestamp_fields.iter();
        fields.find_map(|field| Timestamp::of(view.get(field)?))
    }

    /// Returns `true` for timestamped values.
    pub(crate) fn is_timestamped(&self, view: View<'_>) -> bool {
        let mut fields = self.timestamp_fields.iter();
        fields.any(|field| view.get(field).is_some_and(Timestamp::is))
    }

    /// Returns `true` for the name of a timestamp member.
    pub(crate) fn is_timestamp_field(&self, name: &str) -> bool {
        self.timestamp_fields.iter().any(|field| field == name)
    }

    /// Returns `true` if both objects are equal except for their timestamp members.
    pub(crate) fn same_but_time(&self, a: View<'_>, b: View<'_>) -> bool {
        all_twins(a, b, |a, b| match (a, b) {
            (Some(a), Some(b)) if a.same(b) => true,
            _ => a
                .or(b)
                .is_some_and(|member| self.is_timestamp_field(&member.key())),
        })
    }

    /// The ids of an array's elements as written, if every element has one of its own.
    pub(crate) fn ids<'a>(&self, array: View<'a>) -> Option<Vec<(Kind, &'a str)>> {
        let mut ids = Vec::new();
        for element in array.children() {
            let id = element.get(&self.id_field)?;
            if !matches!(id.kind(), Kind::String | Kind::Number) {
                return None;
            }
            if ids.is_empty() {
                ids.reserve_exact(array.children().count());
            }
            ids.push((id.kind(), id.raw()));
        }
        let mut sorted: Vec<_> = ids.iter().map(|(kind, raw)| (*kind as u8, *raw)).collect();
        sorted.sort_unstable();
        let unique = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        unique.then_some(ids)
    }
}
