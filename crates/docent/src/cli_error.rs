//! The error type of all commands: a message, the origin of a wrong value, a hint with the cure, and the exit status.

use std::error::Error;
use std::path::Path;

/// Exit status for a wrong command line or setting.
const USAGE: u8 = 2;

/// Exit status for a failure while the command ran.
const FAILED: u8 = 1;

/// An error that ends a command. Message and hint are separate, so that the terminal, `docent doctor` and tests can
/// show each on its own line.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// The message: lower case, without a full stop, the value in backticks.
    pub message: String,
    /// Where a wrong value was found, such as a file or an environment variable; `None` if it was typed.
    pub origin: Option<String>,
    /// The cure, such as an example of a right value.
    pub hint: Option<String>,
    /// Exit status of the process: 2 for wrong usage, 1 for a failure.
    pub exit: u8,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl CliError {
    /// Creates an error about a wrong command line or setting, with exit status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            origin: None,
            hint: None,
            exit: USAGE,
            source: None,
        }
    }

    /// Creates an error about a failure at run time, with exit status 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            exit: FAILED,
            ..Self::usage(message)
        }
    }

    /// Creates an error about an operation that the operating system refused; `what` is the verb, such as `read`.
    pub fn io(what: &str, path: &Path, error: std::io::Error) -> Self {
        Self::failed(format!("cannot {what} `{}`", path.display())).because(error)
    }

    /// Sets the hint, which tells the reader how to fix the problem.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the origin of the wrong value, such as a path or the name of a variable.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Sets the underlying error as the source.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Joins the message and its chain of sources with colons, for one line of output.
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
