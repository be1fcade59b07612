//! Adapts our tokenizer to the interface that tantivy indexes with.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};

use crate::analysis::{AnalysisMode, Language, StemCache, TermStream};

/// The name under which the schema refers to this tokenizer.
pub(super) const NAME: &str = "docent";

/// The registry in which tantivy finds our tokenizer.
pub(super) fn manager() -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(
        NAME,
        TextAnalyzer::from(TermTokenizer(StemCache::for_many_texts())),
    );
    manager
}

/// The character that marks the first language; the others follow. It is from Unicode's private use area, and
/// is only interpreted at the start of a text, where this module has put it.
const FIRST_MARK: u32 = 0xE000;

/// Prefixes a text with a character that tells the tokenizer its language. tantivy passes the tokenizer one
/// text after the other and nothing else; a list of tokens in place of the text would take many times its
/// memory.
pub(super) fn with_language_mark(language: Language, text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + 3);
    marked.extend(char::from_u32(FIRST_MARK + language as u32));
    marked.push_str(text);
    marked
}

/// Splits a marked text into its language and the text itself.
fn split_language_mark(text: &str) -> (Language, &str) {
    let mut chars = text.chars();
    let mark = chars
        .next()
        .and_then(|mark| u32::from(mark).checked_sub(FIRST_MARK));
    let language = mark.and_then(|place| Language::ALL.get(place as usize));
    match language {
        Some(language) => (*language, chars.as_str()),
        None => (Language::default(), text),
    }
}

/// Tokenizes one text after the other; the stem cache lives on from one to the next.
#[derive(Clone)]
struct TermTokenizer(StemCache);

impl Tokenizer for TermTokenizer {
    type TokenStream<'a> = TermTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermTokenStream<'a> {
        let (language, text) = split_language_mark(text);
        TermTokenStream {
            terms: TermStream::new(text, AnalysisMode::Index, language)
                .with_stem_cache(&mut self.0),
            token: Token::default(),
        }
    }
}

struct TermTokenStream<'a> {
    terms: TermStream<'a>,
    token: Token,
}

impl TokenStream for TermTokenStream<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_and_no_other() {
        for language in Language::ALL {
            for text in ["", "ferry", "\u{E001}ferry"] {
                assert_eq!(
                    split_language_mark(&with_language_mark(language, text)),
                    (language, text)
                );
            }
        }
        assert_eq!(split_language_mark("ferry"), (Language::English, "ferry"));
    }

    #[test]
    fn a_text_is_cut_in_its_language() {
        let mut analyzer = TextAnalyzer::from(TermTokenizer(StemCache::for_many_texts()));
        let mut terms = |language| {
            let text = with_language_mark(language, "organisation");
            let mut stream = analyzer.token_stream(&text);
            let mut terms = Vec::new();
            while let Some(token) = stream.next() {
                terms.push(token.text.clone());
            }
            terms
        };
        assert_eq!(terms(Language::English), ["organis"]);
        assert_eq!(terms(Language::German), ["organisation"]);
        assert_eq!(terms(Language::English), ["organis"]);
    }
}
