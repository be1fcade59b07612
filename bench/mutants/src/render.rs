//! A source file and its places into one that holds every mutant at once, and where in it each of them stands.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::site::{Kind, Site};

/// A file with all its mutants.
#[derive(Default)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// The stretches of the text that are there because of a mutant, by its index in the file.
    pub(crate) stretches: Vec<(Range<usize>, usize)>,
}

/// What is left out: mutants that do not compile, and functions that have to stay `const`.
#[derive(Default, Clone)]
pub(crate) struct Dead {
    pub(crate) mutants: BTreeSet<usize>,
    pub(crate) constant: BTreeSet<String>,
}

/// Puts the file together. `first` is the number of the file's first mutant.
pub(crate) fn render(source: &str, sites: &[Site], dead: &Dead, first: usize) -> Rendered {
    let mut renderer = Renderer {
        source,
        sites,
        dead,
        first,
        out: Rendered::default(),
    };
    renderer.copy(0..source.len(), 0);
    renderer.out
}

struct Renderer<'a> {
    source: &'a str,
    sites: &'a [Site],
    dead: &'a Dead,
    first: usize,
    out: Rendered,
}

impl Renderer<'_> {
    /// Copies a stretch of the source with the places in it, of which those before `from` are done already.
    fn copy(&mut self, range: Range<usize>, from: usize) {
        let Range { start, end } = range;
        let (sites, mut at) = (self.sites, start);
        for (n, site) in sites.iter().enumerate().skip(from) {
            if site.span.start >= end {
                break;
            }
            if site.span.start < at || site.span.end > end {
                continue;
            }
            self.plain(at..site.span.start);
            at = site.span.end;
            self.place(n, site);
        }
        self.plain(at..end);
    }

    fn plain(&mut self, range: Range<usize>) {
        let text = self.source.get(range).unwrap_or_default();
        self.out.text.push_str(text);
    }

    fn say(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    fn alive(&self, mutant: usize) -> bool {
        !self.dead.mutants.contains(&mutant)
    }

    fn on(&self, mutant: usize) -> String {
        format!("crate::mutant::on({})", self.first + mutant)
    }

    fn stretch(&mut self, mutant: usize, write: impl FnOnce(&mut Self)) {
        let start = self.out.text.len();
        write(self);
        self.out
            .stretches
            .push((start..self.out.text.len(), mutant));
    }

    fn place(&mut self, n: usize, site: &Site) {
        let (span, inner) = (site.span.clone(), n + 1);
        match &site.kind {
            Kind::Entry(entries) => {
                for (mutant, value) in entries {
                    if self.alive(*mutant) {
                        let text = format!(" if {} {{ return {value}; }}", self.on(*mutant));
                        self.stretch(*mutant, |me| me.say(&text));
                    }
                }
            }
            Kind::Flip(mutant) if self.alive(*mutant) => {
                let number = self.first + mutant;
                self.stretch(*mutant, |me| {
                    me.say(&format!("crate::mutant::flip({number}, "));
                    me.copy(span, inner);
                    me.say(")");
                });
            }
            Kind::Logic {
                mutant,
                or,
                left,
                right,
            } if self.alive(*mutant) => {
                let (left, right) = (left.clone(), right.clone());
                let test = if *or { "==" } else { "!=" };
                let on = self.on(*mutant);
                self.stretch(*mutant, |me| {
                    me.say("({ let __left: bool = ");
                    me.copy(left, inner);
                    me.say(&format!("; if __left {test} {on} {{ "));
                    me.copy(right, inner);
                    me.say(" } else { __left } })");
                });
            }
            Kind::Operator {
                left,
                right,
                others,
            } => self.operator(span, inner, (left, right), others),
            Kind::Guard { always, never } => self.guard(span, inner, *always, *never),
            Kind::Arm(mutant) if self.alive(*mutant) => {
                let text = format!(" if !{}", self.on(*mutant));
                self.stretch(*mutant, |me| me.say(&text));
            }
            Kind::Statement(mutant) if self.alive(*mutant) => {
                let on = self.on(*mutant);
                self.stretch(*mutant, |me| {
                    me.say(&format!("if !{on} {{ "));
                    me.copy(span, inner);
                    me.say(" }");
                });
            }
            Kind::Const(name) if !self.dead.constant.contains(name) => {}
            Kind::Flip(_)
            | Kind::Logic { .. }
            | Kind::Arm(_)
            | Kind::Statement(_)
            | Kind::Const(_) => {
                self.copy(span, inner);
            }
        }
    }

    fn operator(
        &mut self,
        span: Range<usize>,
        inner: usize,
        (left, right): (&Range<usize>, &Range<usize>),
        others: &[(usize, &'static str)],
    ) {
        let alive: Vec<_> = others
            .iter()
            .filter(|(mutant, _)| self.alive(*mutant))
            .collect();
        if alive.is_empty() {
            return self.copy(span, inner);
        }
        self.say("(");
        for (mutant, operator) in alive {
            let on = self.on(*mutant);
            self.say(&format!("if {on} {{ "));
            self.stretch(*mutant, |me| {
                me.say("(");
                me.copy(left.clone(), inner);
                me.say(&format!(") {operator} ("));
                me.copy(right.clone(), inner);
                me.say(")");
            });
            self.say(" } else ");
        }
        // In brackets, because `match` and the like would begin a statement.
        self.say("{ (");
        self.copy(span, inner);
        self.say(") })");
    }

    /// A condition keeps one of its two mutants where the other does not compile: number 0 is never on.
    fn guard(&mut self, span: Range<usize>, inner: usize, always: usize, never: usize) {
        let number = |mutant: usize| {
            if self.alive(mutant) {
                self.first + mutant
            } else {
                0
            }
        };
        let text = format!(
            "crate::mutant::pick({}, {}, ",
            number(always),
            number(never)
        );
        if !self.alive(always) && !self.alive(never) {
            return self.copy(span, inner);
        }
        self.stretch(never, |me| {
            me.say(&text);
            me.copy(span, inner);
            me.say(")");
        });
    }
}
