//! One suite that every engine passes, and what only the engine on disk has to pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod bombs;
mod cases;
mod disk;
mod properties;
mod shelf;

/// Runs each case on a fresh engine of every kind.
macro_rules! contract {
    ($($module:ident :: $case:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $case() {
                crate::$module::$case(&docent_search::Memory::new()).await;
            })+
        }

        mod embedded {
            $(#[tokio::test]
            async fn $case() {
                let dir = tempfile::tempdir().unwrap();
                crate::$module::$case(&docent_search::Embedded::open(dir.path()).unwrap()).await;
            })+
        }
    };
}

contract![
    cases::starts_empty,
    cases::finds_what_was_put,
    cases::puts_replace,
    cases::removes_forget,
    cases::a_batch_applies_in_its_order,
    cases::a_refused_batch_changes_nothing,
    cases::a_batch_without_changes_makes_no_generation,
    cases::generations_count_up,
    cases::a_query_without_words_finds_nothing,
    cases::any_word_is_enough,
    cases::forms_of_a_word_are_one_word,
    cases::accents_do_not_matter,
    cases::words_that_say_nothing_do_not_count,
    cases::scripts_without_spaces_are_found,
    cases::other_scripts_are_found,
    cases::text_and_list_fields_are_found,
    cases::a_title_match_comes_first,
    cases::a_phrase_comes_first,
    cases::rare_words_count_more,
    cases::more_of_the_query_comes_first,
    cases::each_document_is_one_hit,
    cases::equals_come_in_the_order_of_their_ids,
    cases::the_limit_holds,
    cases::scores_fall_within_their_range,
    cases::snippets_show_why_and_stay_short,
    cases::titles_of_hits_stay_short,
    cases::the_inventory_lists_everything,
    cases::fetch_gives_back_every_field,
    cases::fetch_of_nothing_is_nothing,
    cases::status_counts,
    cases::an_answer_shows_one_generation,
    cases::work_not_waited_for_is_not_begun,
    bombs::every_bomb_is_answered,
];
