//! Groups glyphs into line segments in drawing order. A segment ends where the next glyph stands on another
//! line or far away on the same one.

use unicode_normalization::UnicodeNormalization as _;

/// A character, or several drawn as one glyph. `start` and `end` run along its line, `base` across it.
#[derive(Debug)]
pub(super) struct PositionedGlyph {
    pub text: String,
    pub start: f64,
    pub end: f64,
    pub base: f64,
    pub size: f64,
    /// How many quarter turns make its line run to the right.
    pub quarter_turns: u8,
}

/// A run of words close together on one line.
#[derive(Debug, Clone)]
pub(super) struct TextSegment {
    pub text: String,
    pub start: f64,
    pub end: f64,
    pub base: f64,
    pub size: f64,
    pub quarter_turns: u8,
    /// Where its first word ends, needed to tell whether that word would have fitted on the line before.
    pub first_word: f64,
}

/// Distances in letter sizes: the gap that makes a space, the gap that ends a segment, how far a glyph may
/// overlap the one before it, and how far off the baseline it may stand when it is smaller or of the same
/// size.
const SPACE_GAP: f64 = 0.17;
const SEGMENT_GAP: f64 = 0.75;
const MAX_OVERLAP: f64 = 0.6;
const RAISED_OFFSET: f64 = 0.6;
const BASELINE_TOLERANCE: f64 = 0.2;

/// A glyph below this share of the other glyphs' size is a superscript or subscript. It may stand off the baseline
/// without ending the line, so that the number of a footnote stays with its word and does not become a line of its own.
const SMALL_SCALE: f64 = 0.8;

#[derive(Debug, Default)]
pub(super) struct TextSegmentBuilder {
    done: Vec<TextSegment>,
    open: Option<TextSegment>,
    /// Whether a space was drawn after the last glyph, and where the next glyph is expected.
    space: bool,
    pen_position: f64,
    /// Whether glyphs are drawn from right to left, as Hebrew and Arabic are read.
    is_right_to_left: bool,
}

impl TextSegmentBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.open.is_none()
    }

    pub(super) fn add(&mut self, glyph: &PositionedGlyph) {
        let text = normalize_ligatures(&glyph.text);
        if text.trim().is_empty() {
            // Accept a drawn space only where it stands on the line.
            if let Some(open) = &self.open
                && open.quarter_turns == glyph.quarter_turns
                && (glyph.base - open.base).abs() < open.size * BASELINE_TOLERANCE
            {
                self.space = true;
                if !self.is_right_to_left {
                    self.pen_position = self.pen_position.max(glyph.end);
                }
            }
            return;
        }
        let continued = self
            .open
            .as_ref()
            .and_then(|open| self.gap(open, glyph, &text));
        match (continued, self.open.as_mut()) {
            (Some(gap), Some(open)) => {
                let is_mark = glyph.size < open.size * SMALL_SCALE
                    && glyph.base < open.base - open.size * 0.15
                    && text.starts_with(|c: char| c.is_ascii_digit())
                    && open.text.ends_with(char::is_alphabetic);
                let spaced = (self.space && gap > -open.size * SPACE_GAP)
                    || gap > open.size.min(glyph.size) * SPACE_GAP;
                if spaced {
                    if !open.text.contains(' ') {
                        open.first_word = open.end;
                    }
                    open.text.push(' ');
                } else if is_mark {
                    // Keep a footnote mark apart from the word before it.
                    open.text.push('^');
                }
                open.text.push_str(&text);
                open.start = open.start.min(glyph.start);
                open.end = open.end.max(glyph.end);
                if glyph.size > open.size {
                    (open.size, open.base) = (glyph.size, glyph.base);
                }
            }
            _ => {
                self.close();
                self.open = Some(TextSegment {
                    text,
                    start: glyph.start,
                    end: glyph.end,
                    base: glyph.base,
                    size: glyph.size,
                    quarter_turns: glyph.quarter_turns,
                    first_word: f64::NAN,
                });
            }
        }
        self.space = false;
        self.pen_position = if self.is_right_to_left {
            glyph.start
        } else {
            glyph.end
        };
    }

    pub(super) fn finish(mut self) -> Vec<TextSegment> {
        self.close();
        self.done
    }

    /// The gap before a glyph if it continues the open segment.
    fn gap(&self, open: &TextSegment, glyph: &PositionedGlyph, text: &str) -> Option<f64> {
        let larger = open.size.max(glyph.size);
        let smaller = open.size.min(glyph.size);
        let level = if smaller < larger * SMALL_SCALE {
            RAISED_OFFSET
        } else {
            BASELINE_TOLERANCE
        };
        if open.quarter_turns != glyph.quarter_turns
            || (glyph.base - open.base).abs() > larger * level
        {
            return None;
        }
        let rightward = glyph.start - self.pen_position;
        if !self.is_right_to_left
            && (-larger * MAX_OVERLAP..larger * SEGMENT_GAP).contains(&rightward)
        {
            return Some(rightward);
        }
        // Right-to-left scripts that are drawn in reading order.
        let leftward = open.start - glyph.end;
        let fits = (-larger * MAX_OVERLAP..larger * SEGMENT_GAP).contains(&leftward);
        let single = open.text.chars().count() == 1 || self.is_right_to_left;
        (fits && single && text.chars().any(is_right_to_left)).then_some(leftward)
    }

    fn close(&mut self) {
        let leftward = std::mem::take(&mut self.is_right_to_left);
        if let Some(mut segment) = self.open.take() {
            if !leftward {
                segment.text = visual_to_logical(segment.text);
            }
            if segment.first_word.is_nan() {
                segment.first_word = segment.end;
            }
            self.done.push(segment);
        }
        self.space = false;
    }
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}')
        && !matches!(c, '\u{660}'..='\u{669}' | '\u{6F0}'..='\u{6F9}')
}

/// Letters as they are typed: ligatures and presentation forms decomposed (NFKC), and private use
/// characters of fonts removed.
fn normalize_ligatures(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{FB00}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFE}' => {
                out.extend(std::iter::once(c).nfkc());
            }
            '\u{F0B7}' | '\u{F0A7}' => out.push('•'),
            '\u{E000}'..='\u{F8FF}' | '\u{FFFD}' => {}
            _ if c.is_control() => {}
            _ => out.push(c),
        }
    }
    out
}

/// Reorders a line of Hebrew or Arabic that was drawn from left to right into logical order.
fn visual_to_logical(text: String) -> String {
    let leftward = text.chars().filter(|c| is_right_to_left(*c)).count();
    let rightward = text
        .chars()
        .filter(|c| c.is_alphabetic() && !is_right_to_left(*c))
        .count();
    if leftward == 0 || leftward < rightward {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    for c in text.chars().rev() {
        // Numbers and words of other scripts keep their own direction.
        if c.is_alphanumeric() && !is_right_to_left(c) {
            run.insert(0, c);
        } else {
            out.push_str(&std::mem::take(&mut run));
            out.push(c);
        }
    }
    out.push_str(&run);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Glyphs of size 10 and width 5, each given as text, position and baseline.
    fn segments(letters: &[(&str, f64, f64)]) -> Vec<String> {
        sized(
            &letters
                .iter()
                .map(|(text, x, y)| (*text, *x, *y, 10.0))
                .collect::<Vec<_>>(),
        )
    }

    fn sized(letters: &[(&str, f64, f64, f64)]) -> Vec<String> {
        let mut segments = TextSegmentBuilder::default();
        for (text, start, base, size) in letters {
            segments.add(&PositionedGlyph {
                text: (*text).to_owned(),
                start: *start,
                end: start + size / 2.0,
                base: *base,
                size: *size,
                quarter_turns: 0,
            });
        }
        segments
            .finish()
            .into_iter()
            .map(|segment| segment.text)
            .collect()
    }

    #[test]
    fn gaps_make_words_and_cells() {
        let line = [
            ("a", 0.0, 0.0),
            ("b", 5.0, 0.0),
            ("c", 12.0, 0.0),
            (" ", 17.0, 0.0),
            ("d", 22.0, 0.0),
        ];
        assert_eq!(segments(&line), ["ab c d"]);
        assert_eq!(segments(&[("a", 0.0, 0.0), ("b", 60.0, 0.0)]), ["a", "b"]);
        assert_eq!(segments(&[("a", 0.0, 0.0), ("b", 5.0, 12.0)]), ["a", "b"]);
        assert_eq!(segments(&[("a", 100.0, 0.0), ("b", 0.0, 0.0)]), ["a", "b"]);
    }

    #[test]
    fn small_letters_above_the_line_belong_to_it() {
        let note = [
            ("a", 0.0, 0.0, 10.0),
            ("1", 5.0, -4.0, 6.0),
            (",", 8.0, 0.0, 10.0),
        ];
        assert_eq!(sized(&note), ["a^1,"]);
        let water = [
            ("H", 0.0, 0.0, 10.0),
            ("2", 5.0, 2.0, 6.0),
            ("O", 8.0, 0.0, 10.0),
        ];
        assert_eq!(sized(&water), ["H2O"]);
    }

    #[test]
    fn shapes_become_letters() {
        assert_eq!(normalize_ligatures("\u{FB01}\u{FB03}"), "fiffi");
        assert_eq!(normalize_ligatures("\u{FEB3}"), "س");
        assert_eq!(normalize_ligatures("\u{F0B7}\u{E123}\u{7}x"), "•x");
    }

    #[test]
    fn hebrew_is_read_from_the_right() {
        assert_eq!(visual_to_logical("ב 42 א".to_owned()), "א 42 ב");
        assert_eq!(visual_to_logical("plain text".to_owned()), "plain text");
        let drawn = [("ב", 0.0, 0.0), ("א", 5.0, 0.0)];
        assert_eq!(segments(&drawn), ["אב"]);
    }
}
