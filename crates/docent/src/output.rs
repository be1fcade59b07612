//! Everything that is printed. stdout is data, stderr is talk.
//!
//! What comes from documents can hold anything, so nothing is printed that could move the cursor
//! or hide text.

use std::io::{self, IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli_error::CliError;

/// From this many steps on, work tells how far it is even where there is no terminal.
const LONG: usize = 500;

/// Prints data for people.
pub fn data(text: &str) -> Result<(), CliError> {
    print(&sanitize(text))
}

/// Prints data for people in which words stand out. Every part of it went through [`Paint`].
pub fn styled(text: &str) -> Result<(), CliError> {
    print(text)
}

/// Prints data for programs.
pub fn json(value: &serde_json::Value) -> Result<(), CliError> {
    print(&escape_hidden(&format!("{value:#}")))
}

/// A value on one line, in which nothing hides, for a file of JSON lines.
pub fn json_line(value: &serde_json::Value) -> String {
    escape_hidden(&value.to_string())
}

/// Prints lines of JSON for programs.
pub fn json_lines(lines: &[String]) -> Result<(), CliError> {
    print(&lines.join("\n"))
}

/// A reader that stopped reading, such as `head`, is no failure.
fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed("cannot write to stdout").because(error))
        }
        _ => Ok(()),
    }
}

/// Says something.
pub fn say(text: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr().lock(), "{}", sanitize(text));
}

/// Says that something is not as it should be, though the work goes on.
pub fn warn(text: &str, hint: Option<&str>) {
    say(&format!("warning: {text}"));
    if let Some(hint) = hint {
        say(&format!("hint: {hint}"));
    }
}

/// Says why a command ended.
pub fn error(problem: &CliError) {
    say(&format!("error: {}", problem.chain()));
    if let Some(origin) = &problem.origin {
        say(&format!("from: {origin}"));
    }
    if let Some(hint) = &problem.hint {
        say(&format!("hint: {hint}"));
    }
}

/// A text in which nothing hides: control characters other than line ends, and the marks that
/// turn the direction of writing, become visible.
fn sanitize(text: &str) -> String {
    text.chars()
        .map(|c| if is_hidden(c) { '\u{FFFD}' } else { c })
        .collect()
}

/// The same for JSON, without changing what it says: such characters stand only inside its texts,
/// where each can be written as an escape.
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
    let turns = matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n') || turns
}

/// Makes words stand out on a terminal, and leaves them as they are elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct AnsiStyler(bool);

impl AnsiStyler {
    /// For what is printed as data: in colour when that is a terminal and nobody objects.
    #[must_use]
    pub fn for_data() -> Self {
        Self(io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    /// Whether anything is made to stand out.
    #[must_use]
    pub fn is_on(self) -> bool {
        self.0
    }

    /// A text as it is.
    #[must_use]
    pub fn plain(self, text: &str) -> String {
        sanitize(text)
    }

    /// A text in bold.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.with("1", &sanitize(text))
    }

    /// A text in which the words of a question stand out.
    #[must_use]
    pub fn words(self, text: &str, question: &str) -> String {
        let text = sanitize(text);
        if !self.0 {
            return text;
        }
        let stem = |word: &str| -> String {
            let letters: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
            // Endings differ; beginnings tell words apart.
            letters.to_lowercase().chars().take(STEM_CHARS).collect()
        };
        let wanted: Vec<String> = question
            .split_whitespace()
            .map(stem)
            .filter(|word| word.chars().count() > 2)
            .collect();
        let words: Vec<String> = text
            .split(' ')
            .map(|word| {
                if wanted.contains(&stem(word)) {
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

/// Characters of a word that are compared when words are made to stand out.
const STEM_CHARS: usize = 5;

/// Long work as people see it: a bar on a terminal, a line every tenth of the way elsewhere.
pub struct ProgressReporter {
    what: &'static str,
    bar: Option<ProgressBar>,
    tenths: usize,
}

impl ProgressReporter {
    /// Work that has just begun.
    #[must_use]
    pub fn start(what: &'static str) -> Self {
        let bar = io::stderr().is_terminal().then(|| bar(what));
        Self {
            what,
            bar,
            tenths: 0,
        }
    }

    /// Work on a server, whose terminal belongs to its log.
    #[must_use]
    pub fn lines(what: &'static str) -> Self {
        Self {
            what,
            bar: None,
            tenths: 0,
        }
    }

    /// Shows how far the work is.
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

    /// Takes the bar away, so that what is said next stands alone.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Work in steps of which nobody knows how many there are: the step of the moment on a terminal, a line for
/// each elsewhere.
pub struct StepSpinner {
    what: &'static str,
    spinner: Option<ProgressBar>,
}

impl StepSpinner {
    /// Work that has just begun.
    #[must_use]
    pub fn start(what: &'static str) -> Self {
        let spinner = io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(std::time::Duration::from_millis(100));
            spinner
        });
        Self { what, spinner }
    }

    /// Says what is done now.
    pub fn at(&self, step: &str) {
        let text = format!("{}: {}", self.what, sanitize(step));
        match &self.spinner {
            Some(spinner) => spinner.set_message(text),
            None => say(&text),
        }
    }

    /// Takes the step away, so that what is said next stands alone.
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
        let shown = |paint: AnsiStyler| paint.words("The ferries, at last.", "a ferry to the pier");
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
