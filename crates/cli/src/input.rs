//! What a command reads: an argument, a file or standard input.

use std::io::Read as _;

use crate::error::CliError;

/// The argument itself, a file's text, or all of standard input.
pub(crate) fn text(argument: &str) -> Result<String, CliError> {
    let unreadable =
        |from: &str, fault: std::io::Error| CliError::invalid(format!("{from}: {fault}"));
    match (argument, argument.strip_prefix('@')) {
        ("-", _) => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|fault| unreadable("standard input", fault))?;
            Ok(text)
        }
        (_, Some(path)) => std::fs::read_to_string(path).map_err(|fault| unreadable(path, fault)),
        _ => Ok(argument.to_owned()),
    }
}
