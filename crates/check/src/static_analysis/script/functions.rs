//! Call graph of a script: which functions are certain to run, and which calls a `try` protects.
//!
//! A bundle carries functions that nothing calls, so a call in a function is certain only where the function is certain
//! to run: it is invoked immediately, or called by its name in a plain statement that is certain to run. A name is
//! followed only where it is unambiguous: the script declares it once and does nothing with it but call it.

use super::lexer::{JsLexer, JsToken};

/// The most functions of a script that are distinguished.
const MAX_FUNCTIONS: usize = 100_000;
/// The most function names that are followed, and the most calls of one name.
const MAX_NAMES: usize = 200;
const MAX_CALLS: usize = 100;
/// The longest chain of calls that is followed.
const MAX_STEPS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FunctionId {
    TopLevel,
    Known(usize),
    /// A function beyond the limit.
    Unknown,
}

/// The location of a token: its function, and whether a `try` encloses it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeLocation {
    pub function: FunctionId,
    /// Whether a `try` of the same function encloses it.
    pub is_tried: bool,
}

#[derive(Debug, Clone, Copy)]
struct Function<'a> {
    name: Option<&'a str>,
    /// The call site, where the function is invoked immediately: `(() => {})()`.
    called_at: Option<CodeLocation>,
}

#[derive(Debug, Default)]
pub(super) struct FunctionTable<'a> {
    functions: Vec<Function<'a>>,
}

impl<'a> FunctionTable<'a> {
    pub(super) fn add(&mut self, name: Option<&'a str>) -> FunctionId {
        if self.functions.len() == MAX_FUNCTIONS {
            return FunctionId::Unknown;
        }
        self.functions.push(Function {
            name,
            called_at: None,
        });
        FunctionId::Known(self.functions.len() - 1)
    }

    /// Records that a function is invoked immediately at `location`.
    pub(super) fn call(&mut self, function: FunctionId, location: CodeLocation) {
        if let FunctionId::Known(id) = function
            && let Some(function) = self.functions.get_mut(id)
        {
            function.called_at = Some(location);
        }
    }

    fn get(&self, function: FunctionId) -> Option<&Function<'a>> {
        match function {
            FunctionId::Known(id) => self.functions.get(id),
            FunctionId::TopLevel | FunctionId::Unknown => None,
        }
    }

    /// The name of the function that encloses a location, where immediately invoked functions are transparent.
    fn name_around(&self, mut location: CodeLocation) -> Option<&'a str> {
        loop {
            let function = self.get(location.function)?;
            match function.called_at {
                Some(outer) => location = outer,
                None => return function.name,
            }
        }
    }
}

/// A call by name; `is_plain` says that it is a statement of its own, outside of branches and loops.
#[derive(Debug, Clone, Copy)]
struct NamedCall {
    location: CodeLocation,
    is_plain: bool,
}

/// How a script uses one function name.
#[derive(Debug, Default)]
struct NameUses {
    declarations: usize,
    calls: Vec<NamedCall>,
    /// Whether the name is passed on, exported, or called too often to be followed.
    is_ambiguous: bool,
}

/// Answers for a location whether it is certain to be reached, and whether an error there is caught.
pub(super) struct CallGraph<'a> {
    functions: FunctionTable<'a>,
    names: Vec<(&'a str, NameUses)>,
}

impl<'a> CallGraph<'a> {
    /// Tokenizes the script a second time, for the calls of the functions that enclose these locations.
    pub(super) fn new(
        script: &'a str,
        functions: FunctionTable<'a>,
        locations: &[CodeLocation],
    ) -> Self {
        let mut names: Vec<(&str, NameUses)> = Vec::new();
        for name in locations
            .iter()
            .filter_map(|location| functions.name_around(*location))
        {
            if names.len() < MAX_NAMES && !names.iter().any(|(known, _)| *known == name) {
                names.push((name, NameUses::default()));
            }
        }
        if !names.is_empty() {
            collect(script, &mut names);
        }
        Self { functions, names }
    }

    /// Whether the code at a location runs as soon as the script does. Branches at the top level count as executed.
    pub(super) fn is_certain(&self, location: CodeLocation) -> bool {
        self.reaches(location, 0)
    }

    fn reaches(&self, location: CodeLocation, steps: usize) -> bool {
        if location.function == FunctionId::TopLevel {
            return true;
        }
        let Some(function) = self.functions.get(location.function) else {
            return false;
        };
        if let Some(outer) = function.called_at {
            return self.reaches(outer, steps);
        }
        let runs = |call: &NamedCall| call.is_plain && self.reaches(call.location, steps + 1);
        steps < MAX_STEPS && self.calls_of(function).iter().any(runs)
    }

    /// Whether a `try` encloses the location, or encloses every call of its function.
    pub(super) fn is_tried(&self, location: CodeLocation) -> bool {
        self.catches(location, 0)
    }

    fn catches(&self, location: CodeLocation, steps: usize) -> bool {
        if location.is_tried {
            return true;
        }
        let Some(function) = self.functions.get(location.function) else {
            return false;
        };
        if let Some(outer) = function.called_at {
            return self.catches(outer, steps);
        }
        let calls = self.calls_of(function);
        let is_caught = |call: &NamedCall| self.catches(call.location, steps + 1);
        steps < MAX_STEPS && !calls.is_empty() && calls.iter().all(is_caught)
    }

    /// Every call of a function; empty where its name is ambiguous.
    fn calls_of(&self, function: &Function) -> &[NamedCall] {
        let uses = function.name.and_then(|name| {
            let found = self.names.iter().find(|(known, _)| *known == name);
            found.map(|(_, uses)| uses)
        });
        match uses {
            Some(uses) if uses.declarations == 1 && !uses.is_ambiguous => &uses.calls,
            _ => &[],
        }
    }
}

fn collect<'a>(script: &'a str, names: &mut [(&'a str, NameUses)]) {
    let mut lexer = JsLexer::new(script);
    while let Some(token) = lexer.next_token() {
        let JsToken::Word(word) = token else { continue };
        let Some((_, uses)) = names.iter_mut().find(|(name, _)| *name == word) else {
            continue;
        };
        let call = NamedCall {
            location: lexer.location(),
            is_plain: lexer.begins_plain_statement(),
        };
        let rest = lexer.rest();
        let is_assigned =
            rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>");
        match lexer.before() {
            [.., JsToken::Mark(b'.')] => {}
            [.., JsToken::Mark(b'{' | b',')] if rest.starts_with(':') => {}
            [.., JsToken::Word("function")]
            | [.., JsToken::Word("function"), JsToken::Mark(b'*')] => {
                uses.declarations += 1;
            }
            _ if is_assigned => uses.declarations += 1,
            _ if rest.starts_with('(') && uses.calls.len() < MAX_CALLS => uses.calls.push(call),
            _ => uses.is_ambiguous = true,
        }
    }
}
