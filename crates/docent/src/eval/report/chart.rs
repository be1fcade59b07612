//! Bar charts and histograms as inline SVG.

use super::safe_html::SafeHtml;

/// One bar of a horizontal bar chart.
pub(super) struct ChartBar {
    pub(super) label: String,
    /// The length of the bar, from 0 to 1.
    pub(super) size: f64,
    pub(super) shown: String,
}

/// The width of every chart in SVG units; the page scales it.
const WIDTH: f64 = 480.0;

/// A horizontal bar chart with labels and values; the accessible name is `what`.
pub(super) fn rows(bars: &[ChartBar], what: &str) -> SafeHtml {
    const ROW: f64 = 30.0;
    const LEFT: f64 = 100.0;
    const RIGHT: f64 = 50.0;
    let mut html = open(ROW * bars.len() as f64, what);
    for (bar, row) in bars.iter().zip(0_u32..) {
        let top = f64::from(row) * ROW;
        let track = WIDTH - LEFT - RIGHT;
        html.add(&word(LEFT - 10.0, top + 20.0, "end", &bar.label));
        html.add(&block("track", [LEFT, top + 8.0, track, 14.0]));
        html.add(&block(
            "bar",
            [LEFT, top + 8.0, track * bar.size.clamp(0.0, 1.0), 14.0],
        ));
        html.add(&word(WIDTH - RIGHT + 10.0, top + 20.0, "start", &bar.shown));
    }
    html.raw("</svg>");
    html
}

/// A column chart with the counts above and the labels below the columns.
pub(super) fn columns(counts: &[(String, usize)], what: &str) -> SafeHtml {
    const HEIGHT: f64 = 190.0;
    const FLOOR: f64 = 162.0;
    const ROOF: f64 = 22.0;
    let most = counts
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    let step = WIDTH / counts.len().max(1) as f64;
    let wide = (step * 0.72).min(60.0);
    let mut html = open(HEIGHT, what);
    html.add(&block("floor", [0.0, FLOOR, WIDTH, 1.0]));
    for ((label, count), place) in counts.iter().zip(0_u32..) {
        let middle = (f64::from(place) + 0.5) * step;
        // A minimum height keeps a single query visible among many.
        let least = if *count > 0 { 2.0 } else { 0.0 };
        let tall = ((FLOOR - ROOF) * *count as f64 / most as f64).max(least);
        html.add(&block(
            "bar",
            [middle - wide / 2.0, FLOOR - tall, wide, tall],
        ));
        if *count > 0 {
            html.add(&word(
                middle,
                FLOOR - tall - 6.0,
                "middle",
                &count.to_string(),
            ));
        }
        html.add(&word(middle, FLOOR + 18.0, "middle", label));
    }
    html.raw("</svg>");
    html
}

/// A histogram of latencies in milliseconds with bins at 1, 2, 5, 10 and so on, without empty bins at both ends.
pub(super) fn steps(times: &[f64]) -> Vec<(String, usize)> {
    let edges: Vec<f64> = (-2..=4)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power)))
        .collect();
    let mut counts: Vec<(String, usize)> =
        edges.iter().map(|edge| (format!("≤{edge}"), 0)).collect();
    counts.push(("more".to_owned(), 0));
    for time in times {
        let place = edges
            .iter()
            .position(|edge| time <= edge)
            .unwrap_or(edges.len());
        if let Some((_, count)) = counts.get_mut(place) {
            *count += 1;
        }
    }
    let filled = |(_, count): &(String, usize)| *count > 0;
    let last = counts.iter().rposition(filled).map_or(0, |last| last + 1);
    counts.truncate(last);
    let first = counts.iter().position(filled).unwrap_or(0);
    counts.split_off(first)
}

fn open(height: f64, what: &str) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<svg viewBox=\"0 0 ")
        .number(WIDTH)
        .raw(" ")
        .number(height)
        .raw("\" role=\"img\" aria-label=\"")
        .add(&SafeHtml::text(what))
        .raw("\">");
    html
}

fn block(class: &'static str, [x, y, width, height]: [f64; 4]) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<rect class=\"")
        .raw(class)
        .raw("\" x=\"")
        .number(x)
        .raw("\" y=\"")
        .number(y);
    html.raw("\" width=\"")
        .number(width)
        .raw("\" height=\"")
        .number(height)
        .raw("\" rx=\"2\"/>");
    html
}

fn word(x: f64, y: f64, anchor: &'static str, text: &str) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<text x=\"").number(x).raw("\" y=\"").number(y);
    html.raw("\" text-anchor=\"")
        .raw(anchor)
        .raw("\">")
        .add(&SafeHtml::text(text))
        .raw("</text>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_steps_without_empty_ends() {
        let counted = |times: &[f64]| {
            let steps = steps(times);
            steps
                .iter()
                .map(|(label, count)| format!("{label}:{count}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(counted(&[]), "");
        assert_eq!(counted(&[0.5, 0.51, 4.0]), "≤0.5:1 ≤1:1 ≤2:0 ≤5:1");
        assert_eq!(counted(&[0.0]), "≤0.01:1");
        assert_eq!(counted(&[1e9]), "more:1");
    }

    #[test]
    fn the_tallest_column_fills_the_room_and_bars_stay_inside() {
        let html = columns(&[("a".to_owned(), 4), ("b".to_owned(), 0)], "x").to_string();
        assert!(html.contains("height=\"140.0\""), "{html}");
        let bar = |size| ChartBar {
            label: String::new(),
            size,
            shown: String::new(),
        };
        let html = rows(&[bar(7.0)], "x").to_string();
        assert_eq!(html.matches("width=\"330.0\"").count(), 2, "{html}");
        assert!(columns(&[], "x").to_string().ends_with("</svg>"));
    }
}
