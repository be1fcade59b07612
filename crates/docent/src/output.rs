//! Terminal output: data goes to stdout, messages and progress go to stderr.
//!
//! Titles, paths and snippets come from untrusted documents, so all text is sanitized: control characters (terminal
//! escape sequences) and bidirectional overrides are replaced before they reach the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli_error::CliError;

/// Minimum number of steps for which progress is reported without a terminal.
const LONG: usize = 500;

/// Prints text for people on stdout, sanitized.
pub fn data(text: &str) -> Result<(), CliError> {
    print(&sanitize(text))
}

/// Prints text with ANSI styles on stdout. The caller must have passed every part of it through [`AnsiStyler`], which
/// sanitizes it.
pub fn styled(text: &str) -> Result<(), CliError> {
    print(text)
}

/// Prints JSON for programs on stdout, pretty-printed.
pub fn json(value: &serde_json::Value) -> Result<(), CliError> {
    print(&escape_hidden(&format!("{value:#}")))
}

/// Formats a value as one line of JSON Lines, with hidden characters escaped.
pub fn json_line(value: &serde_json::Value) -> String {
    escape_hidden(&value.to_string())
}

/// Prints JSON Lines for programs on stdout.
pub fn json_lines(lines: &[String]) -> Result<(), CliError> {
    print(&lines.join("\n"))
}

/// Writes to stdout. A broken pipe is not an error: a reader such as `head` may stop early.
fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed("cannot write to stdout").because(error))
        }
        _ => Ok(()),
    }
}

/// Prints a message on stderr, sanitized.
pub fn say(text: &str) {
    // If stderr is closed, there is nowhere left to report it.
    let _ = writeln!(io::stderr().lock(), "{}", sanitize(text));
}

/// Prints a warning with an optional hint on stderr. The work goes on.
pub fn warn(text: &str, hint: Option<&str>) {
    say(&format!("warning: {text}"));
    if let Some(hint) = hint {
        say(&format!("hint: {hint}"));
    }
}

/// Prints an error on stderr: its message with all sources, its origin and its hint.
pub fn error(problem: &CliError) {
    say(&format!("error: {}", problem.chain()));
    if let Some(origin) = &problem.origin {
        say(&format!("from: {origin}"));
    }
    if let Some(hint) = &problem.hint {
        say(&format!("hint: {hint}"));
    }
}

/// Replaces control characters other than line ends, and bidirectional overrides, with U+FFFD.
fn sanitize(text: &str) -> String {
    text.chars()
        .map(|c| if is_hidden(c) { '\u{FFFD}' } else { c })
        .collect()
}

/// Escapes hidden characters in JSON. The meaning does not change: such characters occur only inside strings, where
/// `\u` escapes are equivalent.
fn escape_hidden(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    let is_bidi_control = matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n') || is_bidi_control
}

/// Adds ANSI styles on a terminal and leaves text plain elsewhere. Every method sanitizes its input first.
#[derive(Clone, Copy, Debug)]
pub struct AnsiStyler(bool);

impl AnsiStyler {
    /// Creates the styler for stdout: on if it is a terminal and `NO_COLOR` is not set.
    #[must_use]
    pub fn for_data() -> Self {
        Self(io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    /// Whether styles are added at all.
    #[must_use]
    pub fn is_on(self) -> bool {
        self.0
    }

    /// Returns the text without a style, sanitized.
    #[must_use]
    pub fn plain(self, text: &str) -> String {
        sanitize(text)
    }

    /// Returns the text in bold, sanitized.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.with("1", &sanitize(text))
    }

    /// Highlights the words of a query in a text. Words match if their first five letters do, which covers most
    /// inflections without a stemmer.
    #[must_use]
    pub fn words(self, text: &str, question: &str) -> String {
        let text = sanitize(text);
        if !self.0 {
            return text;
        }
        let stem = |word: &str| -> String {
            let letters: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
            letters.to_lowercase().chars().take(STEM_CHARS).collect()
        };
        let stems: Vec<String> = question
            .split_whitespace()
            .map(stem)
            .filter(|word| word.chars().count() > 2)
            .collect();
        let words: Vec<String> = text
            .split(' ')
            .map(|word| {
                if stems.contains(&stem(word)) {
                    self.with("1;33", word)
                } else {
                    word.to_owned()
                }
            })
            .collect();
        words.join(" ")
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Length of the word prefix that is compared for highlighting.
const STEM_CHARS: usize = 5;

/// Progress of long work on stderr: a progress bar on a terminal, a line for every tenth of the work elsewhere.
pub struct ProgressReporter {
    what: &'static str,
    bar: Option<ProgressBar>,
    tenths: usize,
}

impl ProgressReporter {
    /// Starts reporting, with a bar if stderr is a terminal.
    #[must_use]
    pub fn start(what: &'static str) -> Self {
        let bar = io::stderr().is_terminal().then(|| bar(what));
        Self {
            what,
            bar,
            tenths: 0,
        }
    }

    /// Starts reporting with lines only, for a server whose terminal shows its log.
    #[must_use]
    pub fn lines(what: &'static str) -> Self {
        Self {
            what,
            bar: None,
            tenths: 0,
        }
    }

    /// Reports that `done` of `total` steps are complete.
    pub fn at(&mut self, done: usize, total: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            return;
        }
        let tenths = (done * 10).checked_div(total).unwrap_or(0);
        if total >= LONG && tenths > self.tenths {
            self.tenths = tenths;
            say(&format!("{}: {done} of {total}", self.what));
        }
    }

    /// Clears the bar, so that following messages start on a clean line.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Progress of work with an unknown number of steps: a spinner with the current step on a terminal, a line per step
/// elsewhere.
pub struct StepSpinner {
    what: &'static str,
    spinner: Option<ProgressBar>,
}

impl StepSpinner {
    /// Starts the spinner if stderr is a terminal.
    #[must_use]
    pub fn start(what: &'static str) -> Self {
        let spinner = io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(std::time::Duration::from_millis(100));
            spinner
        });
        Self { what, spinner }
    }

    /// Reports the step that begins now.
    pub fn at(&self, step: &str) {
        let text = format!("{}: {}", self.what, sanitize(step));
        match &self.spinner {
            Some(spinner) => spinner.set_message(text),
            None => say(&text),
        }
    }

    /// Clears the spinner, so that following messages start on a clean line.
    pub fn finish(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_message(what);
    match ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_out_on_a_terminal_only() {
        let shown =
            |styler: AnsiStyler| styler.words("The ferries, at last.", "a ferry to the pier");
        assert_eq!(shown(AnsiStyler(false)), "The ferries, at last.");
        assert_eq!(
            AnsiStyler(true).words("The ferries, at last.", "ferries to the pier"),
            "\u{1b}[1;33mThe\u{1b}[0m \u{1b}[1;33mferries,\u{1b}[0m at last."
        );
        assert_eq!(
            AnsiStyler(true).bold("a\u{1b}b"),
            "\u{1b}[1ma\u{FFFD}b\u{1b}[0m"
        );
    }

    #[test]
    fn nothing_printed_can_hide_or_move_anything() {
        assert_eq!(
            sanitize("a\u{1b}[2Jb\n\u{202E}c\u{9b}"),
            "a\u{FFFD}[2Jb\n\u{FFFD}c\u{FFFD}"
        );
        let json = serde_json::json!({"a": "\u{1b}\u{9b}\u{202E}\n"});
        let text = escape_hidden(&format!("{json:#}"));
        assert_eq!(text, "{\n  \"a\": \"\\u001b\\u009b\\u202e\\n\"\n}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            json
        );
        assert_eq!(sanitize("Tarn Örr\u{301}"), "Tarn Örr\u{301}");
    }
}
