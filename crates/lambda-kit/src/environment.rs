//! Configuration from environment variables, read once at start.
//!
//! The only place besides the command line that looks at the environment. Every fault is collected, so
//! that a deployment is mended in one go.

use std::fmt;
use std::str::FromStr;

type LookUp = Box<dyn Fn(&str) -> Option<String>>;

/// Reads variables and remembers what was wrong.
///
/// ```
/// use antumbra_lambda_kit::environment::Environment;
///
/// let mut environment = Environment::of(|name| (name == "TABLE").then(|| "antumbra".to_owned()));
/// let table = environment.required("TABLE");
/// let limit: u32 = environment.or("LIMIT", 10);
/// environment.finish().unwrap();
/// assert_eq!((table.as_str(), limit), ("antumbra", 10));
/// ```
pub struct Environment {
    look_up: LookUp,
    faults: Vec<String>,
}

/// All that is wrong with the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment: {}", .0.join("; "))]
pub struct EnvironmentError(Vec<String>);

impl Environment {
    /// The process's own.
    pub fn process() -> Environment {
        Environment::of(|name| std::env::var(name).ok())
    }

    /// One made up for a test.
    pub fn of(look_up: impl Fn(&str) -> Option<String> + 'static) -> Environment {
        Environment {
            look_up: Box::new(look_up),
            faults: Vec::new(),
        }
    }

    /// A variable that may be missing. An empty one is missing: templates cannot leave a variable out.
    pub fn optional(&self, name: &str) -> Option<String> {
        (self.look_up)(name).filter(|value| !value.is_empty())
    }

    /// A variable that must be there.
    pub fn required(&mut self, name: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.faults.push(format!("{name} is not set"));
            String::new()
        })
    }

    /// A variable of another type, with what holds when it is missing.
    pub fn or<T: FromStr<Err: fmt::Display>>(&mut self, name: &str, default: T) -> T {
        self.parsed(name).unwrap_or(default)
    }

    /// A variable of another type that may be missing.
    pub fn parsed<T: FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Option<T> {
        let text = self.optional(name)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fault(format_args!("{name} is {text:?}: {fault}"));
                None
            }
        }
    }

    /// Remembers that something else is wrong.
    pub fn fault(&mut self, fault: impl fmt::Display) {
        self.faults.push(fault.to_string());
    }

    /// Whether all was well.
    pub fn finish(self) -> Result<(), EnvironmentError> {
        if self.faults.is_empty() {
            Ok(())
        } else {
            Err(EnvironmentError(self.faults))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_are_told_at_once() {
        let mut environment = Environment::of(|name| (name == "LIMIT").then(|| "many".to_owned()));
        environment.required("TABLE");
        let limit: u32 = environment.or("LIMIT", 10);
        assert_eq!(limit, 10);
        let told = environment.finish().unwrap_err().to_string();
        assert_eq!(
            told,
            "environment: TABLE is not set; LIMIT is \"many\": invalid digit found in string"
        );
    }
}
