//! The contract suite on a real Qdrant cluster of three, and what only an engine on a cluster has to pass.
//!
//! `conformance/qdrant/setup` brings the server. Without it there is nothing to test against, which is said;
//! `./test` sets `TEST_QDRANT`, so that there it cannot be missing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    unreachable_pub,
    dead_code,
    reason = "a test fails by panicking, in its helpers too; the cases are shared with another binary"
)]

#[path = "../contract/bombs.rs"]
mod bombs;
#[path = "../contract/cases.rs"]
mod cases;
#[path = "../contract/facts.rs"]
mod facts;
mod failing;
#[path = "../contract/languages.rs"]
mod languages;
#[path = "../contract/meanings.rs"]
mod meanings;
mod ranking;
#[path = "../contract/readers.rs"]
mod readers;
mod server;
#[path = "../contract/shelf.rs"]
mod shelf;
#[path = "../contract/spelling.rs"]
mod spelling;
mod writing;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use docent_search::{Cluster, ClusterSettings, Embedder};
use libtest_mimic::{Arguments, Trial};

use self::server::Servers;

/// Servers that are started when the first test asks for them.
#[derive(Clone)]
struct Shared(Arc<OnceLock<Servers>>, usize);

impl Shared {
    fn new(count: usize) -> Self {
        Self(Arc::default(), count)
    }

    fn get(&self) -> &Servers {
        self.0.get_or_init(|| Servers::start(self.1))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// An index without anything in it.
///
/// Making collections is agreed on by all nodes and takes seconds, so tests
/// share them, one after the other, and each empties them first.
struct Fresh {
    engine: Option<Cluster>,
    settings: ClusterSettings,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Fresh {
    /// The one that tests share.
    fn shared(servers: &Servers, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = servers.settings("shared");
        server::empty(&settings);
        let engine = Cluster::open(settings.clone(), embedder).unwrap();
        Self {
            engine: Some(engine),
            settings,
            _alone: alone,
        }
    }

    fn engine(&self) -> &Cluster {
        self.engine.as_ref().unwrap()
    }
}

macro_rules! contract {
    ($trials:ident, $servers:ident: $($module:ident :: $case:ident),+ $(,)?) => {
        $(let servers = $servers.clone();
        $trials.push(Trial::test(concat!("contract::", stringify!($case)), move || {
            let fresh = Fresh::shared(servers.get(), None);
            runtime().block_on($module::$case(fresh.engine()));
            Ok(())
        }));)+
    };
}

macro_rules! with_a_model {
    ($trials:ident, $servers:ident: $($module:ident :: $case:ident),+ $(,)?) => {
        $(let servers = $servers.clone();
        $trials.push(Trial::test(concat!("with_a_model::", stringify!($case)), move || {
            let fresh = Fresh::shared(servers.get(), Some(meanings::topics()));
            runtime().block_on($module::$case(fresh.engine()));
            Ok(())
        }));)+
    };
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if server::program().is_none() {
        eprintln!("skipped: there is no Qdrant to test against; run conformance/qdrant/setup");
        return ExitCode::SUCCESS;
    }
    let servers = Shared::new(3);
    let mut trials = Vec::new();
    contract![trials, servers:
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
        facts::the_catalog_names_the_fields,
        facts::hits_can_be_passed_over,
        facts::excerpts_come_when_asked_for,
        readers::each_reader_finds_and_counts_what_is_for_it,
        readers::each_reader_fetches_what_is_for_it,
        readers::each_reader_has_a_catalog_of_its_own,
        readers::lists_and_filters_are_of_what_is_seen,
        readers::slips_and_beginnings_are_of_what_is_seen,
        readers::what_is_not_seen_takes_no_place,
        readers::readers_change_with_the_generation,
    ];
    with_a_model![trials, servers:
        meanings::vectors_follow_the_words,
        meanings::a_far_page_is_empty_and_no_failure,
        meanings::meanings_find_what_words_do_not,
        meanings::both_halves_together_come_first,
        meanings::what_is_gone_is_not_found_by_meaning,
        meanings::a_hit_shows_the_passage_that_is_near,
        readers::meanings_are_of_what_is_seen,
    ];
    trials.extend(writing::trials(&servers));
    trials.push(ranking::trial(&servers));
    trials.extend(failing::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
