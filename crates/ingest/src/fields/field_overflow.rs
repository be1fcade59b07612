//! Field overflow: values that the fields of a document hold only in part or not at all. They become lines of its
//! text, so that a limit on fields costs a filter and never content.

use docent_search::DocumentValue;

use crate::clean::truncate_chars;

/// The values of one document that do not fit into its fields.
#[derive(Debug, Default)]
pub(crate) struct FieldOverflow {
    values: Vec<OverflowValue>,
    chars: usize,
    is_cut: bool,
}

/// A whole value, and the position of the field that holds its beginning, if one does.
#[derive(Debug)]
struct OverflowValue {
    name: String,
    text: String,
    field: Option<usize>,
}

/// A text that holds the overflow too, and whether the end of it is missing because it is too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextWithOverflow {
    pub text: String,
    pub is_cut: bool,
}

/// The limit of a text in characters, and the fields that the settings hide.
pub(crate) struct TextRules<'a> {
    pub max_chars: usize,
    pub is_hidden: &'a dyn Fn(&str) -> bool,
}

impl FieldOverflow {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds a value. All of them together hold at most `limit` characters, as a text does: the names of nested
    /// values repeat those of the levels above, so that a short record could become a very long text.
    pub(crate) fn push(
        &mut self,
        name: &str,
        mut text: String,
        field: Option<usize>,
        limit: usize,
    ) {
        if self.is_cut {
            return;
        }
        let left = limit.saturating_sub(self.chars);
        let Some(room) = left.checked_sub(name.chars().count()) else {
            self.is_cut = true;
            return;
        };
        self.is_cut = truncate_chars(&mut text, room);
        self.chars += name.chars().count() + text.chars().count();
        self.values.push(OverflowValue {
            name: name.to_owned(),
            text,
            field,
        });
    }

    /// The whole value of a field that holds only the beginning of it.
    fn whole_value(&self, field: usize) -> Option<&str> {
        let mut values = self.values.iter();
        let value = values.find(|value| value.field == Some(field))?;
        Some(&value.text)
    }

    /// The text of a document that has one: the text itself, followed by the overflow. `None` if the text itself is
    /// too long.
    pub(crate) fn complete(&self, text: String, rules: &TextRules<'_>) -> Option<TextWithOverflow> {
        let mut lines = TextLines::new(text, rules.max_chars)?;
        let visible = self.values.iter();
        let visible = visible.filter(|value| !(rules.is_hidden)(&value.name));
        for (at, value) in visible.enumerate() {
            if at == 0 {
                lines.end_paragraph();
            }
            lines.push_value(&value.name, &value.text);
        }
        Some(lines.finish(self.is_cut))
    }

    /// The text of a record without one: a list of its fields, each with its whole value, and of the overflow. A
    /// list of nothing but the fields is written again when the settings hide some of them. One with more in it is
    /// not, so it leaves them out.
    pub(crate) fn list(
        &self,
        fields: &[(String, DocumentValue)],
        rules: &TextRules<'_>,
    ) -> Option<TextWithOverflow> {
        if self.is_empty() {
            let list = fields.iter();
            let list = list.map(|(name, value)| format!("{name}: {value}\n"));
            let lines = TextLines::new(list.collect(), rules.max_chars)?;
            return Some(lines.finish(self.is_cut));
        }
        let is_visible = |name: &str| !(rules.is_hidden)(name);
        let mut lines = TextLines::new(String::new(), rules.max_chars)?;
        for (at, (name, value)) in fields.iter().enumerate() {
            match self.whole_value(at) {
                _ if !is_visible(name) => {}
                Some(text) => lines.push_value(name, text),
                None => lines.push_value(name, &value.to_string()),
            }
        }
        let rest = self.values.iter().filter(|value| value.field.is_none());
        for value in rest.filter(|value| is_visible(&value.name)) {
            lines.push_value(&value.name, &value.text);
        }
        Some(lines.finish(self.is_cut))
    }
}

/// A text to which lines are added up to its limit.
struct TextLines {
    text: String,
    chars_left: usize,
    is_cut: bool,
}

impl TextLines {
    fn new(text: String, max_chars: usize) -> Option<Self> {
        let chars_left = max_chars.checked_sub(text.chars().count())?;
        Some(Self {
            text,
            chars_left,
            is_cut: false,
        })
    }

    /// Puts a blank line between the text and what follows.
    fn end_paragraph(&mut self) {
        let end = match self.text.trim_end_matches(' ') {
            "" => "",
            text if text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        self.push(end);
    }

    fn push_value(&mut self, name: &str, value: &str) {
        if name.is_empty() {
            self.push(&format!("{value}\n"));
        } else {
            self.push(&format!("{name}: {value}\n"));
        }
    }

    fn push(&mut self, line: &str) {
        let mut line = line.to_owned();
        self.is_cut |= truncate_chars(&mut line, self.chars_left);
        self.chars_left -= line.chars().count();
        self.text.push_str(&line);
    }

    fn finish(self, is_cut: bool) -> TextWithOverflow {
        TextWithOverflow {
            text: self.text,
            is_cut: is_cut || self.is_cut,
        }
    }
}
