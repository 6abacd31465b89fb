//! `antumbra token`: what a token, a list of grants or a role may do.

use antumbra_http_api::{Coverage, IamGrants, routes};
use antumbra_service::access::{Grant, Grants, SCOPE_PREFIX, scopes};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_shadow::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::error::CliError;
use crate::input;
use crate::output::{self, BAD, FAINT, STRONG, styled, table};
use crate::stacks;

#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// A JWT or a token of a running local stack; @FILE for the text of a file, - for standard input. Its signature is not
    /// checked.
    #[arg(required_unless_present_any = ["grant", "iam_grants"])]
    token: Option<String>,
    /// Claim with the grants, as the parameter JwtGrantsClaim.
    #[arg(long, default_value = "scope")]
    claim: String,
    /// Explain this grant instead of a token. Can be repeated.
    #[arg(long, value_name = "GRANT", conflicts_with_all = ["token", "iam_grants"])]
    grant: Vec<Grant>,
    /// Check a file with the grants of IAM callers, and explain those of --role.
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    iam_grants: Option<String>,
    /// ARN of a role or a user.
    #[arg(long, value_name = "ARN", requires = "iam_grants")]
    role: Option<String>,
}

/// A caller, as the command explains it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    expired: bool,
    grants: Vec<ExplainedGrant>,
    /// Entries of the claim that grant nothing.
    ignored: Vec<IgnoredEntry>,
    operations: Vec<Operation>,
}

#[derive(Debug, Serialize)]
struct ExplainedGrant {
    grant: String,
    meaning: String,
}

#[derive(Debug, Serialize)]
struct IgnoredEntry {
    entry: String,
    reason: String,
}

/// An operation that the caller may use.
#[derive(Debug, Serialize)]
struct Operation {
    operation: &'static str,
    /// For some ids only.
    limited: bool,
}

pub(crate) fn run(arguments: &TokenArguments, as_json: bool) -> Result<String, CliError> {
    let mut explanation = Explanation::default();
    let grants: Grants = match (&arguments.token, &arguments.iam_grants) {
        (Some(token), _) => {
            let token = input::text(token)?;
            let token = token.trim();
            match of_local_stack(token) {
                Some(grants) => grants,
                None => explanation.read_jwt(token, &arguments.claim)?,
            }
        }
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file)
                .map_err(|fault| CliError::invalid(format!("cannot read {file}: {fault}")))?;
            let iam = IamGrants::parse(&text);
            let iam = iam.map_err(|error| CliError::invalid(format!("{file}: {error}")))?;
            let Some(role) = &arguments.role else {
                return Ok(match as_json {
                    true => output::json(&serde_json::json!({"principals": iam.principals()})),
                    false => format!("{file}: grants of {} roles and users", iam.principals()),
                });
            };
            iam.of_arn(role)
        }
        (None, None) => arguments.grant.iter().cloned().collect(),
    };
    explanation.grants = grants.iter().map(explained).collect();
    explanation.operations = routes::all()
        .iter()
        .filter_map(|route| {
            let limited = match route.access.coverage(&grants) {
                Coverage::None => return None,
                Coverage::Some => true,
                Coverage::All => false,
            };
            let operation = route.operation_id;
            Some(Operation { operation, limited })
        })
        .collect();
    Ok(match as_json {
        true => output::json(&explanation),
        false => explanation.text(),
    })
}

/// The grants of a token of a running local stack.
fn of_local_stack(token: &str) -> Option<Grants> {
    stacks::running().into_iter().find_map(|stack| {
        if stack.token == token {
            return Some(Grants::all());
        }
        let limited = stack
            .limited_token
            .filter(|limited| limited.token == token)?;
        let grants = limited.grants.iter().filter_map(|grant| grant.parse().ok());
        Some(grants.collect())
    })
}

fn explained(grant: &Grant) -> ExplainedGrant {
    let resource = grant.resource();
    let resource = resource.map_or("everything".to_owned(), |one| one.to_string());
    let ids = match grant.prefix() {
        None => String::new(),
        Some(prefix) if prefix.is_open() => {
            format!(" whose id starts with {:?}", prefix.as_str())
        }
        Some(prefix) => format!(" with the id {:?}", prefix.as_str()),
    };
    ExplainedGrant {
        grant: grant.to_string(),
        meaning: format!("{} {resource}{ids}", grant.verb()),
    }
}

impl Explanation {
    fn read_jwt(&mut self, token: &str, claim: &str) -> Result<Grants, CliError> {
        let invalid =
            || CliError::invalid("this is neither a JWT nor a token of a running local stack");
        let payload = token.split('.').nth(1).ok_or_else(invalid)?;
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| invalid())?;
        let claims: Value = serde_json::from_slice(&payload).map_err(|_| invalid())?;
        let text = |name: &str| claims.get(name)?.as_str().map(str::to_owned);
        self.subject = text("sub").or_else(|| text("client_id"));
        self.issuer = text("iss");
        if let Some(seconds) = claims.get("exp").and_then(Value::as_i64) {
            let expiry = Timestamp::from_nanoseconds(i128::from(seconds) * 1_000_000_000);
            self.expired = expiry <= SystemClock.now();
            self.expires_at = Some(expiry.to_string());
        }
        let claim = match claims.get(claim) {
            Some(Value::String(text)) => text.clone(),
            // As API Gateway passes an array.
            Some(Value::Array(entries)) => {
                let entries = entries.iter().filter_map(Value::as_str);
                entries.collect::<Vec<_>>().join(" ")
            }
            _ => String::new(),
        };
        let mut grants = Vec::new();
        for (entry, grant) in scopes(&claim) {
            match grant {
                Ok(grant) => grants.push(grant),
                Err(reason) => self.ignored.push(IgnoredEntry {
                    entry: format!("{SCOPE_PREFIX}{entry}"),
                    reason: reason.to_string(),
                }),
            }
        }
        Ok(grants.into_iter().collect())
    }

    fn text(&self) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, value: String| rows.push(vec![styled(FAINT, name), value]);
        if let Some(subject) = &self.subject {
            row("subject", styled(STRONG, subject));
        }
        if let Some(issuer) = &self.issuer {
            row("issuer", issuer.clone());
        }
        match &self.expires_at {
            Some(time) if self.expired => {
                row("expired", styled(BAD, time));
            }
            Some(time) => row("expires", time.clone()),
            None => {}
        }
        for one in &self.grants {
            row(&one.grant, one.meaning.clone());
        }
        for one in &self.ignored {
            row(
                &one.entry,
                styled(BAD, &format!("grants nothing: {}", one.reason)),
            );
        }
        if self.grants.is_empty() {
            row("grants", styled(BAD, "none: this caller may do nothing"));
        }
        let count = |limited: bool| {
            let operations = self.operations.iter().filter(|one| one.limited == limited);
            let names: Vec<&str> = operations.map(|one| one.operation).collect();
            match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            }
        };
        row("operations", count(false));
        row("for these ids", count(true));
        table(&rows)
    }
}
