//! Counts the documents of a query by date range, in one walk over the distinct days.

use super::EmbeddedInner;
use super::listing::each_term;
use crate::calendar::Day;
use crate::engine::MAX_DATE_RANGES;
use crate::error::SearchError;
use crate::facet_terms;
use crate::filter::FieldTest;
use crate::pipeline;
use crate::query::Query;

impl EmbeddedInner {
    pub(super) fn count_date_ranges(
        &self,
        query: &Query,
        field: &str,
        date_ranges: &[(Day, Day)],
    ) -> Result<Vec<u64>, SearchError> {
        let snapshot = self.snapshot();
        let set = self.with_view(&snapshot, query, |view| pipeline::matches(view, query))?;
        let mut counts = vec![0; date_ranges.len().min(MAX_DATE_RANGES)];
        let every = FieldTest::Date {
            from: None,
            to: None,
        };
        for range in facet_terms::ranges(field, &every) {
            for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
                let walked = each_term(segment, &self.fields, Some(&range), |term, docs| {
                    let day = facet_terms::display_value(term).and_then(|day| Day::parse(&day));
                    let Some(day) = day else { return };
                    let within = |(from, to): &(Day, Day)| *from <= day && day <= *to;
                    let ranges_with_counts = date_ranges.iter().zip(&mut counts);
                    let mut hit: Vec<&mut u64> = ranges_with_counts
                        .filter(|(date_range, _)| within(date_range))
                        .map(|(_, count)| count)
                        .collect();
                    if hit.is_empty() {
                        return;
                    }
                    let count_in_range =
                        docs.filter(|doc| set.contains(ordinal, *doc)).count() as u64;
                    hit.iter_mut().for_each(|count| **count += count_in_range);
                });
                walked.map_err(|source| self.index_error(source))?;
            }
        }
        Ok(counts)
    }
}
