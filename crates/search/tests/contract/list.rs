//! The list of contract cases, in one place: a case that is added here runs on every engine.

/// Passes all cases to the macro `run` of a test binary, after the arguments that the macro wants first.
macro_rules! every_case {
    ($run:ident $($before:tt)*) => {
        $run! { $($before)*
            cases::starts_empty,
            spelling::slips_are_forgiven_and_beginnings_completed,
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
            generations::an_answer_shows_one_generation,
            cases::work_not_waited_for_is_not_begun,
            bombs::every_bomb_is_answered,
            languages::each_document_is_found_in_its_language,
            languages::silent_words_are_those_of_the_question,
            languages::words_side_by_side_are_found_in_every_language,
            languages::a_name_is_found_whole_and_in_parts,
            languages::a_part_of_unspaced_text_is_found,
            facts::filters_narrow,
            facts::a_filter_alone_lists_the_latest_first,
            facts::hits_can_be_in_the_order_of_days,
            facts::everything_is_counted,
            facts::days_are_counted_by_stretches,
            facts::the_catalog_names_the_fields,
            facts::hits_can_be_passed_over,
            facts::excerpts_come_when_asked_for,
            readers::each_reader_finds_and_counts_what_is_for_it,
            readers::each_reader_fetches_what_is_for_it,
            readers::each_reader_has_a_catalog_of_its_own,
            readers::lists_and_filters_are_of_what_is_seen,
            readers::slips_and_beginnings_are_of_what_is_seen,
            readers::hidden_documents_take_no_place_in_the_results,
            readers::readers_change_with_the_generation,
        }
    };
}

/// The same for the cases that need an embedding model.
macro_rules! every_case_with_a_model {
    ($run:ident $($before:tt)*) => {
        $run! { $($before)*
            meanings::words_count_in_what_only_meaning_finds_however_many_there_are,
            meanings::vectors_follow_the_words,
            meanings::a_document_in_a_language_the_model_does_not_know_is_found_by_words_alone,
            meanings::a_question_in_a_language_the_model_does_not_know_is_answered_by_words_alone,
            meanings::each_passage_of_a_mixed_document_counts_in_its_own_language,
            meanings::a_document_without_words_needs_no_vectors,
            meanings::a_far_page_is_empty_and_no_failure,
            meanings::meanings_find_what_words_do_not,
            meanings::both_halves_together_come_first,
            meanings::deleted_documents_are_not_found_by_vector_search,
            meanings::a_hit_shows_the_passage_that_is_near,
            readers::meanings_are_of_what_is_seen,
        }
    };
}
