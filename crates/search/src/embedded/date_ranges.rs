//! How many documents of a query lie in each stretch of days, in one walk over the days that there are.

use super::EmbeddedInner;
use super::candidate_set;
use super::listing::each_term;
use crate::calendar::Day;
use crate::engine::MAX_DATE_RANGES;
use crate::error::SearchError;
use crate::facet_terms;
use crate::filter::FieldTest;
use crate::query::Query;
use crate::ranking;

impl EmbeddedInner {
    pub(super) fn count_date_ranges(
        &self,
        query: &Query,
        field: &str,
        stretches: &[(Day, Day)],
    ) -> Result<Vec<u64>, SearchError> {
        let snapshot = self.snapshot();
        let known = |source| self.index_error(source);
        let sight = snapshot.visibility(query.reader()).map_err(known)?;
        let asked = self.analyze_query(&snapshot, &sight, query)?;
        let forms = ranking::forms(&ranking::distinct(&asked.terms));
        let scene = (&*snapshot, &*sight);
        let allowed =
            candidate_set::allowed_documents(scene, &self.fields, query, &asked).map_err(known)?;
        let set = candidate_set::matching(&snapshot, &self.fields, &forms, allowed.as_deref());
        let set = set.map_err(known)?;
        let mut counts = vec![0; stretches.len().min(MAX_DATE_RANGES)];
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
                    let places = stretches.iter().zip(&mut counts);
                    let mut hit: Vec<&mut u64> = places
                        .filter(|(stretch, _)| within(stretch))
                        .map(|(_, count)| count)
                        .collect();
                    if hit.is_empty() {
                        return;
                    }
                    let here = docs.filter(|doc| set.contains(ordinal, *doc)).count() as u64;
                    hit.iter_mut().for_each(|count| **count += here);
                });
                walked.map_err(known)?;
            }
        }
        Ok(counts)
    }
}
