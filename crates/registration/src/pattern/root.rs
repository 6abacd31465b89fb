//! The top level of a change, as patterns match it.

use std::borrow::Cow;
use std::fmt::Write;

use super::test::Scalar;
use crate::change::Change;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    Operation,
    Id,
    Name,
    State,
    Version,
    ClientToken,
    Old,
    New,
    Diff,
}

impl Root {
    pub(crate) const ALL: [(&'static str, Root); 9] = [
        ("operation", Root::Operation),
        ("id", Root::Id),
        ("name", Root::Name),
        ("state", Root::State),
        ("version", Root::Version),
        ("clientToken", Root::ClientToken),
        ("old", Root::Old),
        ("new", Root::New),
        ("diff", Root::Diff),
    ];

    pub(crate) fn parse(name: &str) -> Option<Root> {
        Root::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, root)| *root)
    }

    pub(crate) fn is_scalar(self) -> bool {
        !matches!(self, Root::Old | Root::New | Root::Diff)
    }

    /// Calls `visit` with the scalar, if the change has one. Documents and the diff are not scalars.
    pub(crate) fn with_scalar<R>(
        self,
        change: &Change<'_>,
        then: impl FnOnce(Option<&Scalar<'_>>) -> R,
    ) -> R {
        let text = |text| Some(Scalar::String(Cow::Borrowed(text)));
        let scalar = match self {
            Root::Operation => text(change.operation.as_str()),
            Root::Id => change.shadow.and_then(|shadow| text(shadow.id)),
            Root::Name => change.shadow.and_then(|shadow| text(shadow.name)),
            Root::State => change.shadow.and_then(|shadow| text(shadow.state.as_str())),
            Root::ClientToken => change.client_token.and_then(text),
            Root::Version => {
                let mut digits = Digits::default();
                let number = change.version.and_then(|version| {
                    write!(digits, "{version}").ok()?;
                    Some(Scalar::Number(digits.as_str()))
                });
                return then(number.as_ref());
            }
            Root::Old | Root::New | Root::Diff => None,
        };
        then(scalar.as_ref())
    }
}

/// The digits of a `u64`, without allocation.
#[derive(Default)]
struct Digits {
    bytes: [u8; 20],
    length: usize,
}

impl Digits {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
