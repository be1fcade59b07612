//! `docent search`: asks the index of a folder, here in the terminal.

use std::process::ExitCode;
use std::sync::Arc;

use docent_search::{Embedded, Error};
use serde_json::json;

use super::Desk;
use crate::knowledge::Knowledge;
use crate::output;
use crate::problem::Problem;
use crate::tools::search::{Found, Search};

pub(super) fn run(desk: &Desk, query: &str, as_json: bool) -> Result<ExitCode, Problem> {
    let engine = Embedded::open_read_only(desk.place.existing()).map_err(|error| match error {
        Error::Missing { .. } => {
            let folder = desk.folder.display();
            Problem::failed(format!("`{folder}` is not indexed"))
                .hint(format!("index it with `docent index {folder}`"))
        }
        other => other.into(),
    })?;
    let knowledge = Knowledge::new(Arc::new(engine), &desk.settings, &desk.name());
    let search = Search(Arc::new(knowledge));
    let output = super::runtime()?.block_on(search.results(query))?;
    if as_json {
        output::json(&json!(output))?;
    } else if output.results.is_empty() {
        output::say("no results");
    } else {
        let blocks: Vec<_> = (1..)
            .zip(&output.results)
            .map(|(n, found)| block(n, found))
            .collect();
        output::data(&blocks.join("\n\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn block(number: usize, found: &Found) -> String {
    let Found {
        id,
        title,
        url,
        text,
    } = found;
    let lines = [format!("id: {id}"), format!("url: {url}"), text.clone()];
    let full = lines
        .iter()
        .filter(|line| !line.is_empty() && *line != "url: ");
    let lines: Vec<_> = full.map(|line| format!("\n    {line}")).collect();
    format!("{number:>2}. {title}{}", lines.concat())
}
