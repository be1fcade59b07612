//! Source in, source with mutants out.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what stands beside a test fails with it"
)]

use crate::render::{Dead, render};
use crate::site::find;

fn shown(source: &str, dead: &[usize]) -> String {
    let found = find(source).unwrap();
    let dead = Dead {
        mutants: dead.iter().copied().collect(),
        ..Dead::default()
    };
    let rendered = render(source, &found.sites, &dead, 1);
    for (range, mutant) in &rendered.stretches {
        assert!(rendered.text.get(range.clone()).is_some(), "{mutant}");
    }
    rendered.text.replace("crate::mutant::", "")
}

#[test]
fn bodies_return_at_once() {
    assert_eq!(
        shown("fn a() -> Option<bool> { b() }", &[]),
        "fn a() -> Option<bool> { if on(1) { return None; } if on(2) { return Some(true); } \
         if on(3) { return Some(false); } b() }"
    );
    assert_eq!(
        shown("fn a() { b() }", &[]),
        "fn a() { if on(1) { return ; } b() }"
    );
    assert_eq!(
        shown("impl A { const fn a(mut self) -> Self { self.b } }", &[]),
        "impl A {  fn a(mut self) -> Self { if on(1) { return self; } self.b } }"
    );
}

#[test]
fn operators_are_taken_for_others_and_nest() {
    assert_eq!(
        shown("fn a() -> ! { b == c }", &[]),
        "fn a() -> ! { flip(1, b == c) }"
    );
    assert_eq!(
        shown("fn a() -> ! { b < c }", &[]),
        "fn a() -> ! { (if on(1) { (b) <= (c) } else if on(2) { (b) > (c) } else { (b < c) }) }"
    );
    assert_eq!(
        shown("fn a() -> ! { b == c && !d }", &[]),
        "fn a() -> ! { ({ let __left: bool = flip(2, b == c); if __left != on(1) { flip(3, !d) } else { __left } }) }"
    );
}

#[test]
fn what_does_not_compile_is_left_as_it_was() {
    let source = "fn a() -> bool { b < c && d() }";
    assert_eq!(shown(source, &[0, 1, 2, 3, 4]), source);
    assert_eq!(
        shown("fn a() -> ! { b < c }", &[0]),
        "fn a() -> ! { (if on(2) { (b) > (c) } else { (b < c) }) }"
    );
}

#[test]
fn conditions_arms_and_statements() {
    assert_eq!(
        shown("fn a() -> ! { if b() { c(); } }", &[]),
        "fn a() -> ! { if flip(1, b()) { if !on(2) { c(); } } }"
    );
    assert_eq!(
        shown("fn a() -> ! { if let Some(x) = b && x.c() { x } }", &[]),
        "fn a() -> ! { if let Some(x) = b && flip(1, x.c()) { x } }"
    );
    assert_eq!(
        shown(
            "fn a() -> ! { match b { 1 => c, 2 if d() => e, _ => f } }",
            &[]
        ),
        "fn a() -> ! { match b { 1 if !on(1) => c, 2 if pick(2, 3, d()) => e, _ => f } }"
    );
    let closed = "fn a() -> ! { match b { Some(1) => c, None => e } }";
    assert_eq!(shown(closed, &[]), closed);
}

#[test]
fn tests_constants_patterns_and_what_is_only_shown_stay() {
    for source in [
        "const A: bool = 1 == 2;",
        "#[cfg(test)] mod tests { fn a() -> bool { 1 == 2 } }",
        "#[cfg(test)] impl A { fn a() -> bool { 1 == 2 } }",
        "impl fmt::Debug for A { fn fmt(&self) -> bool { 1 == 2 } }",
        "fn a() -> ! { let [b, c]: [u8; 1 + 1] = d; }",
    ] {
        assert_eq!(shown(source, &[]), source);
    }
    assert_eq!(
        find("#[cfg(test)] mod mint;").unwrap().test_modules,
        ["mint"]
    );
}

#[test]
fn a_mutant_says_where_it_is_and_what_it_does() {
    let found = find("impl A {\n    fn b() -> ! {\n        c >= d\n    }\n}").unwrap();
    let first = &found.mutants[0];
    assert_eq!((first.function.as_str(), first.line), ("A::b", 3));
    assert_eq!(first.what, "`>=` becomes `>` in `c >= d`");
}
