//! Structural mutations of a package: its parts, relationship targets, XML and numbers. All mutations are
//! deterministic.

use super::packages::{Package, Part};
use crate::files::craft::{Member, Packed, zip};

/// A package with one mutation.
pub(super) struct Mutant {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// The part that was changed; `None` if it was the package itself or several parts.
    pub(super) part: Option<String>,
}

impl Mutant {
    fn new(package: &Package, what: &str, bytes: Vec<u8>) -> Self {
        Self {
            name: format!("{what}.{}", package.extension),
            bytes,
            part: None,
        }
    }

    /// A package in which one part has other content.
    pub(super) fn of_part(package: &Package, what: &str, at: usize, bytes: Vec<u8>) -> Self {
        let mut package = package.clone();
        let part = &mut package.parts[at];
        part.bytes = bytes;
        let name = part.name.clone();
        let what = format!("{}-{what}", name.replace(['/', '[', ']'], "_"));
        Self {
            part: Some(name),
            ..Self::new(&package, &what, package.packed())
        }
    }
}

/// Parts that are missing, duplicated, moved or replaced.
pub(super) fn of_parts(package: &Package) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (at, part) in package.parts.iter().enumerate() {
        let mut without = package.clone();
        without.parts.remove(at);
        mutants.push(Mutant::new(
            package,
            &format!("{at}-dropped"),
            without.packed(),
        ));
        let mut twice = package.clone();
        twice.parts.push(Part {
            name: part.name.clone(),
            bytes: b"<other/>".to_vec(),
        });
        mutants.push(Mutant::new(package, &format!("{at}-twice"), twice.packed()));
        let mut moved = package.clone();
        moved.parts.rotate_left(at);
        mutants.push(Mutant::new(package, &format!("{at}-first"), moved.packed()));
        for (what, bytes) in contents(&part.bytes) {
            mutants.push(Mutant::of_part(package, what, at, bytes));
        }
        for eighth in 1..8 {
            let cut = part.bytes[..part.bytes.len() * eighth / 8].to_vec();
            let what = format!("cut-{eighth}");
            mutants.push(Mutant::of_part(package, &what, at, cut));
        }
        mutants.extend(lies(package, at));
    }
    mutants
}

/// The same content in other encodings, with a document type, or replaced.
fn contents(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let root = text.find("?>").map_or(0, |end| end + 2);
    let declared = |declaration: &str| {
        let content = text[root..].replacen("</", "&e;&l9;</", 1);
        format!("<!DOCTYPE d [{declaration}]>{content}").into_bytes()
    };
    let mut laughs = String::from("<!ENTITY l0 \"lol\">");
    for level in 1..10 {
        let before = format!("&l{};", level - 1).repeat(10);
        laughs.push_str(&format!("<!ENTITY l{level} \"{before}\">"));
    }
    vec![
        ("empty", Vec::new()),
        ("white", vec![b' '; 6 << 20]),
        ("white-behind", [bytes, &vec![b'\n'; 3 << 20]].concat()),
        ("nothing", b"<a/>".to_vec()),
        ("noise", vec![0xFF; 300]),
        ("utf16", [b"\xFF\xFE".as_slice(), &little].concat()),
        ("utf16-bare", little),
        ("utf16-big-bare", big),
        (
            "bad-utf8",
            text.replacen("</", "\u{1}</", 1)
                .into_bytes()
                .iter()
                .map(|byte| if *byte == 1 { 0xC3 } else { *byte })
                .collect(),
        ),
        ("laughs", declared(&laughs)),
        ("entity-loop", declared("<!ENTITY e \"&e;\">")),
        (
            "open-declaration",
            format!("<!DOCTYPE d [<!ENTITY e \"{text}").into_bytes(),
        ),
        ("mismatched", text.replacen("</", "</x", 1).into_bytes()),
        ("unclosed", text.replacen("</", "<", 3).into_bytes()),
        ("nul", text.replace(' ', "\0").into_bytes()),
    ]
}

/// False directory entries for one part.
fn lies(package: &Package, at: usize) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let mut lie = |what: &str, change: &dyn Fn(&mut Member)| {
        let mut members = package.members();
        change(&mut members[at]);
        mutants.push(Mutant::new(package, &format!("{at}-{what}"), zip(&members)));
    };
    lie("crc", &|member| member.crc ^= 1);
    lie("size-less", &|member| member.size /= 2);
    lie("size-none", &|member| member.size = 0);
    lie("size-more", &|member| member.size += 1_000);
    lie("size-huge", &|member| member.size = u64::from(u32::MAX) - 1);
    lie("method", &|member| member.method = 99);
    lie("stored", &|member| member.method = 0);
    lie("encrypted", &|member| member.flags = 1);
    lie("cut", &|member| member.data.truncate(member.data.len() / 2));
    lie("link", &|member| member.mode = 0o120_777);
    lie("bomb", &|member| {
        *member = Member {
            name: member.name.clone(),
            ..Member::packed("", &Packed::run(b' ', 32))
        }
    });
    lie("outside", &|member| {
        member.name = [b"../../", member.name.as_slice()].concat();
    });
    mutants
}

/// Relationships with other targets: outside the package, missing, or cyclic.
pub(super) fn of_targets(package: &Package, secret: &str) -> Vec<Mutant> {
    let targets = [
        secret,
        &format!("file://{secret}"),
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "http://127.0.0.1:1/x.xml",
        "..",
        "",
        "#",
        "document.xml",
        "/xl/workbook.xml",
        "_rels/document.xml.rels",
        "_rels/workbook.xml.rels",
        "footnotes.xml",
        "worksheets/sheet2.xml",
    ];
    let mut mutants = Vec::new();
    for (at, part) in package.parts.iter().enumerate() {
        let text = String::from_utf8(part.bytes.clone()).unwrap();
        for range in values(&text).filter(|range| is_value_of(&text, range, "Target")) {
            for (number, target) in targets.iter().enumerate() {
                let changed = replaced(&text, &range, target);
                let what = format!("target-{}-{number}", range.start);
                mutants.push(Mutant::of_part(package, &what, at, changed));
            }
        }
    }
    mutants
}

type ByteRange = std::ops::Range<usize>;

/// The positions of attribute values, without namespaces and versions.
fn values(text: &str) -> impl Iterator<Item = ByteRange> {
    let starts = text.match_indices("=\"").map(|(at, _)| at + 2);
    let all = starts.filter_map(|start| {
        let end = start + text.get(start..)?.find('"')?;
        Some(start..end)
    });
    all.filter(|range| {
        !text[range.clone()].starts_with("http") && !text[..range.start].ends_with("version=\"")
    })
}

fn is_value_of(text: &str, range: &ByteRange, attribute: &str) -> bool {
    text[..range.start].ends_with(&format!("{attribute}=\""))
}

fn replaced(text: &str, range: &ByteRange, value: &str) -> Vec<u8> {
    [&text[..range.start], value, &text[range.end..]]
        .concat()
        .into_bytes()
}

const BAD_NUMBERS: &[&str] = &["-1", "2147483648", "18446744073709551615", "9e999"];
const BAD_REFERENCES: &[&str] = &["XFE1", "A1048577", "A0", "ZZZZZZZZ99999999999", "C9:A1"];
const BAD_WORDS: &[&str] = &["", "&#0;&lt;&unknown;"];

/// Every attribute and every number between tags with an invalid value, and every attribute twice.
pub(super) fn of_values(package: &Package) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (at, part) in package.parts.iter().enumerate() {
        let text = String::from_utf8(part.bytes.clone()).unwrap();
        let targets = |range: &ByteRange| !is_value_of(&text, range, "Target");
        for range in values(&text).filter(targets).chain(numbers(&text)) {
            let value = &text[range.clone()];
            let bad = if value.parse::<f64>().is_ok() {
                BAD_NUMBERS
            } else if value.contains(|c: char| c.is_ascii_digit()) && !value.contains('.') {
                BAD_REFERENCES
            } else {
                BAD_WORDS
            };
            for (number, bad) in bad.iter().enumerate() {
                let what = format!("value-{}-{number}", range.start);
                mutants.push(Mutant::of_part(
                    package,
                    &what,
                    at,
                    replaced(&text, &range, bad),
                ));
            }
            let name = text[..range.start].rfind(' ').unwrap_or_default();
            let attribute = &text[name..=range.end];
            if attribute.ends_with('"') {
                let what = format!("attribute-{}-twice", range.start);
                let twice = attribute.repeat(2);
                let changed = replaced(&text, &(name..range.end + 1), &twice);
                mutants.push(Mutant::of_part(package, &what, at, changed));
            }
        }
    }
    mutants
}

/// The positions of cell values.
fn numbers(text: &str) -> impl Iterator<Item = ByteRange> {
    let starts = text.match_indices("<v>").map(|(at, _)| at + 3);
    starts.filter_map(|start| Some(start..start + text.get(start..)?.find('<')?))
}

/// Every tag removed or duplicated.
pub(super) fn of_tags(package: &Package) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (at, part) in package.parts.iter().enumerate() {
        let text = String::from_utf8(part.bytes.clone()).unwrap();
        for (start, _) in text.match_indices('<') {
            let end = start + text[start..].find('>').unwrap() + 1;
            let range = start..end;
            let twice = text[range.clone()].repeat(2);
            for (what, value) in [("without", ""), ("twice", &twice)] {
                let what = format!("tag-{start}-{what}");
                mutants.push(Mutant::of_part(
                    package,
                    &what,
                    at,
                    replaced(&text, &range, value),
                ));
            }
        }
    }
    mutants
}

/// Several mutations at once: elements cut out, repeated, and copied into other parts.
pub(super) fn at_random(package: &Package, count: u64) -> Vec<Mutant> {
    let mutant = |seed: u64| {
        let mut numbers = MutationRng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut changed = package.clone();
        for _ in 0..2 + numbers.below(4) {
            let from = &package.parts[numbers.below(package.parts.len())].bytes;
            let piece = from[element(from, &mut numbers)].to_vec();
            let at = numbers.below(changed.parts.len());
            let part = &mut changed.parts[at];
            if part.bytes.is_empty() {
                continue;
            }
            let range = element(&part.bytes, &mut numbers);
            match numbers.below(3) {
                0 => drop(part.bytes.drain(range)),
                1 => drop(part.bytes.splice(range, piece)),
                _ => drop(part.bytes.splice(range.start..range.start, piece)),
            }
        }
        Mutant::new(package, &format!("random-{seed}"), changed.packed())
    };
    (1..=count).map(mutant).collect()
}

/// A range of bytes that begins and ends at tags.
fn element(bytes: &[u8], numbers: &mut MutationRng) -> ByteRange {
    let starts: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at] == b'<').collect();
    if starts.is_empty() {
        return 0..0;
    }
    let first = numbers.below(starts.len());
    let last = (first + 1 + numbers.below(8)).min(starts.len() - 1);
    starts[first]..starts[last].max(starts[first])
}

/// A deterministic pseudo-random number generator (xorshift).
struct MutationRng(u64);

impl MutationRng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}
