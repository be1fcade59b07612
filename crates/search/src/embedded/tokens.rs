//! Our terms into the tokens that tantivy writes to its index.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};

use crate::analysis::{Purpose, Terms};

/// The name under which the schema asks for this tokenizer.
pub(super) const NAME: &str = "docent";

/// What tantivy finds our tokenizer in.
pub(super) fn manager() -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(NAME, TextAnalyzer::from(Cutter));
    manager
}

#[derive(Clone)]
struct Cutter;

impl Tokenizer for Cutter {
    type TokenStream<'a> = Tokens<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens<'a> {
        Tokens {
            terms: Terms::new(text, Purpose::Index),
            token: Token::default(),
        }
    }
}

struct Tokens<'a> {
    terms: Terms<'a>,
    token: Token,
}

impl TokenStream for Tokens<'_> {
    fn advance(&mut self) -> bool {
        let Some(term) = self.terms.advance() else {
            return false;
        };
        self.token.text.clear();
        self.token.text.push_str(term.text);
        self.token.position = term.position;
        self.token.offset_from = term.span.start;
        self.token.offset_to = term.span.end;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
