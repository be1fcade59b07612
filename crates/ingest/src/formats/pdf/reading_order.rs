//! Reading order of a page's segments. Most programs draw in reading order already, columns and tables
//! included; where one did not, a recursive XY cut splits the page along its gaps.

use super::segment::TextSegment;

/// The deepest recursion of the XY cut. Every cut halves the page at a gap, and a page has a few columns of a few
/// blocks. A page on which words stand scattered could be cut once for each word, with a pass over all of them every
/// time.
const MAX_XY_CUTS: usize = 24;

/// How many steps back up the page, those to the next column not counted, a page drawn in order may have: one segment
/// in ten, and a few more for header and footer. Sorting by position is the last resort: it mixes columns and tables
/// that the program drew in the right order.
const FREE_STEPS: usize = 4;
const STEPS: usize = 10;

pub(super) fn in_reading_order(segments: Vec<TextSegment>) -> Vec<TextSegment> {
    // Lines in another direction than most of the page come last.
    let mut by_turn: [Vec<TextSegment>; 4] = Default::default();
    for segment in segments {
        if let Some(same) = by_turn.get_mut(usize::from(segment.quarter_turns)) {
            same.push(segment);
        }
    }
    by_turn.sort_by_key(|same| std::cmp::Reverse(same.len()));
    by_turn.into_iter().flat_map(order_segments).collect()
}

fn order_segments(segments: Vec<TextSegment>) -> Vec<TextSegment> {
    let steps_back = segments
        .windows(2)
        .filter(|pair| matches!(pair, [one, next] if is_step_back(one, next)))
        .count();
    if steps_back <= FREE_STEPS + segments.len() / STEPS {
        return segments;
    }
    let mut out = Vec::with_capacity(segments.len());
    xy_cut(segments, &mut out, MAX_XY_CUTS);
    out
}

/// Whether the next segment goes back: it stands higher without being in a column to the right, or further
/// left on the same line.
fn is_step_back(one: &TextSegment, next: &TextSegment) -> bool {
    let above = next.base < one.base - one.size * 0.5;
    let before = (next.base - one.base).abs() <= one.size * 0.5 && next.end < one.start;
    (above && next.start < one.end) || before
}

/// XY cut: splits a page at the widest vertical gap into columns, or else at the widest horizontal gap. It
/// recurses once per cut, bounded by `left`.
fn xy_cut(mut segments: Vec<TextSegment>, out: &mut Vec<TextSegment>, left: usize) {
    let size = segments.iter().map(|one| one.size).sum::<f64>() / segments.len().max(1) as f64;
    if left > 0 && segments.len() > 2 {
        let across = |one: &TextSegment| (one.start, one.end);
        if let Some(at) = widest_gap(&segments, across, size) {
            let (first, second) = segments.into_iter().partition(|one| one.end <= at);
            xy_cut(first, out, left - 1);
            return xy_cut(second, out, left - 1);
        }
        let down = |one: &TextSegment| (one.base - one.size * 0.8, one.base + one.size * 0.2);
        if let Some(at) = widest_gap(&segments, down, size * 0.6) {
            let (first, second) = segments.into_iter().partition(|one| one.base <= at);
            xy_cut(first, out, left - 1);
            return xy_cut(second, out, left - 1);
        }
    }
    segments.sort_by(|one, other| one.base.total_cmp(&other.base));
    // Letters of one line may differ slightly in height, so group by a tolerance.
    let mut lines: Vec<Vec<TextSegment>> = Vec::new();
    for segment in segments {
        match lines.last_mut() {
            Some(line)
                if line
                    .last()
                    .is_some_and(|last| segment.base - last.base < last.size * 0.4) =>
            {
                line.push(segment);
            }
            _ => lines.push(vec![segment]),
        }
    }
    for mut line in lines {
        line.sort_by(|one, other| one.start.total_cmp(&other.start));
        out.append(&mut line);
    }
}

/// The middle of the widest empty gap along one axis that is at least `least` wide.
fn widest_gap(
    segments: &[TextSegment],
    span: impl Fn(&TextSegment) -> (f64, f64),
    least: f64,
) -> Option<f64> {
    let mut spans: Vec<_> = segments.iter().map(span).collect();
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut reached = spans.first()?.1;
    let mut widest: Option<(f64, f64)> = None;
    for (start, end) in spans {
        let gap = start - reached;
        if gap >= least && widest.is_none_or(|(known, _)| gap > known) {
            widest = Some((gap, reached + gap / 2.0));
        }
        reached = reached.max(end);
    }
    widest.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(text: &str, start: f64, end: f64, base: f64) -> TextSegment {
        TextSegment {
            text: text.to_owned(),
            start,
            end,
            base,
            size: 10.0,
            quarter_turns: 0,
            first_word: end,
        }
    }

    fn texts(segments: Vec<TextSegment>) -> Vec<String> {
        in_reading_order(segments)
            .into_iter()
            .map(|one| one.text)
            .collect()
    }

    #[test]
    fn drawn_columns_stay_as_they_are() {
        let mut page = Vec::new();
        for column in 0..2 {
            for line in 0..10 {
                let x = f64::from(column) * 200.0;
                page.push(segment(
                    &format!("{column}{line}"),
                    x,
                    x + 180.0,
                    f64::from(line) * 12.0,
                ));
            }
        }
        let expect: Vec<_> = page.iter().map(|one| one.text.clone()).collect();
        assert_eq!(texts(page), expect);
    }

    #[test]
    fn a_page_drawn_from_below_is_put_in_order() {
        let mut page = vec![segment("title", 0.0, 380.0, 0.0)];
        for column in 0..2 {
            for line in 0..10 {
                let x = f64::from(column) * 200.0;
                page.push(segment(
                    &format!("{column}{line}"),
                    x,
                    x + 180.0,
                    40.0 + f64::from(line) * 12.0,
                ));
            }
        }
        let expect: Vec<_> = page.iter().map(|one| one.text.clone()).collect();
        page.reverse();
        assert_eq!(texts(page), expect);
    }

    #[test]
    fn turned_lines_come_last() {
        let mut turned = segment("turned", 0.0, 10.0, 0.0);
        turned.quarter_turns = 1;
        let page = vec![
            turned,
            segment("a", 0.0, 10.0, 0.0),
            segment("b", 0.0, 10.0, 12.0),
        ];
        assert_eq!(texts(page), ["a", "b", "turned"]);
    }

    #[test]
    fn cuts_end_at_their_bound() {
        let stairs = |count: usize| {
            let step = |n: usize| {
                segment(
                    &format!("{n}"),
                    n as f64 * 100.0,
                    n as f64 * 100.0 + 10.0,
                    n as f64 * 100.0,
                )
            };
            let mut page: Vec<_> = (0..count).map(step).collect();
            page.reverse();
            texts(page)
        };
        let expect = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(stairs(MAX_XY_CUTS), expect(MAX_XY_CUTS));
        assert_eq!(stairs(20 * MAX_XY_CUTS), expect(20 * MAX_XY_CUTS));
    }
}
