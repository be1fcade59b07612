//! Tests of the mutants that are found in a source text, and of the text that is rendered with them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what stands beside a test fails with it"
)]

use crate::mutated_source::{ExcludedSites, render};
use crate::mutation_site::find;

fn rendered(source: &str, excluded: &[usize]) -> String {
    let found = find(source).unwrap();
    let excluded = ExcludedSites {
        mutants: excluded.iter().copied().collect(),
        ..ExcludedSites::default()
    };
    let rendered = render(source, &found.sites, &excluded, 1);
    for (range, mutant) in &rendered.mutant_ranges {
        assert!(rendered.text.get(range.clone()).is_some(), "{mutant}");
    }
    rendered.text.replace("crate::mutant::", "")
}

#[test]
fn functions_return_at_once() {
    assert_eq!(
        rendered("fn a() -> Option<bool> { b() }", &[]),
        "fn a() -> Option<bool> { if on(1) { return None; } if on(2) { return Some(true); } \
         if on(3) { return Some(false); } b() }"
    );
    assert_eq!(
        rendered("fn a() { b() }", &[]),
        "fn a() { if on(1) { return ; } b() }"
    );
    assert_eq!(
        rendered("impl A { const fn a(mut self) -> Self { self.b } }", &[]),
        "impl A {  fn a(mut self) -> Self { if on(1) { return self; } self.b } }"
    );
}

#[test]
fn operators_are_replaced_and_nest() {
    assert_eq!(
        rendered("fn a() -> ! { b == c }", &[]),
        "fn a() -> ! { flip(1, b == c) }"
    );
    assert_eq!(
        rendered("fn a() -> ! { b < c }", &[]),
        "fn a() -> ! { (if on(1) { (b) <= (c) } else if on(2) { (b) > (c) } else { (b < c) }) }"
    );
    assert_eq!(
        rendered("fn a() -> ! { b == c && !d }", &[]),
        "fn a() -> ! { ({ let __left: bool = flip(2, b == c); if __left != on(1) { flip(3, !d) } else { __left } }) }"
    );
}

#[test]
fn mutants_that_do_not_compile_are_left_out() {
    let source = "fn a() -> bool { b < c && d() }";
    assert_eq!(rendered(source, &[0, 1, 2, 3, 4]), source);
    assert_eq!(
        rendered("fn a() -> ! { b < c }", &[0]),
        "fn a() -> ! { (if on(2) { (b) > (c) } else { (b < c) }) }"
    );
}

#[test]
fn conditions_arms_and_statements_are_mutated() {
    assert_eq!(
        rendered("fn a() -> ! { if b() { c(); } }", &[]),
        "fn a() -> ! { if flip(1, b()) { if !on(2) { c(); } } }"
    );
    assert_eq!(
        rendered("fn a() -> ! { if let Some(x) = b && x.c() { x } }", &[]),
        "fn a() -> ! { if let Some(x) = b && flip(1, x.c()) { x } }"
    );
    assert_eq!(
        rendered(
            "fn a() -> ! { match b { 1 => c, 2 if d() => e, _ => f } }",
            &[]
        ),
        "fn a() -> ! { match b { 1 if !on(1) => c, 2 if pick(2, 3, d()) => e, _ => f } }"
    );
    let closed = "fn a() -> ! { match b { Some(1) => c, None => e } }";
    assert_eq!(rendered(closed, &[]), closed);
}

#[test]
fn tests_constants_patterns_and_formatting_are_not_mutated() {
    for source in [
        "const A: bool = 1 == 2;",
        "#[cfg(test)] mod tests { fn a() -> bool { 1 == 2 } }",
        "#[cfg(test)] impl A { fn a() -> bool { 1 == 2 } }",
        "impl fmt::Debug for A { fn fmt(&self) -> bool { 1 == 2 } }",
        "fn a() -> ! { let [b, c]: [u8; 1 + 1] = d; }",
    ] {
        assert_eq!(rendered(source, &[]), source);
    }
    assert_eq!(
        find("#[cfg(test)] mod mint;").unwrap().test_modules,
        ["mint"]
    );
}

#[test]
fn a_mutant_has_its_place_and_description() {
    let found = find("impl A {\n    fn b() -> ! {\n        c >= d\n    }\n}").unwrap();
    let first = &found.mutants[0];
    assert_eq!((first.function.as_str(), first.line), ("A::b", 3));
    assert_eq!(first.change, "`>=` becomes `>` in `c >= d`");
}
