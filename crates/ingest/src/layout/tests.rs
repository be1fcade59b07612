//! Unit tests of the text layout: calls and the lines that they produce.

use super::*;

fn check(write: impl Fn(&mut TextLayout), expect: &str) {
    let mut layout = TextLayout::default();
    write(&mut layout);
    assert_eq!(layout.finish(), expect);
}

fn row(layout: &mut TextLayout, cells: &[&str]) {
    layout.begin_row();
    for cell in cells {
        layout.begin_cell();
        layout.write(cell);
        layout.end_cell();
    }
    layout.end_row();
}

#[test]
fn paragraphs_and_headings() {
    check(
        |l| {
            l.heading(2);
            l.write("  Ferry\n");
            l.line_break();
            l.write("times ");
            l.end_heading();
            l.heading(9);
            l.end_heading();
            l.write("The\u{2028}first ");
            l.write(" boat");
            l.write("s");
            l.end_block();
            l.end_block();
            l.write("leave");
            l.line_break();
            l.write("early");
        },
        "## Ferry times\n\nThe first boats\n\nleave\nearly",
    );
}

#[test]
fn lists_are_set_in() {
    check(
        |l| {
            l.write("Needed:");
            l.begin_list();
            l.item(None);
            l.write("rope");
            l.end_block();
            l.write("long");
            l.begin_list();
            l.item(Some(3));
            l.write("of hemp");
            l.end_list();
            l.item(None);
            l.item(None);
            l.write("tar");
            l.end_list();
            l.write("End");
        },
        "Needed:\n\n- rope\n  long\n  3. of hemp\n- tar\n\nEnd",
    );
}

#[test]
fn short_cells_share_a_line_and_long_ones_do_not() {
    check(
        |l| {
            row(l, &["Port", "Boats"]);
            row(l, &["Orrin", ""]);
            row(l, &["", ""]);
            row(l, &["", "2"]);
            l.begin_row();
            l.begin_cell();
            l.write("a");
            l.end_block();
            l.write("b");
            l.end_cell();
            l.begin_cell();
            l.write("c");
            l.end_row();
        },
        "Port | Boats\nOrrin\n | 2\na\n\nb\nc",
    );
}

#[test]
fn rows_inside_rows_end_at_their_bound() {
    let nested = |depth: usize| {
        let mut layout = TextLayout::default();
        for _ in 0..depth {
            layout.begin_row();
            layout.begin_cell();
            layout.write("a");
            layout.end_cell();
            layout.begin_cell();
        }
        for _ in 0..depth {
            layout.end_row();
        }
        layout.finish()
    };
    assert_eq!(nested(1), "a");
    assert_eq!(nested(MAX_ROWS), "a | a | a | a");
    assert_eq!(nested(MAX_ROWS + 1), "a\na\na\na\na");
}

#[test]
fn very_many_cells_stay_apart() {
    let cells = |count: usize| {
        let mut layout = TextLayout::default();
        row(&mut layout, &vec!["x"; count]);
        layout.finish().lines().count()
    };
    assert_eq!(cells(MAX_CELLS), 1);
    assert_eq!(cells(MAX_CELLS + 1), MAX_CELLS + 1);
}

#[test]
fn code_keeps_its_shape() {
    check(
        |l| {
            l.write("So:");
            l.begin_code();
            l.write("\n  # a\n\n```\n  ");
            l.write("b\n\n");
            l.end_code();
            l.begin_code();
            l.end_code();
            l.write("End");
        },
        "So:\n\n```\n  # a\n\n\\```\n  b\n```\n\nEnd",
    );
}

#[test]
fn words_that_look_like_marks_are_told_apart() {
    check(
        |l| {
            for line in ["# one", "#two", "```", "~~~ x", "a # b"] {
                l.write(line);
                l.end_line();
            }
        },
        "\\# one\n#two\n\\```\n\\~~~ x\na # b",
    );
}

#[test]
fn pages_are_counted_even_when_empty() {
    check(
        |l| {
            l.page_break();
            l.write("second\u{C}");
            l.page_break();
            l.page_break();
            l.heading(1);
            l.write("fourth");
        },
        "\n\u{C}\nsecond\n\u{C}\n\n\u{C}\n# fourth",
    );
}

#[test]
fn quotes_are_marked_up_to_a_bound() {
    check(
        |l| {
            l.begin_quote();
            l.write("said");
            l.end_quote();
            l.write("so");
        },
        "> said\n\nso",
    );
    check(
        |l| {
            (0..MAX_INDENT + 1).for_each(|_| l.begin_quote());
            l.write("x");
        },
        &format!("{}x", "> ".repeat(MAX_INDENT)),
    );
}
