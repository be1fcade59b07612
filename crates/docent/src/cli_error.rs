//! What went wrong, as the person at the terminal should read it: a message, where the wrong
//! value came from, what to do about it, and the exit status.

use std::error::Error;
use std::path::Path;

/// The exit status for what the person typed or configured.
const USAGE: u8 = 2;

/// The exit status for what failed while the command ran.
const FAILED: u8 = 1;

/// Why a command ended without doing its work.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// What happened, lower case, with the value in backticks.
    pub message: String,
    /// Where a wrong value was found, when it was not typed.
    pub origin: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The exit status of the process.
    pub exit: u8,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl CliError {
    /// Something that the person typed or configured wrongly.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            origin: None,
            hint: None,
            exit: USAGE,
            source: None,
        }
    }

    /// Something that failed while the command ran.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            exit: FAILED,
            ..Self::usage(message)
        }
    }

    /// A file, folder or socket that the system refused.
    pub fn io(what: &str, path: &Path, error: std::io::Error) -> Self {
        Self::failed(format!("cannot {what} `{}`", path.display())).because(error)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds where the wrong value was found.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Adds the failure underneath.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The message with the failures underneath, joined by colons.
    pub fn chain(&self) -> String {
        let mut text = self.message.clone();
        let mut next = self.source();
        while let Some(cause) = next {
            text = format!("{text}: {cause}");
            next = cause.source();
        }
        text
    }
}

impl From<docent_search::SearchError> for CliError {
    fn from(error: docent_search::SearchError) -> Self {
        let problem = Self::failed(error.to_string()).hint(error.hint());
        match error.source() {
            Some(cause) => problem.because(cause.to_string()),
            None => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_the_message() {
        let cause = std::io::Error::other("the disk is gone");
        let problem = CliError::io("read", Path::new("a/b"), cause);
        assert_eq!(problem.chain(), "cannot read `a/b`: the disk is gone");
        assert_eq!((problem.exit, CliError::usage("x").exit), (1, 2));
    }
}
