//! Assembles the MCP app from a knowledge base: tools, prompts, resources, widgets and the server instructions that
//! hosts put into the model's context.

use std::sync::Arc;

use docent_mcp::{
    App, AppBuilder, BuildError, ContentBlock, Context, DualFormat, Failure, Prompt, PromptMessage,
    Resource, ResourceBody, TextForm, Widget, WidgetPermission,
};

use crate::engine_settings;
use crate::fields;
use crate::knowledge_base::KnowledgeBase;
use crate::tools::fetch::FetchTool;
use crate::tools::find::FindTool;
use crate::tools::list_fields::ListFieldsTool;
use crate::tools::record::RecordTool;
use crate::tools::search::SearchTool;
use crate::tools::show_document::{self, ShowDocumentTool};
use crate::tools::show_results::{self, ShowResultsTool};

/// URI of the resource with the overview of the corpus.
pub const OVERVIEW: &str = "docent://corpus";

/// Builds the app that serves a knowledge base.
pub fn app(
    knowledge: &Arc<KnowledgeBase>,
    dual: DualFormat,
    text: TextForm,
) -> Result<App, BuildError> {
    builder(knowledge, dual, text).build()
}

/// Returns the app before validation, so that a server can still register observers such as the audit log.
pub fn builder(knowledge: &Arc<KnowledgeBase>, dual: DualFormat, text: TextForm) -> AppBuilder {
    let mut app = App::builder("docent", env!("CARGO_PKG_VERSION"))
        .title(&knowledge.title)
        .instructions(instructions(knowledge))
        .dual_format(dual)
        .text_form(text)
        .explain(engine_settings::explain)
        .tool(SearchTool(knowledge.clone()))
        .tool(FetchTool(knowledge.clone()));
    if knowledge.find.enabled {
        app = app.tool(FindTool(knowledge.clone()));
    }
    if let Some(record) = RecordTool::of(knowledge) {
        app = app.tool(record);
    }
    if knowledge.widgets.enabled {
        app = show(app, knowledge);
    }
    app.tool(ListFieldsTool(knowledge.clone()))
        .prompt(research(knowledge))
        .resource(overview(knowledge))
        .resource_template(fields::template(knowledge))
}

/// Locales that the widgets are translated into; they must match widgets/src/strings.ts.
const LOCALES: [&str; 6] = ["en", "de", "fr", "es", "ja", "zh"];

/// Registers the tools that render widgets, and the widgets themselves. Every client gets them: a tool list that
/// differed by client could not be cached, and a client without widgets reads the text of the result instead.
fn show(app: AppBuilder, knowledge: &Arc<KnowledgeBase>) -> AppBuilder {
    let widgets = [
        (
            show_results::WIDGET,
            "Search results",
            "Cards of search results with their passages, filters and a timeline. The user can narrow them \
             down, read the documents and ask about them.",
            include_str!("../assets/widgets/results.html"),
        ),
        (
            show_document::WIDGET,
            "Document",
            "A reader that shows a document at one passage, with matches marked, an outline and a citation \
             to copy.",
            include_str!("../assets/widgets/document.html"),
        ),
    ];
    let app = app.locales(LOCALES);
    let app = widgets
        .into_iter()
        .fold(app, |app, (name, title, about, html)| {
            let mut widget = Widget::new(name, title, about, html)
                .border(true)
                .permission(WidgetPermission::ClipboardWrite);
            for origin in knowledge.origins() {
                widget = widget.redirect_domain(origin);
            }
            if let Some(origin) = &knowledge.widgets.domain {
                widget = widget.chatgpt_domain(origin);
            }
            app.widget(widget)
        });
    app.tool(ShowResultsTool(knowledge.clone()))
        .tool(ShowDocumentTool(knowledge.clone()))
}

/// Server instructions for the model. The first 512 characters make sense alone, because ChatGPT may truncate the rest.
fn instructions(knowledge: &KnowledgeBase) -> String {
    let about = knowledge
        .description
        .as_ref()
        .map(|text| format!("\n\n{text}"))
        .unwrap_or_default();
    let narrow = if knowledge.find.enabled {
        format!(
            " To narrow by field or date, or to count, call {}; list_fields lists the fields.",
            knowledge.find.name
        )
    } else {
        String::new()
    };
    let show = if knowledge.widgets.enabled {
        " When the user wants to look at results or at a document, call show_results or show_document."
    } else {
        ""
    };
    format!(
        "Documents: {}. First call search with words from the question; then call fetch with \
         the id of each result worth reading. Answer from what fetch returned and cite the url \
         of every document used. If nothing fits, search again with other words, then say that \
         the documents do not tell.{narrow}{show}{about}",
        knowledge.title
    )
}

fn research(knowledge: &Arc<KnowledgeBase>) -> Prompt {
    let (title, shared) = (knowledge.title.clone(), knowledge.clone());
    let render = move |arguments: docent_mcp::PromptArguments, _| {
        let given = |name: &str| arguments.get(name).map(|text| text.trim());
        let question = given("question").unwrap_or_default();
        let filter = given("filter").filter(|filter| !filter.is_empty());
        let filter = filter.map(|filter| {
            format!(" Put `{filter}` into the query of each search: only such documents count.")
        });
        let filter = filter.unwrap_or_default();
        let text = format!(
            "Answer this question from the documents of {title}:\n\n{question}\n\n\
             Search several times with different words.{filter} Fetch the documents that matter and read \
             them before you answer. Quote the sentences your answer rests on, name who said \
             them and when where that is known, and cite the url of each document. Where \
             documents disagree, say so. If they do not answer the question, say that."
        );
        std::future::ready(Ok::<_, Failure>(vec![PromptMessage::user(
            ContentBlock::text(text),
        )]))
    };
    let about = "Answers a question from the documents, with quotes and links.";
    Prompt::new("research", "Research a question", about, render)
        .required("question", "What you want to know.")
        .optional(
            "filter",
            "Only documents that pass this, such as `date:2024`.",
        )
        .complete("filter", fields::completer(shared, fields::filters))
}

fn overview(knowledge: &Arc<KnowledgeBase>) -> Resource {
    let shared = knowledge.clone();
    let read = move |context: Context| {
        let knowledge = shared.clone();
        async move {
            let reader = knowledge.reader(context.caller());
            Ok(ResourceBody::Text(knowledge.overview(&reader).await?))
        }
    };
    Resource::new(OVERVIEW, "corpus", "text/markdown", read)
        .title(format!("About {}", knowledge.title))
        .description("How many documents there are, which fields they have and how to search them.")
}

#[cfg(test)]
mod tests {
    use docent_search::MemoryEngine;

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn the_start_of_the_instructions_stands_alone() {
        let settings = Settings {
            // The longest title that settings allow.
            title: Some("ü".repeat(120)),
            description: Some("About ships".to_owned()),
            ..Settings::default()
        };
        let knowledge = KnowledgeBase::new(Arc::new(MemoryEngine::new()), &settings, "folder");
        let text = instructions(&knowledge);
        let start: String = text.chars().take(512).collect();
        assert!(start.contains("do not tell."), "{start}");
        assert!(text.ends_with("\n\nAbout ships."));
    }
}
