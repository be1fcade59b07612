//! Migration between index formats: an older index beside this one goes on answering the programs that know
//! it until this one is complete, and is removed when none of them is left.

use std::sync::Arc;
use std::time::Instant;

use super::ClusterInner;
use super::collections;
use super::head::IndexHead;
use super::lease::WriterLease;
use super::request::RequestDeadline;
use crate::error::SearchError;

/// How many grace periods an older writer must be without a heartbeat to be considered gone. Removing its index too
/// early would take it from programs that still answer with it, and too late only costs disk space. So the wait is
/// several times as long as any pause of a living writer.
const SILENCE_FACTOR: u32 = 3;

impl ClusterInner {
    /// The formats older than this one that exist on the cluster.
    fn older_formats(&self, deadline: RequestDeadline) -> Result<Vec<u32>, SearchError> {
        let all = collections::list_all(&self.nodes, deadline)?;
        let formats = all.iter().filter_map(|name| self.names.format_of(name));
        Ok(formats.filter(|one| *one < self.names.format).collect())
    }

    /// How many documents the newest of them has; `None` when there is none.
    pub(super) fn documents_to_migrate(
        &self,
        deadline: RequestDeadline,
    ) -> Result<Option<u64>, SearchError> {
        let Some(format) = self.older_formats(deadline)?.into_iter().max() else {
            return Ok(None);
        };
        let summary =
            IndexHead::read_summary(&self.nodes, &self.names.with_format(format), deadline)?;
        Ok(summary
            .map(|summary| summary.documents)
            .filter(|count| *count > 0))
    }

    /// Replaces an older format, now that every document is in this one, and removes those whose writers have
    /// been silent, one collection at a time. Every server of an older program tries to become the writer, so
    /// where there is no heartbeat there is no such server.
    pub(super) fn finish_migration(
        self: &Arc<Self>,
        lease: &mut WriterLease,
        head: IndexHead,
    ) -> Result<IndexHead, SearchError> {
        let mut head = head;
        if head.documents_to_migrate.is_some() {
            let next = IndexHead {
                documents_to_migrate: None,
                ..head.clone()
            };
            if !head.replace(&next, &self.nodes, &self.names, self.write_deadline())? {
                return Err(self.locked_error());
            }
            self.publish_head(next.clone(), Instant::now());
            self.update_aliases(&next);
            head = next;
        }
        for format in self.older_formats(self.write_deadline())? {
            if let Err(error) = self.remove_old_format(lease, format) {
                tracing::warn!(%error, format, "could not remove an older index format, retried later");
            }
        }
        Ok(head)
    }

    fn remove_old_format(&self, lease: &mut WriterLease, format: u32) -> Result<(), SearchError> {
        let names = self.names.with_format(format);
        let summary = IndexHead::read_summary(&self.nodes, &names, self.write_deadline())?
            .unwrap_or_default();
        let silent = match lease.older.get(&format) {
            Some((seen, since)) if *seen == summary => since.elapsed(),
            _ => {
                lease.older.insert(format, (summary, Instant::now()));
                return Ok(());
            }
        };
        if silent < self.settings.garbage_collection_grace * SILENCE_FACTOR {
            return Ok(());
        }
        let all = collections::list_all(&self.nodes, self.write_deadline())?;
        let passages = all.iter().filter(|name| names.model_of(name).is_some());
        // The head goes last: as long as it exists, the rest is looked for. And one collection at a time: a
        // node that removes several at once may answer nobody meanwhile.
        let rest = [&names.terms, &names.documents, &names.head];
        let next = passages.chain(rest).find(|name| all.contains(name));
        if let Some(name) = next {
            collections::remove(&self.nodes, name, self.write_deadline())?;
            tracing::info!(
                collection = name,
                "removed a collection of an older index format"
            );
        }
        Ok(())
    }
}
