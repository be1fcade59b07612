//! The programs of the guides, to the letter: `cargo run -p docent-mcp --example guides -- kit`.
//! A test compares the files with the pages that show them.

type Ended = Result<(), Box<dyn std::error::Error>>;

/// `docs/kit.md`
mod kit {
    include!("guides/kit.rs");

    pub(crate) fn run() -> super::Ended {
        main()
    }
}

/// `docs/guides/app.md`
mod app {
    include!("guides/app.rs");

    pub(crate) fn run() -> super::Ended {
        main()
    }
}

/// `docs/apps.md`
mod apps {
    include!("guides/apps.rs");

    /// The page shows an app and leaves serving it to the others.
    #[tokio::main]
    pub(crate) async fn run() -> super::Ended {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:8126").await?;
        let serving =
            docent_mcp::http::serve(app()?, Default::default(), listener, Default::default());
        Ok(serving.await?)
    }
}

fn main() -> Ended {
    match std::env::args().nth(1).as_deref() {
        Some("kit") => kit::run(),
        Some("app") => app::run(),
        Some("apps") => apps::run(),
        _ => Err("usage: guides kit|app|apps".into()),
    }
}
