//! Grants in a claim of a token: entries of a text or an array that begin with `antumbra/`.

use super::grant::{Grant, InvalidGrant};

/// Start of the entries that are grants. Others belong to other programs.
pub const SCOPE_PREFIX: &str = "antumbra/";

/// Returns the entries of a claim that begin with [`SCOPE_PREFIX`], without it, and the grants that they are.
///
/// The claim is a text with a space between entries. API Gateway passes an array as such a text, in brackets.
pub fn scopes(claim: &str) -> impl Iterator<Item = (&str, Result<Grant, InvalidGrant>)> {
    let array = claim
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let entries = array.unwrap_or(claim).split(' ');
    let entries = entries.filter_map(|entry| entry.strip_prefix(SCOPE_PREFIX));
    entries.map(|entry| (entry, entry.parse()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Grants;

    fn granted(claim: &str) -> Vec<String> {
        let grants: Grants = scopes(claim).filter_map(|(_, grant)| grant.ok()).collect();
        grants.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn grants_are_the_entries_that_parse() {
        for (claim, grants) in [
            ("", &[][..]),
            ("openid email", &[]),
            ("antumbra/shadows:read", &["shadows:read"]),
            (
                "openid antumbra/shadows:read:a# antumbra/*:write",
                &["shadows:read:a#", "*:write"],
            ),
            ("[openid antumbra/*]", &["*"]),
            ("[]", &[]),
            // None of these is a grant.
            ("antumbra/", &[]),
            ("antumbra/shadow:read antumbra/shadows", &[]),
            ("shadows:read *", &[]),
            ("Antumbra/* ANTUMBRA/*", &[]),
            ("other/antumbra/*", &[]),
            ("antumbra/*\tantumbra/*", &[]),
            ("antumbra/*,antumbra/*", &[]),
            ("[[antumbra/*]]", &[]),
            ("[antumbra/*", &[]),
            ("\"antumbra/*\"", &[]),
            ("antumbra/\u{ff0a}", &[]),
        ] {
            assert_eq!(granted(claim), grants, "{claim}");
        }
    }
}
