//! Interprets the drawing instructions of each page and collects the glyphs it shows with their positions
//! and sizes.

use encoding_rs::Encoding;
use hayro_interpret::font::{Glyph as DrawnGlyph, GlyphRun};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::hayro_syntax::{Pdf, page::Page as PdfPage};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, interpret_page,
};

use crate::error::IngestError;

use super::char_codes;
use super::form_xobjects::FormDrawCounter;
use super::reading_order::in_reading_order;
use super::segment::{PositionedGlyph, TextSegment, TextSegmentBuilder};

/// The most glyphs of one page; a page of a telephone directory has ten thousand. Each glyph is kept with its position
/// until the page is ordered, and a form that is drawn again and again yields glyphs without making the file larger.
const MAX_GLYPHS: usize = 500_000;

/// Reads every page into line segments in reading order.
pub(super) fn read(pdf: &Pdf, max_chars: usize) -> Result<Vec<Vec<TextSegment>>, IngestError> {
    let cache = InterpreterCache::new();
    let mut forms = FormDrawCounter::default();
    let mut left = max_chars;
    let mut pages = Vec::new();
    for pdf_page in pdf.pages().iter() {
        forms.check(pdf_page)?;
        let segments = in_reading_order(page(pdf_page, pdf, &cache));
        for segment in &segments {
            let used = segment.text.chars().count();
            left = left
                .checked_sub(used)
                .ok_or(IngestError::TextTooLong { limit: max_chars })?;
        }
        pages.push(segments);
    }
    Ok(pages)
}

fn page<'a>(
    pdf_page: &PdfPage<'a>,
    pdf: &'a Pdf,
    cache: &InterpreterCache<'a>,
) -> Vec<TextSegment> {
    let transform = Affine::new(pdf_page.initial_transform(true).as_coeffs());
    let (width, height) = pdf_page.render_dimensions();
    let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let settings = InterpreterSettings::default();
    let mut context = Context::new(transform, bounds, cache, pdf.xref(), settings);
    let mut collector = GlyphCollector {
        encoding: char_codes::encoding(pdf_page.resources()),
        ..GlyphCollector::default()
    };
    interpret_page(pdf_page, &mut context, &mut collector);
    // OCR text of a scanned page is drawn invisibly under the image. On a page without an image, invisible
    // text is hidden from people and meant for machines, so it is ignored.
    if collector.has_picture && collector.visible.is_empty() {
        collector.invisible.finish()
    } else {
        collector.visible.finish()
    }
}

/// Drawing device that collects text instead of pixels. `last` is the text and position of the previous
/// glyph run.
#[derive(Default)]
struct GlyphCollector {
    visible: TextSegmentBuilder,
    invisible: TextSegmentBuilder,
    has_picture: bool,
    encoding: Option<&'static Encoding>,
    count: usize,
    last: Option<(String, f64, f64)>,
}

impl GlyphCollector {
    /// Whether a run repeats the previous one at almost the same place, which is how some programs imitate
    /// bold type.
    fn is_repeated(&mut self, glyphs: &[PositionedGlyph]) -> bool {
        let text: String = glyphs.iter().map(|glyph| glyph.text.as_str()).collect();
        let Some(first) = glyphs.first() else {
            return false;
        };
        let near = first.size * 0.12;
        let repeated = self.last.as_ref().is_some_and(|(known, x, y)| {
            *known == text && (x - first.start).abs() < near && (y - first.base).abs() < near
        });
        if !repeated {
            self.last = Some((text, first.start, first.base));
        }
        repeated
    }
}

impl Device<'_> for GlyphCollector {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, props: DrawProps<'_>, mode: &DrawMode) {
        self.count = self.count.saturating_add(run.glyphs().len());
        if self.count > MAX_GLYPHS {
            return;
        }
        let is_vertical = matches!(run.writing_mode(), WritingMode::Vertical);
        let glyphs: Vec<_> = run
            .glyphs()
            .iter()
            .filter_map(|glyph| {
                let letters = match (glyph.as_unicode(), &**glyph) {
                    (Some(BfString::Char(c)), _) => c.to_string(),
                    (Some(BfString::String(text)), _) => text,
                    (None, DrawnGlyph::Type3(glyph)) => char_codes::tex_letters(glyph.char_code())?,
                    (None, _) => {
                        char_codes::decode_char_code(glyph.char_code(), self.encoding?)?.to_string()
                    }
                };
                let advance = match &**glyph {
                    DrawnGlyph::Outline(glyph) => glyph.advance_width(),
                    DrawnGlyph::Type3(glyph) => glyph.advance_width(),
                };
                let advance = f64::from(advance.unwrap_or(500.0));
                place_glyph(
                    letters,
                    advance,
                    props.transform * glyph.transform(),
                    is_vertical,
                )
            })
            .collect();
        if self.is_repeated(&glyphs) {
            return;
        }
        let segments = match mode {
            DrawMode::Invisible => &mut self.invisible,
            _ => &mut self.visible,
        };
        for glyph in &glyphs {
            segments.add(glyph);
        }
    }

    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {
        self.has_picture = true;
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// Computes position and size of a glyph in a frame turned so that its line runs to the right. The em
/// square of a glyph has a thousand units a side.
fn place_glyph(
    letters: String,
    advance: f64,
    transform: Affine,
    is_vertical: bool,
) -> Option<PositionedGlyph> {
    let origin = transform * Point::ZERO;
    let along = transform * Point::new(1_000.0, 0.0) - origin;
    let up = transform * Point::new(0.0, 1_000.0) - origin;
    let size = up.hypot();
    if !(size.is_finite() && origin.x.is_finite() && origin.y.is_finite()) || size <= 0.0 {
        return None;
    }
    let along = if is_vertical { -up } else { along };
    let turn = quarter_turns(along.x, along.y);
    let (start, base) = match turn {
        0 => (origin.x, origin.y),
        1 => (origin.y, -origin.x),
        2 => (-origin.x, -origin.y),
        _ => (-origin.y, origin.x),
    };
    let width = along.hypot() * if is_vertical { 1.0 } else { advance / 1_000.0 };
    Some(PositionedGlyph {
        text: letters,
        start,
        end: start + width,
        base,
        size,
        quarter_turns: turn,
    })
}

/// How many quarter turns make a direction point to the right.
fn quarter_turns(x: f64, y: f64) -> u8 {
    if x.abs() >= y.abs() {
        if x >= 0.0 { 0 } else { 2 }
    } else if y >= 0.0 {
        1
    } else {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turned_lines_run_to_the_right() {
        let place = |turns: f64| {
            let turn = Affine::rotate(turns * std::f64::consts::FRAC_PI_2);
            let transform = turn * Affine::scale_non_uniform(0.01, -0.01);
            let glyph = place_glyph("a".into(), 500.0, transform, false).unwrap();
            (
                glyph.quarter_turns,
                (glyph.end - glyph.start).round(),
                glyph.size.round(),
            )
        };
        for turns in 0..4 {
            assert_eq!(
                place(f64::from(turns)),
                (u8::try_from(turns).unwrap(), 5.0, 10.0)
            );
        }
    }

    #[test]
    fn letters_without_size_are_none() {
        assert!(place_glyph("a".into(), 500.0, Affine::scale(0.0), false).is_none());
        assert!(place_glyph("a".into(), 500.0, Affine::scale(f64::NAN), false).is_none());
    }
}
