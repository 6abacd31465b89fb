//! The bearer token of the HTTP API: generated at the first start and kept with the data.

use std::io::ErrorKind;

use uuid::Uuid;

use super::StackError;
use super::data_directory::DataDirectory;
use crate::private_file;

const FILE: &str = "http-token";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpToken {
    pub text: String,
    /// The token was generated at this start.
    pub new: bool,
}

/// Returns the given token, or the stored one, or a new one.
pub(super) fn token(
    directory: Option<&DataDirectory>,
    given: Option<String>,
) -> Result<HttpToken, StackError> {
    if let Some(text) = given {
        return Ok(HttpToken { text, new: false });
    }
    let Some(directory) = directory else {
        let text = generate();
        return Ok(HttpToken { text, new: true });
    };
    let path = directory.file(FILE);
    let failed = |source| StackError::DataDirectory {
        path: path.clone(),
        source,
    };
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => Ok(HttpToken {
            text: text.trim().to_owned(),
            new: false,
        }),
        Err(fault) if fault.kind() != ErrorKind::NotFound => Err(failed(fault)),
        _ => {
            let text = generate();
            private_file::write(&path, format!("{text}\n").as_bytes()).map_err(failed)?;
            Ok(HttpToken { text, new: true })
        }
    }
}

/// 244 random bits.
pub(super) fn generate() -> String {
    let [first, second] = [Uuid::new_v4(), Uuid::new_v4()];
    format!("{}{}", first.simple(), second.simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_generated_once_and_readable_by_the_user_only() {
        let parent = tempfile::tempdir().unwrap();
        let directory = DataDirectory::take(parent.path()).unwrap();
        let first = token(Some(&directory), None).unwrap();
        assert!(first.new && first.text.len() == 64, "{first:?}");
        let second = token(Some(&directory), None).unwrap();
        assert_eq!((second.text, second.new), (first.text.clone(), false));
        let given = token(Some(&directory), Some("given".to_owned())).unwrap();
        assert_eq!(given.text, "given");
        assert_eq!(token(Some(&directory), None).unwrap().text, first.text);
        assert_ne!(
            token(None, None).unwrap().text,
            token(None, None).unwrap().text
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let kept = std::fs::metadata(directory.file(FILE)).unwrap();
            assert_eq!(kept.permissions().mode() & 0o777, 0o600);
        }
    }
}
