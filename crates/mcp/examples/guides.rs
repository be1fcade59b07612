//! Runs the programs that the guides print: `cargo run -p docent-mcp --example guides -- kit`.
//!
//! The files are included verbatim, and a test compares each with the code block of its page.

type ExampleResult = Result<(), Box<dyn std::error::Error>>;

/// The program of `docs/kit.md`, the quick start.
mod kit {
    include!("guides/kit.rs");

    pub(crate) fn run() -> super::ExampleResult {
        main()
    }
}

/// The program of `docs/guides/app.md`, the tutorial of an app.
mod app {
    include!("guides/app.rs");

    pub(crate) fn run() -> super::ExampleResult {
        main()
    }
}

/// The program of `docs/apps.md`, an app with a widget.
mod apps {
    include!("guides/apps.rs");

    /// The page only builds the app, so this function serves it.
    #[tokio::main]
    pub(crate) async fn run() -> super::ExampleResult {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:8126").await?;
        let serving =
            docent_mcp::http::serve(app()?, Default::default(), listener, Default::default());
        Ok(serving.await?)
    }
}

fn main() -> ExampleResult {
    match std::env::args().nth(1).as_deref() {
        Some("kit") => kit::run(),
        Some("app") => app::run(),
        Some("apps") => apps::run(),
        _ => Err("usage: guides kit|app|apps".into()),
    }
}
