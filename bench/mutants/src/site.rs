//! A source file into the places at which it can be changed.
//!
//! A place knows where it stands in the text and which mutants it can be: the text itself is put together in
//! `render`. What a switch that is asked at run time cannot express is left out here: constants, patterns, types and
//! the inside of macros.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ImplItemFn, ItemFn, ReturnType, Signature, Stmt, UnOp};

use crate::value::values;

/// A place, and what can stand there.
pub(crate) struct Site {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

/// What can stand at a place; each mutant by its index among those of the file.
pub(crate) enum Kind {
    /// The beginning of a body, which can return these at once.
    Entry(Vec<(usize, String)>),
    /// A truth value that can be its opposite.
    Flip(usize),
    /// `&&` or `||`, which can be the other.
    Logic {
        mutant: usize,
        or: bool,
        left: Range<usize>,
        right: Range<usize>,
    },
    /// Two operands whose operator can be one of these.
    Operator {
        left: Range<usize>,
        right: Range<usize>,
        others: Vec<(usize, &'static str)>,
    },
    /// The condition of an arm, which can be always true or never.
    Guard { always: usize, never: usize },
    /// The end of a pattern whose arm can be missing.
    Arm(usize),
    /// A statement that can be missing.
    Statement(usize),
    /// `const` before a function, which has to go for the switch to be asked.
    Const(String),
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// The function, with what it belongs to.
    pub(crate) function: String,
    pub(crate) line: usize,
    /// What is changed, in words that stay the same when other lines change.
    pub(crate) what: String,
}

/// What there is to change in a file.
#[derive(Default)]
pub(crate) struct Sites {
    pub(crate) sites: Vec<Site>,
    pub(crate) mutants: Vec<Mutant>,
    /// Modules in files of their own that are only there for tests.
    pub(crate) test_modules: Vec<String>,
}

/// Finds them in the text of a file.
pub(crate) fn find(source: &str) -> syn::Result<Sites> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder {
        source,
        found: Sites::default(),
        within: Vec::new(),
    };
    finder.visit_file(&file);
    let mut found = finder.found;
    // Outer places before those inside them; the order of finding decides where both are the same.
    found
        .sites
        .sort_by_key(|site| (site.span.start, std::cmp::Reverse(site.span.end)));
    Ok(found)
}

struct Finder<'a> {
    source: &'a str,
    found: Sites,
    within: Vec<String>,
}

impl Finder<'_> {
    fn text(&self, span: Range<usize>) -> String {
        let text = self.source.get(span).unwrap_or_default();
        let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > 100 {
            line = line.chars().take(100).chain("…".chars()).collect();
        }
        line
    }

    fn mutant(&mut self, at: Span, what: String) -> usize {
        self.found.mutants.push(Mutant {
            function: self.within.join("::"),
            line: at.start().line,
            what,
        });
        self.found.mutants.len() - 1
    }

    fn site(&mut self, span: Range<usize>, kind: Kind) {
        self.found.sites.push(Site { span, kind });
    }

    fn flip(&mut self, expr: &Expr) {
        let span = expr.span();
        let what = format!("`{}` becomes its opposite", self.text(span.byte_range()));
        let mutant = self.mutant(span, what);
        self.site(span.byte_range(), Kind::Flip(mutant));
    }

    fn function(&mut self, signature: &Signature, block: &syn::Block) {
        if let Some(token) = &signature.constness {
            let range = token.span().byte_range();
            self.site(range, Kind::Const(signature.ident.to_string()));
        }
        let chained = matches!(signature.inputs.first(), Some(syn::FnArg::Receiver(me)) if me.reference.is_none());
        let returned = match &signature.output {
            ReturnType::Default => vec![String::new()],
            ReturnType::Type(_, ty) if chained && is_self(ty) => vec!["self".to_owned()],
            ReturnType::Type(_, ty) => values(ty),
        };
        if !block.stmts.is_empty() {
            let at = block.brace_token.span.open().byte_range().end;
            let mut entries = Vec::new();
            for value in returned {
                let shown = if value.is_empty() { "()" } else { &value };
                let what = format!("the function returns `{shown}` at once");
                let mutant = self.mutant(signature.ident.span(), what);
                entries.push((mutant, value));
            }
            self.site(at..at, Kind::Entry(entries));
        }
        visit::visit_block(self, block);
    }

    /// A condition. What is an operator has mutants of its own.
    fn condition(&mut self, expr: &Expr) {
        match expr {
            Expr::Let(inner) => self.visit_expr(&inner.expr),
            Expr::Binary(binary) if has_let(expr) => {
                self.condition(&binary.left);
                self.condition(&binary.right);
            }
            Expr::Binary(_) | Expr::Unary(_) | Expr::Macro(_) | Expr::Lit(_) => {
                self.visit_expr(expr);
            }
            Expr::Paren(inner) => self.condition(&inner.expr),
            _ => {
                self.flip(expr);
                self.visit_expr(expr);
            }
        }
    }

    fn binary(&mut self, binary: &ExprBinary) {
        let span = binary.span();
        let (left, right) = (
            binary.left.span().byte_range(),
            binary.right.span().byte_range(),
        );
        let whole = self.text(span.byte_range());
        if let BinOp::And(_) | BinOp::Or(_) = binary.op {
            let or = matches!(binary.op, BinOp::Or(_));
            let (from, to) = if or { ("||", "&&") } else { ("&&", "||") };
            let mutant = self.mutant(
                binary.op.span(),
                format!("`{from}` becomes `{to}` in `{whole}`"),
            );
            let kind = Kind::Logic {
                mutant,
                or,
                left,
                right,
            };
            return self.site(span.byte_range(), kind);
        }
        let from = self.text(binary.op.span().byte_range());
        let mut others = Vec::new();
        for to in swapped(&binary.op) {
            let what = format!("`{from}` becomes `{to}` in `{whole}`");
            others.push((self.mutant(binary.op.span(), what), *to));
        }
        if let (BinOp::Eq(_) | BinOp::Ne(_), Some((mutant, _))) = (&binary.op, others.first()) {
            return self.site(span.byte_range(), Kind::Flip(*mutant));
        }
        if !others.is_empty() {
            let kind = Kind::Operator {
                left,
                right,
                others,
            };
            self.site(span.byte_range(), kind);
        }
    }
}

/// What an operator can be taken for.
fn swapped(op: &BinOp) -> &'static [&'static str] {
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

/// A chain with a `let` in it cannot be put in brackets.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Code that only tests see. `cfg(all(test, …))` counts; `cfg(not(test))` does not.
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

/// How something is shown in a log or to a developer is not what the tests are for.
fn is_shown(item: &syn::ItemImpl) -> bool {
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

impl<'ast> Visit<'ast> for Finder<'_> {
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
        if !is_test(&item.attrs) && !is_shown(item) {
            self.within.push(last_name(&item.self_ty));
            visit::visit_item_impl(self, item);
            self.within.pop();
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.within.push(item.sig.ident.to_string());
            self.function(&item.sig, &item.block);
            self.within.pop();
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.within.push(item.sig.ident.to_string());
            self.function(&item.sig, &item.block);
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
            self.function(&item.sig, block);
            self.within.pop();
        }
    }

    // Nothing can be asked while the compiler works these out.
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
            let what = format!("`{}` is left out", self.text(span.clone()));
            let mutant = self.mutant(expr.span(), what);
            self.site(span, Kind::Statement(mutant));
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.condition(&expr.cond);
        self.visit_block(&expr.then_branch);
        if let Some((_, other)) = &expr.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.condition(&expr.cond);
        self.visit_block(&expr.body);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        self.binary(binary);
        self.visit_expr(&binary.left);
        self.visit_expr(&binary.right);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, UnOp::Not(_)) {
            self.flip(&Expr::Unary(unary.clone()));
        }
        self.visit_expr(&unary.expr);
    }

    fn visit_expr_macro(&mut self, expr: &'ast syn::ExprMacro) {
        if expr.mac.path.is_ident("matches") {
            self.flip(&Expr::Macro(expr.clone()));
        }
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.visit_expr(&expr.expr);
        let open = expr.arms.last().is_some_and(takes_the_rest);
        for (n, arm) in expr.arms.iter().enumerate() {
            let (pattern, last) = (arm.pat.span(), n + 1 == expr.arms.len());
            let shown = self.text(pattern.byte_range());
            match &arm.guard {
                Some((_, guard)) if !has_let(guard) => {
                    let text = self.text(guard.span().byte_range());
                    let always = self.mutant(
                        guard.span(),
                        format!("the arm `{shown}` matches without `{text}`"),
                    );
                    let never = self.mutant(
                        guard.span(),
                        format!("the arm `{shown} if {text}` never matches"),
                    );
                    self.site(guard.span().byte_range(), Kind::Guard { always, never });
                    self.visit_expr(guard);
                }
                None if open && !last => {
                    let at = pattern.byte_range().end;
                    let mutant = self.mutant(pattern, format!("the arm `{shown}` never matches"));
                    self.site(at..at, Kind::Arm(mutant));
                }
                _ => {}
            }
            self.visit_expr(&arm.body);
        }
    }
}

/// Statements that do something, apart from those that make the function end or that only write to the log.
fn has_effect(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) => true,
        Expr::Try(inner) => has_effect(&inner.expr),
        Expr::Await(inner) => has_effect(&inner.base),
        _ => false,
    }
}

/// True for `_` and for a name; a capital one would be a variant.
fn takes_the_rest(arm: &syn::Arm) -> bool {
    let small = |name: &syn::Ident| {
        name.to_string()
            .starts_with(|c: char| c.is_ascii_lowercase())
    };
    arm.guard.is_none()
        && match &arm.pat {
            syn::Pat::Wild(_) => true,
            syn::Pat::Ident(name) => small(&name.ident),
            _ => false,
        }
}
