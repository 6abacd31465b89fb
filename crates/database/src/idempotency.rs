//! Transactions with a token are executed once within ten minutes, as on DynamoDB. SDKs send a token with every one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dynoxide::DynoxideError;
use serde_json::Value;

/// Time for which a token is remembered.
const WINDOW: Duration = Duration::from_secs(10 * 60);
const MAX_LENGTH: usize = 36;
/// Number of tokens after which old ones are looked for.
const SWEEP: usize = 1024;

/// The responses of executed transactions, by token.
#[derive(Default)]
pub(crate) struct Tokens {
    executed: HashMap<String, Executed>,
    sweep_at: usize,
}

struct Executed {
    at: Instant,
    content: String,
    response: String,
}

impl Tokens {
    /// Executes a request, or repeats the response if its token was used for the same content, which is a member of it.
    pub(crate) fn once(
        &mut self,
        request: &[u8],
        content: &str,
        execute: impl FnOnce() -> dynoxide::Result<String>,
    ) -> dynoxide::Result<String> {
        let mut request: Value = serde_json::from_slice(request).unwrap_or_default();
        let token = request["ClientRequestToken"].as_str().map(str::to_owned);
        let Some(token) = token else {
            return execute();
        };
        if token.len() > MAX_LENGTH {
            return Err(DynoxideError::ValidationException(format!(
                "1 validation error detected: Value '{token}' at 'clientRequestToken' failed to satisfy constraint: \
                 Member must have length less than or equal to {MAX_LENGTH}"
            )));
        }
        let content = sorted(request[content].take()).to_string();
        let found = self.executed.get(&token);
        match found.filter(|found| found.at.elapsed() < WINDOW) {
            Some(found) if found.content == content => return Ok(found.response.clone()),
            Some(_) => {
                let error = "An error occurred (IdempotentParameterMismatchException)";
                return Err(DynoxideError::IdempotentParameterMismatchException(
                    error.to_owned(),
                ));
            }
            None => {}
        }
        let response = execute()?;
        let executed = Executed {
            at: Instant::now(),
            content,
            response: response.clone(),
        };
        self.executed.insert(token, executed);
        if self.executed.len() >= self.sweep_at {
            self.executed.retain(|_, one| one.at.elapsed() < WINDOW);
            self.sweep_at = 2 * self.executed.len() + SWEEP;
        }
        Ok(response)
    }
}

/// Sorts the members of all objects: the order of attributes in a request is arbitrary.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            let members = members.into_iter();
            Value::Object(members.map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(tokens: &mut Tokens, request: &str) -> dynoxide::Result<String> {
        let count = tokens.executed.len().to_string();
        tokens.once(request.as_bytes(), "TransactItems", || Ok(count))
    }

    #[test]
    fn a_token_executes_once() {
        let mut tokens = Tokens::default();
        let first = r#"{"ClientRequestToken":"t","TransactItems":[{"Put":{"a":1,"b":2}}]}"#;
        let again = r#"{"TransactItems":[{"Put":{"b":2,"a":1}}],"ClientRequestToken":"t"}"#;
        let other = r#"{"ClientRequestToken":"t","TransactItems":[{"Put":{"a":1,"b":3}}]}"#;
        let new = r#"{"ClientRequestToken":"u","TransactItems":[{"Put":{"a":1,"b":3}}]}"#;
        assert_eq!(once(&mut tokens, first).unwrap(), "0");
        assert_eq!(once(&mut tokens, again).unwrap(), "0");
        let error = once(&mut tokens, other).unwrap_err();
        assert!(matches!(
            error,
            DynoxideError::IdempotentParameterMismatchException(_)
        ));
        assert_eq!(once(&mut tokens, new).unwrap(), "1");
    }

    #[test]
    fn a_failed_transaction_and_one_without_a_token_are_executed_again() {
        let mut tokens = Tokens::default();
        let request = br#"{"ClientRequestToken":"t","TransactItems":[]}"#;
        let failed = || Err(DynoxideError::InternalServerError("disk".to_owned()));
        tokens.once(request, "TransactItems", failed).unwrap_err();
        assert_eq!(
            once(
                &mut tokens,
                r#"{"ClientRequestToken":"t","TransactItems":[]}"#
            )
            .unwrap(),
            "0"
        );
        assert_eq!(once(&mut tokens, "{}").unwrap(), "1");
        let long = format!(r#"{{"ClientRequestToken":"{}"}}"#, "t".repeat(37));
        once(&mut tokens, &long).unwrap_err();
    }
}
