//! Stem cache: a direct-mapped cache from words to their stems.
//!
//! Stemming is most of the cost of analysis. About half the words of a text repeat within it, and nearly all words
//! of many texts repeat across them.

use super::language::Language;

/// The longest word and stem that are cached, in bytes; every slot reserves as much.
const MAX_BYTES: usize = 24;

#[derive(Clone, Copy, Default)]
struct StemSlot {
    word: [u8; MAX_BYTES],
    stem: [u8; MAX_BYTES],
    word_bytes: u8,
    stem_bytes: u8,
    language: Language,
}

/// A fixed number of slots, addressed by a hash (FNV-1a) of the word. A new word evicts whatever its slot held.
#[derive(Clone)]
pub(crate) struct StemCache(Vec<StemSlot>);

impl StemCache {
    /// A cache for one text: 256 slots, 13 kB.
    pub(crate) fn for_a_text() -> Self {
        Self(vec![StemSlot::default(); 256])
    }

    /// A cache for many texts one after the other: 4096 slots, 200 kB.
    pub(crate) fn for_many_texts() -> Self {
        Self(vec![StemSlot::default(); 4096])
    }

    /// The cached stem of a word; `None` on a miss and for the empty word.
    pub(super) fn get(&self, language: Language, word: &str) -> Option<&str> {
        let slot = self.0.get(self.slot_index(word))?;
        let cached_word = slot.word.get(..usize::from(slot.word_bytes))?;
        if cached_word != word.as_bytes() || cached_word.is_empty() || slot.language != language {
            return None;
        }
        let stem = slot.stem.get(..usize::from(slot.stem_bytes))?;
        std::str::from_utf8(stem).ok()
    }

    pub(super) fn put(&mut self, language: Language, word: &str, stem: &str) {
        let index = self.slot_index(word);
        let Some(slot) = self.0.get_mut(index) else {
            return;
        };
        let room = (slot.word.get_mut(..word.len())).zip(slot.stem.get_mut(..stem.len()));
        let sizes = u8::try_from(word.len())
            .ok()
            .zip(u8::try_from(stem.len()).ok());
        if let (Some((kept_word, kept_stem)), Some(sizes)) = (room, sizes) {
            kept_word.copy_from_slice(word.as_bytes());
            kept_stem.copy_from_slice(stem.as_bytes());
            (slot.word_bytes, slot.stem_bytes) = sizes;
            slot.language = language;
        }
    }

    fn slot_index(&self, word: &str) -> usize {
        let hash = word.bytes().fold(0x811C_9DC5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        // The number of slots is a power of two, so this masks instead of dividing.
        (hash ^ (hash >> 15)) as usize & (self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSSIAN: Language = Language::Russian;

    #[test]
    fn the_last_entry_is_found() {
        for mut cache in [StemCache::for_a_text(), StemCache::for_many_texts()] {
            let slots = cache.0.len();
            assert!(slots.is_power_of_two());
            for number in 0..2 * slots {
                let (word, stem) = (format!("слово{number}"), format!("сл{number}"));
                cache.put(RUSSIAN, &word, &stem);
                assert_eq!(cache.get(RUSSIAN, &word), Some(stem.as_str()));
                assert_eq!(cache.get(Language::Ukrainian, &word), None);
            }
            assert_eq!(cache.0.len(), slots);
            assert_eq!(cache.get(RUSSIAN, "other"), None);
            assert_eq!(cache.get(Language::English, ""), None);
        }
    }

    #[test]
    fn oversized_words_are_not_cached() {
        let mut cache = StemCache::for_a_text();
        let longest = "x".repeat(MAX_BYTES);
        cache.put(RUSSIAN, &longest, &longest);
        assert_eq!(cache.get(RUSSIAN, &longest), Some(longest.as_str()));
        let longer = "x".repeat(MAX_BYTES + 1);
        cache.put(RUSSIAN, &longer, "x");
        assert_eq!(cache.get(RUSSIAN, &longer), None);
        cache.put(RUSSIAN, "x", &longer);
        assert_eq!(cache.get(RUSSIAN, "x"), None);
    }
}
