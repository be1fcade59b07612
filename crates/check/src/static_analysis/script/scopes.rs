//! Scope stack of the lexer: the open parentheses, brackets and braces, and the functions that they delimit.
//!
//! A brace may open a block, an object, a function or a `try`. Which one it is decides what a following `/` means, and
//! whether the code inside is certain to run. In doubt, code counts as not certain.

use super::functions::{CodeLocation, FunctionId, FunctionTable};
use super::lexer::{BEFORE_EXPRESSION, JsToken};

/// Keywords whose parentheses are followed by a statement.
const CONTROL: [&str; 5] = ["if", "while", "for", "with", "switch"];

/// What an open bracket of any kind belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Parenthesis(Opener),
    Bracket,
    Block {
        is_branch: bool,
    },
    /// The body of a function in braces. Only a function expression can be invoked immediately.
    Function {
        is_expression: bool,
    },
    /// The expression body of `x => y`, which ends with the expression.
    Arrow,
    Object,
    Try,
    /// A `${…}` placeholder of a template literal.
    Placeholder,
}

/// What precedes an opening parenthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    /// A control keyword such as `if`.
    Control,
    Catch,
    /// The keyword `function`, with or without a name.
    Function {
        is_expression: bool,
    },
    /// A callable expression, or the name of a method.
    Callee,
    /// An operator or nothing: the parenthesis holds an expression or the parameters of an arrow function.
    Operator,
}

/// An open scope with the location of the code in it. `is_plain` says that this code runs whenever its function does,
/// and `name` is, for a parenthesis, the name of the function that has these parameters.
#[derive(Debug, Clone, Copy)]
struct OpenScope<'a> {
    scope: Scope,
    location: CodeLocation,
    is_plain: bool,
    name: Option<&'a str>,
}

#[derive(Debug, Default)]
pub(super) struct Scopes<'a> {
    open: Vec<OpenScope<'a>>,
    pub(super) functions: FunctionTable<'a>,
    /// The scope that was closed last, and its name.
    closed: Option<(Scope, Option<&'a str>)>,
    /// The function expression that the last token closed, which a following `(` invokes.
    ended: Option<FunctionId>,
}

impl<'a> Scopes<'a> {
    pub(super) fn location(&self) -> CodeLocation {
        let top = CodeLocation {
            function: FunctionId::TopLevel,
            is_tried: false,
        };
        self.open.last().map_or(top, |open| open.location)
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_plain(&self) -> bool {
        self.open.last().is_none_or(|open| open.is_plain)
    }

    pub(super) fn closed(&self) -> Option<Scope> {
        self.closed.map(|(scope, _)| scope)
    }

    pub(super) fn is_in_placeholder(&self) -> bool {
        let top = self.open.last().map(|open| open.scope);
        top == Some(Scope::Placeholder)
    }

    pub(super) fn is_in_arrow(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.scope == Scope::Arrow)
    }

    /// Notes a token that closes no function.
    pub(super) fn pass(&mut self) {
        self.ended = None;
    }

    pub(super) fn open_parenthesis(&mut self, before: &[JsToken<'a>]) {
        let (opener, name) = opener(before);
        self.open(Scope::Parenthesis(opener), name);
    }

    pub(super) fn open_brace(&mut self, before: &[JsToken<'a>]) {
        let scope = self.brace(before);
        let name = match before {
            [.., JsToken::Mark(b'='), JsToken::Mark(b'>')] => self.arrow_name(before),
            _ => self.closed.and_then(|(_, name)| name),
        };
        self.open(scope, name);
    }

    /// Opens an arrow function whose body is an expression.
    pub(super) fn open_arrow(&mut self, before: &[JsToken<'a>]) {
        let name = self.arrow_name(before);
        self.open(Scope::Arrow, name);
    }

    pub(super) fn open(&mut self, scope: Scope, name: Option<&'a str>) {
        let outer = self.location();
        let (location, is_plain) = match scope {
            // The body of a function runs when the function is called, so an enclosing `try` does not count.
            Scope::Function { .. } | Scope::Arrow => {
                let function = self.functions.add(name);
                let location = CodeLocation {
                    function,
                    is_tried: false,
                };
                (location, true)
            }
            Scope::Try => {
                let location = CodeLocation {
                    is_tried: true,
                    ..outer
                };
                (location, self.is_plain())
            }
            Scope::Block { is_branch } => (outer, self.is_plain() && !is_branch),
            _ => (outer, false),
        };
        self.open.push(OpenScope {
            scope,
            location,
            is_plain,
            name,
        });
    }

    /// Closes the arrow functions inside the innermost bracket.
    pub(super) fn close_arrows(&mut self) {
        while self.is_in_arrow() {
            self.ended = self.open.pop().map(|open| open.location.function);
        }
    }

    /// Closes a parenthesis, bracket or brace. `rest` is the source after it, which may invoke a function expression.
    pub(super) fn close(&mut self, rest: &str) {
        self.close_arrows();
        let Some(closed) = self.open.pop() else {
            self.closed = None;
            return;
        };
        self.closed = Some((closed.scope, closed.name));
        let is_called = ["(", ".call(", ".apply("]
            .iter()
            .any(|start| rest.starts_with(start));
        let (ended, is_called) = match closed.scope {
            Scope::Function {
                is_expression: true,
            } => (Some(closed.location.function), is_called),
            // An arrow function can be invoked only through the parentheses around it.
            Scope::Function { .. } => (Some(closed.location.function), false),
            Scope::Parenthesis(Opener::Operator) => (self.ended, is_called),
            _ => (None, false),
        };
        self.ended = ended;
        if let Some(function) = ended
            && is_called
        {
            self.functions.call(function, self.location());
        }
    }

    /// The kind of scope that a brace opens here.
    fn brace(&self, before: &[JsToken]) -> Scope {
        use JsToken::{Mark, Word};
        match before {
            [.., Mark(b'.'), Word(_)] => Scope::Object,
            [.., Word("try")] => Scope::Try,
            [.., Word("do" | "finally")] => Scope::Block { is_branch: false },
            [.., Word("else" | "catch")] => Scope::Block { is_branch: true },
            [] | [.., Mark(b';' | b'{' | b'}')] => Scope::Block { is_branch: false },
            [.., Mark(b')')] => match self.closed() {
                Some(Scope::Parenthesis(Opener::Function { is_expression })) => {
                    Scope::Function { is_expression }
                }
                Some(Scope::Parenthesis(Opener::Callee | Opener::Operator)) => Scope::Function {
                    is_expression: false,
                },
                _ => Scope::Block { is_branch: true },
            },
            [.., Mark(b'='), Mark(b'>')] => Scope::Function {
                is_expression: false,
            },
            _ => Scope::Object,
        }
    }

    /// The name of an arrow function, from the tokens up to its `=>`.
    fn arrow_name(&self, before: &[JsToken<'a>]) -> Option<&'a str> {
        match before {
            [
                ..,
                JsToken::Mark(b')'),
                JsToken::Mark(b'='),
                JsToken::Mark(b'>'),
            ] => self.closed.and_then(|(_, name)| name),
            [
                rest @ ..,
                JsToken::Word(_),
                JsToken::Mark(b'='),
                JsToken::Mark(b'>'),
            ] => assigned(rest),
            _ => None,
        }
    }
}

/// Classifies an opening parenthesis, with the name of the function whose parameters it holds.
fn opener<'a>(before: &[JsToken<'a>]) -> (Opener, Option<&'a str>) {
    use JsToken::{Mark, Word};
    let function = |rest: &[JsToken], name| {
        let is_expression = is_operator(without_async(rest));
        (Opener::Function { is_expression }, name)
    };
    match before {
        [.., Mark(b'.'), Word(_)] => (Opener::Callee, None),
        [rest @ .., Word("function"), Word(name)]
        | [rest @ .., Word("function"), Mark(b'*'), Word(name)] => function(rest, Some(*name)),
        [rest @ .., Word("function")] | [rest @ .., Word("function"), Mark(b'*')] => {
            function(rest, assigned(rest))
        }
        [.., Word("for"), Word("await")] => (Opener::Control, None),
        [.., Word(word)] if CONTROL.contains(word) => (Opener::Control, None),
        [.., Word("catch")] => (Opener::Catch, None),
        [.., Word("async")] => (Opener::Operator, assigned(before)),
        [.., Word(word)] if !BEFORE_EXPRESSION.contains(word) => (Opener::Callee, None),
        [.., Mark(b')' | b']')] => (Opener::Callee, None),
        _ => (Opener::Operator, assigned(before)),
    }
}

fn without_async<'a, 'b>(tokens: &'b [JsToken<'a>]) -> &'b [JsToken<'a>] {
    match tokens {
        [rest @ .., JsToken::Word("async")] => rest,
        all => all,
    }
}

/// Whether the keyword `function` after these tokens begins an expression and not a declaration.
fn is_operator(before: &[JsToken]) -> bool {
    match before.last() {
        None => false,
        Some(JsToken::Mark(mark)) => !matches!(mark, b';' | b'{' | b'}' | b')'),
        Some(JsToken::Word(word)) => {
            BEFORE_EXPRESSION.contains(word) && !matches!(*word, "default" | "else" | "do")
        }
        Some(_) => false,
    }
}

/// The variable to which the next expression is assigned.
fn assigned<'a>(before: &[JsToken<'a>]) -> Option<&'a str> {
    match without_async(before) {
        [
            ..,
            JsToken::Mark(b'.'),
            JsToken::Word(_),
            JsToken::Mark(b'='),
        ] => None,
        [.., JsToken::Word(name), JsToken::Mark(b'=')] => Some(name),
        _ => None,
    }
}
