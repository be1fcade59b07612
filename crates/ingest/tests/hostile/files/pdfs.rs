//! PDFs with cycles, dangling references and false counts.

use super::craft::{HUGE_MIB, Packed, noise, object, pdf, stream};
use super::{Expect, Hostile};

const CATALOG: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const PAGES: &str = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
const PAGE: &str = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
    /Resources << /Font << /F1 5 0 R >> >> >>";
const FONT: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";

pub(super) fn all() -> Vec<Hostile> {
    let mut files: Vec<_> = named()
        .into_iter()
        .map(|(name, bytes)| Hostile::new(&format!("pdf-{name}.pdf"), bytes, Expect::Either))
        .collect();
    let good = simple(b"BT /F1 12 Tf 72 720 Td (The ferry rests on Mondays.) Tj ET");
    for number in 1..=20 {
        let (cut, _) = good.split_at(good.len() * number / 21);
        files.push(Hostile::new(
            &format!("pdf-cut-{number:02}.pdf"),
            cut,
            Expect::Either,
        ));
    }
    files
}

fn named() -> Vec<(&'static str, Vec<u8>)> {
    let nested = |count: usize| object(format!("{}{}", "[".repeat(count), "]".repeat(count)));
    let bomb = Packed::run(b' ', HUGE_MIB).zlib();
    let kids = "3 0 R ".repeat(1_000_000);
    let standard = |second: &str, third: &str| {
        pdf(&[
            object(CATALOG),
            object(second),
            object(third),
            stream("", b""),
            object(FONT),
        ])
    };
    vec![
        ("array-10380", with(nested(10_380))),
        ("array-200000", with(nested(200_000))),
        ("dictionary-100000", with(object("<</A ".repeat(100_000)))),
        (
            "pages-loop",
            standard("<< /Type /Pages /Kids [2 0 R] /Count 1 >>", PAGE),
        ),
        (
            "parent-loop",
            standard(PAGES, "<< /Type /Page /Parent 3 0 R /Contents 4 0 R >>"),
        ),
        (
            "million-pages",
            standard(
                &format!("<< /Type /Pages /Kids [{kids}] /Count 1000000 >>"),
                PAGE,
            ),
        ),
        (
            "count-lies",
            standard("<< /Type /Pages /Kids [3 0 R] /Count 2147483647 >>", PAGE),
        ),
        ("xref-loop", xref_loop()),
        (
            "xref-widths",
            xref_stream("/W [8 1000000000 8] /Index [0 2147483647] /Size 2147483647"),
        ),
        ("object-stream-loop", object_stream_loop()),
        (
            "flate-bomb",
            pdf(&[
                object(CATALOG),
                object(PAGES),
                object(PAGE),
                stream("/Filter /FlateDecode", &bomb),
                object(FONT),
            ]),
        ),
        (
            "filters",
            with(stream(
                &format!("/Filter [{}]", "/FlateDecode ".repeat(10_000)),
                b"x",
            )),
        ),
        (
            "predictor",
            with(stream(
                "/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 2147483647 /Colors 2147483647 >>",
                &bomb,
            )),
        ),
        (
            "no-font",
            pdf(&[
                object(CATALOG),
                object(PAGES),
                object(PAGE),
                stream("", b"BT /F9 12 Tf (lost) Tj ET"),
            ]),
        ),
        ("encrypted", encrypted()),
        (
            "inline-image",
            simple(b"BI /W 10 /H 10 /BPC 8 ID \x00\x01 EI BT /F1 9 Tf (x) Tj ET"),
        ),
        ("unbalanced", simple("q ".repeat(500_000).as_bytes())),
        ("form-loop", form_loop()),
        (
            "noise",
            [b"%PDF-1.7\n".to_vec(), noise(100_000, 11)].concat(),
        ),
    ]
}

fn simple(content: &[u8]) -> Vec<u8> {
    pdf(&[
        object(CATALOG),
        object(PAGES),
        object(PAGE),
        stream("", content),
        object(FONT),
    ])
}

/// An intact page next to one bad object.
fn with(bad: Vec<u8>) -> Vec<u8> {
    let content = stream("", b"BT /F1 12 Tf (x) Tj ET");
    let page = object(PAGE.replace("/Resources", "/Bad 6 0 R /Resources"));
    pdf(&[
        object(CATALOG),
        object(PAGES),
        page,
        content,
        object(FONT),
        bad,
    ])
}

/// A cross-reference table whose `Prev` entry refers to itself.
fn xref_loop() -> Vec<u8> {
    let text = String::from_utf8_lossy(&simple(b"")).into_owned();
    let start = text
        .rsplit("startxref\n")
        .next()
        .and_then(|tail| tail.lines().next());
    let start = start.unwrap_or_default().to_owned();
    text.replace("/Root", &format!("/Prev {start} /Root"))
        .into_bytes()
}

fn xref_stream(entries: &str) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n".to_vec();
    let start = out.len();
    out.extend(b"9 0 obj\n");
    out.extend(stream(
        &format!("/Type /XRef /Root 1 0 R {entries}"),
        &[0; 64],
    ));
    out.extend(format!("\nendobj\nstartxref\n{start}\n%%EOF\n").into_bytes());
    out
}

/// An object stream that contains itself.
fn object_stream_loop() -> Vec<u8> {
    let mut out = b"%PDF-1.7\n".to_vec();
    let inside = out.len();
    out.extend(b"5 0 obj\n");
    out.extend(stream(
        "/Type /ObjStm /N 2 /First 8 /Extends 5 0 R",
        b"1 0 5 0 << /Type /Catalog /Pages 5 0 R >>",
    ));
    out.extend(b"\nendobj\n");
    let start = out.len();
    let at = u8::try_from(inside).unwrap_or(9);
    let rows = [
        [0, 0, 0],
        [2, 5, 0],
        [0, 0, 0],
        [0, 0, 0],
        [1, at, 0],
        [2, 5, 1],
    ]
    .concat();
    out.extend(b"6 0 obj\n");
    out.extend(stream("/Type /XRef /Root 1 0 R /W [1 1 1] /Size 6", &rows));
    out.extend(format!("\nendobj\nstartxref\n{start}\n%%EOF\n").into_bytes());
    out
}

fn form_loop() -> Vec<u8> {
    let page = PAGE.replace("/Font <<", "/XObject << /X 4 0 R >> /Font <<");
    let form = stream(
        "/Type /XObject /Subtype /Form /Resources << /XObject << /X 4 0 R >> >>",
        b"/X Do /X Do",
    );
    pdf(&[
        object(CATALOG),
        object(PAGES),
        object(page),
        form,
        object(FONT),
    ])
}

fn encrypted() -> Vec<u8> {
    let text = simple(b"\x01\x02\x03");
    let encrypt = "/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 \
        /O (0123456789abcdef0123456789abcdef) /U (0123456789abcdef0123456789abcdef) >> /ID [(a) (a)] /Root";
    String::from_utf8_lossy(&text)
        .replace("/Root", encrypt)
        .into_bytes()
}
