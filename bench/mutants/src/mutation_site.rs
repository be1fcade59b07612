//! Finds the places in a source file that can be mutated.
//!
//! Each site has its position in the text and its possible mutants; `mutated_source` renders them. A mutant is switched
//! on while the tests run, so places that the compiler evaluates are left out: constants, patterns, types and the
//! inside of macros.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ImplItemFn, ItemFn, ReturnType, Signature, Stmt, UnOp};

use crate::return_values::return_values;

/// A place that can be mutated.
pub(crate) struct MutationSite {
    pub(crate) span: Range<usize>,
    pub(crate) kind: SiteKind,
}

/// The kind of place, with the index of each of its mutants among those of the file.
pub(crate) enum SiteKind {
    /// The start of a function's body, which can return one of these values at once.
    FunctionEntry(Vec<(usize, String)>),
    /// A Boolean expression that can be negated.
    Negation(usize),
    /// `&&` or `||`, each of which can become the other.
    LogicalOperator {
        mutant: usize,
        or: bool,
        left: Range<usize>,
        right: Range<usize>,
    },
    /// An operator that can become one of `others`.
    Operator {
        left: Range<usize>,
        right: Range<usize>,
        others: Vec<(usize, &'static str)>,
    },
    /// The guard of a `match` arm, which can be always true or never true.
    MatchGuard { always: usize, never: usize },
    /// The end of the pattern of a `match` arm that can be disabled.
    MatchArm(usize),
    /// A statement that can be removed.
    Statement(usize),
    /// The keyword `const` of a function. It has to be removed, because a constant function cannot read the switch.
    ConstKeyword(String),
}

/// One small change to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// The path of the function, such as `Store::open`.
    pub(crate) function: String,
    pub(crate) line: usize,
    /// A description that does not depend on other lines of the file.
    pub(crate) change: String,
}

/// The sites and mutants of a file.
#[derive(Default)]
pub(crate) struct FileSites {
    pub(crate) sites: Vec<MutationSite>,
    pub(crate) mutants: Vec<Mutant>,
    /// Modules in files of their own that only tests use.
    pub(crate) test_modules: Vec<String>,
}

/// Finds the sites in the text of a file.
pub(crate) fn find(source: &str) -> syn::Result<FileSites> {
    let file = syn::parse_file(source)?;
    let mut finder = SiteFinder {
        source,
        found: FileSites::default(),
        within: Vec::new(),
    };
    finder.visit_file(&file);
    let mut found = finder.found;
    // Outer sites come before those inside them. The sort is stable, so sites with the same range keep their order.
    found
        .sites
        .sort_by_key(|site| (site.span.start, std::cmp::Reverse(site.span.end)));
    Ok(found)
}

struct SiteFinder<'a> {
    source: &'a str,
    found: FileSites,
    within: Vec<String>,
}

impl SiteFinder<'_> {
    fn text(&self, span: Range<usize>) -> String {
        let text = self.source.get(span).unwrap_or_default();
        let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > 100 {
            line = line.chars().take(100).chain("…".chars()).collect();
        }
        line
    }

    fn add_mutant(&mut self, at: Span, change: String) -> usize {
        self.found.mutants.push(Mutant {
            function: self.within.join("::"),
            line: at.start().line,
            change,
        });
        self.found.mutants.len() - 1
    }

    fn add_site(&mut self, span: Range<usize>, kind: SiteKind) {
        self.found.sites.push(MutationSite { span, kind });
    }

    fn add_negation(&mut self, expr: &Expr) {
        let span = expr.span();
        let change = format!("`{}` becomes its opposite", self.text(span.byte_range()));
        let mutant = self.add_mutant(span, change);
        self.add_site(span.byte_range(), SiteKind::Negation(mutant));
    }

    fn add_function(&mut self, signature: &Signature, block: &syn::Block) {
        if let Some(token) = &signature.constness {
            let range = token.span().byte_range();
            self.add_site(range, SiteKind::ConstKeyword(signature.ident.to_string()));
        }
        let chained = matches!(signature.inputs.first(), Some(syn::FnArg::Receiver(me)) if me.reference.is_none());
        let returned = match &signature.output {
            ReturnType::Default => vec![String::new()],
            ReturnType::Type(_, ty) if chained && is_self(ty) => vec!["self".to_owned()],
            ReturnType::Type(_, ty) => return_values(ty),
        };
        if !block.stmts.is_empty() {
            let at = block.brace_token.span.open().byte_range().end;
            let mut entries = Vec::new();
            for value in returned {
                let shown = if value.is_empty() { "()" } else { &value };
                let change = format!("the function returns `{shown}` at once");
                let mutant = self.add_mutant(signature.ident.span(), change);
                entries.push((mutant, value));
            }
            self.add_site(at..at, SiteKind::FunctionEntry(entries));
        }
        visit::visit_block(self, block);
    }

    /// Adds the negation of a condition, unless it is an operator, which has mutants of its own.
    fn add_condition(&mut self, expr: &Expr) {
        match expr {
            Expr::Let(inner) => self.visit_expr(&inner.expr),
            Expr::Binary(binary) if has_let(expr) => {
                self.add_condition(&binary.left);
                self.add_condition(&binary.right);
            }
            Expr::Binary(_) | Expr::Unary(_) | Expr::Macro(_) | Expr::Lit(_) => {
                self.visit_expr(expr);
            }
            Expr::Paren(inner) => self.add_condition(&inner.expr),
            _ => {
                self.add_negation(expr);
                self.visit_expr(expr);
            }
        }
    }

    fn add_binary(&mut self, binary: &ExprBinary) {
        let span = binary.span();
        let (left, right) = (
            binary.left.span().byte_range(),
            binary.right.span().byte_range(),
        );
        let whole = self.text(span.byte_range());
        if let BinOp::And(_) | BinOp::Or(_) = binary.op {
            let or = matches!(binary.op, BinOp::Or(_));
            let (from, to) = if or { ("||", "&&") } else { ("&&", "||") };
            let mutant = self.add_mutant(
                binary.op.span(),
                format!("`{from}` becomes `{to}` in `{whole}`"),
            );
            let kind = SiteKind::LogicalOperator {
                mutant,
                or,
                left,
                right,
            };
            return self.add_site(span.byte_range(), kind);
        }
        let from = self.text(binary.op.span().byte_range());
        let mut others = Vec::new();
        for to in replacements(&binary.op) {
            let change = format!("`{from}` becomes `{to}` in `{whole}`");
            others.push((self.add_mutant(binary.op.span(), change), *to));
        }
        if let (BinOp::Eq(_) | BinOp::Ne(_), Some((mutant, _))) = (&binary.op, others.first()) {
            return self.add_site(span.byte_range(), SiteKind::Negation(*mutant));
        }
        if !others.is_empty() {
            let kind = SiteKind::Operator {
                left,
                right,
                others,
            };
            self.add_site(span.byte_range(), kind);
        }
    }
}

/// The operators that can replace an operator.
fn replacements(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">"],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["*", "%"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::BitXor(_) => &["|"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["*=", "%="],
        _ => &[],
    }
}

fn is_self(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Path(path) if path.path.is_ident("Self"))
}

/// True for a condition with a `let`, which cannot be an argument of a function.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// True for items that only tests compile: with `#[test]`, `cfg(test)` or `cfg(all(test, …))`.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute
            .meta
            .require_list()
            .map(|list| list.tokens.to_string());
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && text.is_ok_and(|text| text == "test" || text.starts_with("all (test")))
    })
}

/// True for implementations of `Debug` and `Display`, whose output no test of security depends on.
fn is_formatting(item: &syn::ItemImpl) -> bool {
    let name = |path: &syn::Path| path.segments.last().map(|last| last.ident.to_string());
    let of = item.trait_.as_ref().and_then(|(_, path, _)| name(path));
    matches!(of.as_deref(), Some("Debug" | "Display"))
}

fn last_name(ty: &syn::Type) -> String {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
    .unwrap_or_default()
}

impl<'ast> Visit<'ast> for SiteFinder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            self.within.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.within.pop();
        } else if item.content.is_none() {
            self.found.test_modules.push(item.ident.to_string());
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test(&item.attrs) && !is_formatting(item) {
            self.within.push(last_name(&item.self_ty));
            visit::visit_item_impl(self, item);
            self.within.pop();
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.within.push(item.sig.ident.to_string());
            self.add_function(&item.sig, &item.block);
            self.within.pop();
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.within.push(item.sig.ident.to_string());
            self.add_function(&item.sig, &item.block);
            self.within.pop();
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.within.pop();
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.within.push(item.sig.ident.to_string());
            self.add_function(&item.sig, block);
            self.within.pop();
        }
    }

    // The compiler evaluates these, so they cannot contain a switch.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(semi)) = stmt
            && has_effect(expr)
        {
            let span = expr.span().byte_range().start..semi.span().byte_range().end;
            let change = format!("`{}` is left out", self.text(span.clone()));
            let mutant = self.add_mutant(expr.span(), change);
            self.add_site(span, SiteKind::Statement(mutant));
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.add_condition(&expr.cond);
        self.visit_block(&expr.then_branch);
        if let Some((_, other)) = &expr.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.add_condition(&expr.cond);
        self.visit_block(&expr.body);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        self.add_binary(binary);
        self.visit_expr(&binary.left);
        self.visit_expr(&binary.right);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, UnOp::Not(_)) {
            self.add_negation(&Expr::Unary(unary.clone()));
        }
        self.visit_expr(&unary.expr);
    }

    fn visit_expr_macro(&mut self, expr: &'ast syn::ExprMacro) {
        if expr.mac.path.is_ident("matches") {
            self.add_negation(&Expr::Macro(expr.clone()));
        }
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.visit_expr(&expr.expr);
        let has_catch_all = expr.arms.last().is_some_and(is_catch_all);
        for (n, arm) in expr.arms.iter().enumerate() {
            let (pattern, last) = (arm.pat.span(), n + 1 == expr.arms.len());
            let shown = self.text(pattern.byte_range());
            match &arm.guard {
                Some((_, guard)) if !has_let(guard) => {
                    let text = self.text(guard.span().byte_range());
                    let always = self.add_mutant(
                        guard.span(),
                        format!("the arm `{shown}` matches without `{text}`"),
                    );
                    let never = self.add_mutant(
                        guard.span(),
                        format!("the arm `{shown} if {text}` never matches"),
                    );
                    self.add_site(
                        guard.span().byte_range(),
                        SiteKind::MatchGuard { always, never },
                    );
                    self.visit_expr(guard);
                }
                None if has_catch_all && !last => {
                    let at = pattern.byte_range().end;
                    let mutant =
                        self.add_mutant(pattern, format!("the arm `{shown}` never matches"));
                    self.add_site(at..at, SiteKind::MatchArm(mutant));
                }
                _ => {}
            }
            self.visit_expr(&arm.body);
        }
    }
}

/// True for calls and assignments. Macros are not among them, so log messages are not mutated.
fn has_effect(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) => true,
        Expr::Try(inner) => has_effect(&inner.expr),
        Expr::Await(inner) => has_effect(&inner.base),
        _ => false,
    }
}

/// True for an arm that matches everything: `_` or the name of a variable. A name with a capital letter is a variant.
fn is_catch_all(arm: &syn::Arm) -> bool {
    let is_variable = |name: &syn::Ident| {
        name.to_string()
            .starts_with(|c: char| c.is_ascii_lowercase())
    };
    arm.guard.is_none()
        && match &arm.pat {
            syn::Pat::Wild(_) => true,
            syn::Pat::Ident(name) => is_variable(&name.ident),
            _ => false,
        }
}
