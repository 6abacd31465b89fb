//! Environment variables of a function, read once at start. All faults are collected and reported together, so that a
//! deployment can be corrected in one step.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

type LookUp = Box<dyn Fn(&str) -> Option<String>>;

/// Reads variables and collects faults.
pub struct Environment {
    look_up: LookUp,
    faults: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment: {}", .0.join("; "))]
pub struct EnvironmentError(Vec<String>);

impl EnvironmentError {
    /// Each fault begins with the name of its variable.
    pub fn faults(&self) -> &[String] {
        &self.0
    }
}

impl Environment {
    /// The variables of this process.
    pub fn process() -> Environment {
        Environment::from_lookup(|name| std::env::var(name).ok())
    }

    /// Variables from a function instead of the process, mainly for tests.
    pub fn from_lookup(look_up: impl Fn(&str) -> Option<String> + 'static) -> Environment {
        Environment {
            look_up: Box::new(look_up),
            faults: Vec::new(),
        }
    }

    /// Returns a variable. An empty one counts as missing, because a template always sets every variable.
    pub fn optional(&self, name: &str) -> Option<String> {
        (self.look_up)(name).filter(|value| !value.is_empty())
    }

    /// Returns a variable. If it is missing, adds a fault and returns an empty text.
    pub fn required(&mut self, name: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.faults.push(format!("{name} is not set"));
            String::new()
        })
    }

    /// Returns a parsed variable, or the default if it is missing. A value that cannot be parsed is a fault.
    pub fn or<T: FromStr<Err: fmt::Display>>(&mut self, name: &str, default: T) -> T {
        self.parsed(name).unwrap_or(default)
    }

    /// Returns a parsed variable; `None` if it is missing. A value that cannot be parsed is a fault.
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

    /// Returns a time in seconds, which may have a fraction.
    pub fn seconds(&mut self, name: &str, default: Duration) -> Duration {
        self.or(name, Seconds(default)).0
    }

    pub fn fault(&mut self, fault: impl fmt::Display) {
        self.faults.push(fault.to_string());
    }

    pub fn finish(self) -> Result<(), EnvironmentError> {
        if self.faults.is_empty() {
            Ok(())
        } else {
            Err(EnvironmentError(self.faults))
        }
    }
}

struct Seconds(Duration);

impl FromStr for Seconds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Seconds, &'static str> {
        let seconds: Option<f64> = text.parse().ok();
        let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        duration.map(Seconds).ok_or("not a number of seconds")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_have_a_fraction() {
        let values = |name: &str| Some(name.to_owned()).filter(|name| name != "unset");
        let mut environment = Environment::from_lookup(values);
        let default = Duration::from_secs(5);
        assert_eq!(environment.seconds("60", default).as_secs(), 60);
        assert_eq!(environment.seconds("0.2", default).as_millis(), 200);
        assert_eq!(environment.seconds("unset", default), default);
        for invalid in ["-1", "NaN", "inf", "soon"] {
            assert_eq!(environment.seconds(invalid, default), default);
        }
        assert_eq!(environment.finish().unwrap_err().faults().len(), 4);
    }

    #[test]
    fn all_faults_are_reported_together() {
        let limit = |name: &str| (name == "LIMIT").then(|| "many".to_owned());
        let mut environment = Environment::from_lookup(limit);
        environment.required("TABLE");
        let limit: u32 = environment.or("LIMIT", 10);
        assert_eq!(limit, 10);
        let error = environment.finish().unwrap_err().to_string();
        assert_eq!(
            error,
            "environment: TABLE is not set; LIMIT is \"many\": invalid digit found in string"
        );
    }
}
