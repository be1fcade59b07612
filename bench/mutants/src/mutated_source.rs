//! Renders a source file with all its mutants at once, each behind a switch, and records where in the text each mutant
//! is.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::mutation_site::{MutationSite, SiteKind};

/// The text of a file with all its mutants.
#[derive(Default)]
pub(crate) struct MutatedSource {
    pub(crate) text: String,
    /// The byte ranges of the text that belong to a mutant, with its index in the file.
    pub(crate) mutant_ranges: Vec<(Range<usize>, usize)>,
}

/// What the next build leaves out, because the compiler rejected it.
#[derive(Default, Clone)]
pub(crate) struct ExcludedSites {
    /// Mutants that do not compile, by their index in the file.
    pub(crate) mutants: BTreeSet<usize>,
    /// Functions that are called in constants, and so have to stay `const`.
    pub(crate) const_functions: BTreeSet<String>,
}

/// Renders a file. `first` is the number of its first mutant.
pub(crate) fn render(
    source: &str,
    sites: &[MutationSite],
    excluded: &ExcludedSites,
    first: usize,
) -> MutatedSource {
    let mut renderer = SourceRenderer {
        source,
        sites,
        excluded,
        first,
        out: MutatedSource::default(),
    };
    renderer.copy(0..source.len(), 0);
    renderer.out
}

struct SourceRenderer<'a> {
    source: &'a str,
    sites: &'a [MutationSite],
    excluded: &'a ExcludedSites,
    first: usize,
    out: MutatedSource,
}

impl SourceRenderer<'_> {
    /// Copies a range of the source and renders the sites in it, beginning with the site `from`.
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
            self.copy_text(at..site.span.start);
            at = site.span.end;
            self.render_site(n, site);
        }
        self.copy_text(at..end);
    }

    fn copy_text(&mut self, range: Range<usize>) {
        let text = self.source.get(range).unwrap_or_default();
        self.out.text.push_str(text);
    }

    fn write(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    fn is_included(&self, mutant: usize) -> bool {
        !self.excluded.mutants.contains(&mutant)
    }

    /// The expression that is true while the mutant is on.
    fn is_on(&self, mutant: usize) -> String {
        format!("crate::mutant::on({})", self.first + mutant)
    }

    /// Writes text that belongs to a mutant.
    fn write_mutant(&mut self, mutant: usize, write: impl FnOnce(&mut Self)) {
        let start = self.out.text.len();
        write(self);
        self.out
            .mutant_ranges
            .push((start..self.out.text.len(), mutant));
    }

    fn render_site(&mut self, n: usize, site: &MutationSite) {
        let (span, inner) = (site.span.clone(), n + 1);
        match &site.kind {
            SiteKind::FunctionEntry(entries) => {
                for (mutant, value) in entries {
                    if self.is_included(*mutant) {
                        let text = format!(" if {} {{ return {value}; }}", self.is_on(*mutant));
                        self.write_mutant(*mutant, |me| me.write(&text));
                    }
                }
            }
            SiteKind::Negation(mutant) if self.is_included(*mutant) => {
                let number = self.first + mutant;
                self.write_mutant(*mutant, |me| {
                    me.write(&format!("crate::mutant::flip({number}, "));
                    me.copy(span, inner);
                    me.write(")");
                });
            }
            SiteKind::LogicalOperator {
                mutant,
                or,
                left,
                right,
            } if self.is_included(*mutant) => {
                let (left, right) = (left.clone(), right.clone());
                let comparison = if *or { "==" } else { "!=" };
                let on = self.is_on(*mutant);
                self.write_mutant(*mutant, |me| {
                    me.write("({ let __left: bool = ");
                    me.copy(left, inner);
                    me.write(&format!("; if __left {comparison} {on} {{ "));
                    me.copy(right, inner);
                    me.write(" } else { __left } })");
                });
            }
            SiteKind::Operator {
                left,
                right,
                others,
            } => self.operator(span, inner, (left, right), others),
            SiteKind::MatchGuard { always, never } => self.guard(span, inner, *always, *never),
            SiteKind::MatchArm(mutant) if self.is_included(*mutant) => {
                let text = format!(" if !{}", self.is_on(*mutant));
                self.write_mutant(*mutant, |me| me.write(&text));
            }
            SiteKind::Statement(mutant) if self.is_included(*mutant) => {
                let on = self.is_on(*mutant);
                self.write_mutant(*mutant, |me| {
                    me.write(&format!("if !{on} {{ "));
                    me.copy(span, inner);
                    me.write(" }");
                });
            }
            SiteKind::ConstKeyword(name) if !self.excluded.const_functions.contains(name) => {}
            SiteKind::Negation(_)
            | SiteKind::LogicalOperator { .. }
            | SiteKind::MatchArm(_)
            | SiteKind::Statement(_)
            | SiteKind::ConstKeyword(_) => {
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
        let included: Vec<_> = others
            .iter()
            .filter(|(mutant, _)| self.is_included(*mutant))
            .collect();
        if included.is_empty() {
            return self.copy(span, inner);
        }
        self.write("(");
        for (mutant, operator) in included {
            let on = self.is_on(*mutant);
            self.write(&format!("if {on} {{ "));
            self.write_mutant(*mutant, |me| {
                me.write("(");
                me.copy(left.clone(), inner);
                me.write(&format!(") {operator} ("));
                me.copy(right.clone(), inner);
                me.write(")");
            });
            self.write(" } else ");
        }
        // The parentheses are needed because a `match` or an `if` at the start would be a statement.
        self.write("{ (");
        self.copy(span, inner);
        self.write(") })");
    }

    /// Renders a match guard. If one of its two mutants does not compile, the other stays, and number 0, which is never
    /// on, takes its place.
    fn guard(&mut self, span: Range<usize>, inner: usize, always: usize, never: usize) {
        let number = |mutant: usize| {
            if self.is_included(mutant) {
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
        if !self.is_included(always) && !self.is_included(never) {
            return self.copy(span, inner);
        }
        self.write_mutant(never, |me| {
            me.write(&text);
            me.copy(span, inner);
            me.write(")");
        });
    }
}
