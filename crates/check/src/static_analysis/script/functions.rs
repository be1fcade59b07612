//! The functions of a script, and what is known of when they run.
//!
//! A bundle carries functions that nothing calls, so a call in a function is certain only where the function itself is
//! certain to run: it is called where it stands, or by its name in a plain statement that is certain to run. A name
//! counts only where it can mean one thing: the script declares it once and does nothing else with it but call it.

use super::lexer::{JsLexer, JsToken};

/// The most functions of a script that are told apart.
const MAX_FUNCTIONS: usize = 100_000;
/// The most names that are followed, and the most calls of one.
const MAX_NAMES: usize = 200;
const MAX_CALLS: usize = 100;
/// The most calls that are followed from one place to the next.
const MAX_STEPS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FunctionId {
    TopLevel,
    Known(usize),
    /// One of more functions than are told apart.
    Unknown,
}

/// A place in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub function: FunctionId,
    /// Whether a `try` stands around it in the same function.
    pub is_tried: bool,
}

#[derive(Debug, Clone, Copy)]
struct Function<'a> {
    name: Option<&'a str>,
    /// Where it is called, if that is where it stands: `(() => {})()`.
    called_at: Option<Site>,
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

    /// A function is called where it stands.
    pub(super) fn call(&mut self, function: FunctionId, site: Site) {
        if let FunctionId::Known(id) = function
            && let Some(function) = self.functions.get_mut(id)
        {
            function.called_at = Some(site);
        }
    }

    fn get(&self, function: FunctionId) -> Option<&Function<'a>> {
        match function {
            FunctionId::Known(id) => self.functions.get(id),
            FunctionId::TopLevel | FunctionId::Unknown => None,
        }
    }

    /// The name by which the function around a place is called, unless it is called where it stands.
    fn name_around(&self, mut site: Site) -> Option<&'a str> {
        loop {
            let function = self.get(site.function)?;
            match function.called_at {
                Some(outer) => site = outer,
                None => return function.name,
            }
        }
    }
}

/// A call by name.
#[derive(Debug, Clone, Copy)]
struct NamedCall {
    site: Site,
    is_plain: bool,
}

/// What a script does with one name.
#[derive(Debug, Default)]
struct NameUses {
    declarations: usize,
    calls: Vec<NamedCall>,
    /// It is passed on, assigned, exported, or called too often to be followed.
    is_ambiguous: bool,
}

/// Says of places in a script whether they are certain to be reached, and whether an error there is caught.
pub(super) struct CallGraph<'a> {
    functions: FunctionTable<'a>,
    names: Vec<(&'a str, NameUses)>,
}

impl<'a> CallGraph<'a> {
    /// Reads the script once more for the names of the functions around these places.
    pub(super) fn new(script: &'a str, functions: FunctionTable<'a>, sites: &[Site]) -> Self {
        let mut names: Vec<(&str, NameUses)> = Vec::new();
        for name in sites.iter().filter_map(|site| functions.name_around(*site)) {
            if names.len() < MAX_NAMES && !names.iter().any(|(known, _)| *known == name) {
                names.push((name, NameUses::default()));
            }
        }
        if !names.is_empty() {
            collect(script, &mut names);
        }
        Self { functions, names }
    }

    /// Whether code there runs as soon as the script does. Branches at the top level count as run.
    pub(super) fn is_certain(&self, site: Site) -> bool {
        self.reaches(site, 0)
    }

    fn reaches(&self, site: Site, steps: usize) -> bool {
        if site.function == FunctionId::TopLevel {
            return true;
        }
        let Some(function) = self.functions.get(site.function) else {
            return false;
        };
        if let Some(outer) = function.called_at {
            return self.reaches(outer, steps);
        }
        let runs = |call: &NamedCall| call.is_plain && self.reaches(call.site, steps + 1);
        steps < MAX_STEPS && self.calls_of(function).iter().any(runs)
    }

    /// Whether a `try` stands around the place, or around every call of its function.
    pub(super) fn is_tried(&self, site: Site) -> bool {
        self.catches(site, 0)
    }

    fn catches(&self, site: Site, steps: usize) -> bool {
        if site.is_tried {
            return true;
        }
        let Some(function) = self.functions.get(site.function) else {
            return false;
        };
        if let Some(outer) = function.called_at {
            return self.catches(outer, steps);
        }
        let calls = self.calls_of(function);
        let is_caught = |call: &NamedCall| self.catches(call.site, steps + 1);
        steps < MAX_STEPS && !calls.is_empty() && calls.iter().all(is_caught)
    }

    /// Every call of a function; none where its name may mean something else.
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
            site: lexer.site(),
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
