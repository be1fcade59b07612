//! A complete ChatGPT app: a task board with tools for the model, a widget that moves cards, a file upload and a tool
//! that requests sign-in.
//!
//! Run `cargo run -p docent-mcp --example kanban`, then `docent preview http://127.0.0.1:8123/mcp`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use docent_mcp::{
    Answer, App, AppBuilder, Context, Failure, FileParam, Security, Tool, ToolAnnotations,
    ToolAudience, ToolDescriptor, Widget, http,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Todo,
    Doing,
    Done,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Task {
    id: String,
    title: String,
    status: Status,
    /// Names of files that were handed in.
    files: Vec<String>,
}

/// The task store, shared by all tools. A real app would query its database instead.
#[derive(Clone)]
pub(crate) struct Tasks(Arc<Mutex<Vec<Task>>>);

impl Tasks {
    pub(crate) fn with_examples() -> Self {
        let rows = [
            ("t1", "Paint the lighthouse door", Status::Todo),
            ("t2", "Oil the lamp's bearing", Status::Doing),
            ("t3", "Count the gulls", Status::Done),
            ("t4", "Write to the harbour office", Status::Todo),
        ];
        let tasks = rows.map(|(id, title, status)| Task {
            id: id.to_owned(),
            title: title.to_owned(),
            status,
            files: Vec::new(),
        });
        Self(Arc::new(Mutex::new(tasks.into())))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `change` to one task and returns the result. An unknown id is a tool error with machine-readable data,
    /// so that the widget can tell it from other failures.
    fn change(&self, id: &str, change: impl FnOnce(&mut Task)) -> Result<Task, Failure> {
        let mut tasks = self.lock();
        let Some(task) = tasks.iter_mut().find(|task| task.id == id) else {
            return Err(Failure::caller(format!("there is no task `{id}`"))
                .hint("ids come from `list_tasks`")
                .data(json!({"error": "NOT_FOUND", "taskId": id})));
        };
        change(task);
        Ok(task.clone())
    }
}

/// The read-only tool: the model queries tasks with it, and the host mounts no widget. It asks an anonymous user to
/// sign in when they filter for their own tasks.
struct ListTasks(Tasks);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    /// Only tasks that stand there.
    status: Option<Status>,
    /// Only the user's own, for which they have to sign in.
    #[serde(default)]
    mine: bool,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    tasks: Vec<Task>,
}

impl Tool for ListTasks {
    type Input = Filter;
    type Output = Listed;

    fn descriptor(&self) -> ToolDescriptor {
        let text = "Use this when the user asks which tasks there are, or for a task's id.";
        ToolDescriptor::new("list_tasks", "List tasks", text, ToolAnnotations::READ_ONLY)
            .audience(ToolAudience::Everyone)
            .status("Looking at the board…", "Looked at the board")
            .security([Security::NoAuth, Security::oauth2(["tasks.read"])])
    }

    async fn call(&self, filter: Filter, cx: Context) -> Result<Answer<Listed>, Failure> {
        if filter.mine && cx.caller().is_anonymous() {
            let metadata = "https://tasks.example/.well-known/oauth-protected-resource/mcp";
            return Err(Failure::sign_in(metadata, "Sign in to see your own tasks"));
        }
        let mut tasks = self.0.lock().clone();
        tasks.retain(|task| filter.status.is_none_or(|status| task.status == status));
        Ok(Answer::new(Listed { tasks }))
    }
}

/// The display tool, and the only one with a widget. The model reads the number of tasks per column, and the widget
/// gets the tasks themselves in `_meta`.
struct BoardTool(Tasks);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BoardInput {}

#[derive(Serialize, JsonSchema)]
struct Board {
    columns: Vec<Column>,
}

#[derive(Serialize, JsonSchema)]
struct Column {
    id: Status,
    title: &'static str,
    count: usize,
}

impl Tool for BoardTool {
    type Input = BoardInput;
    type Output = Board;

    fn descriptor(&self) -> ToolDescriptor {
        let text = "Use this when the user wants to see the task board or move tasks on it.";
        ToolDescriptor::new(
            "show_board",
            "Show the board",
            text,
            ToolAnnotations::READ_ONLY,
        )
        .widget("board")
        .status("Loading board…", "Board ready")
    }

    async fn call(&self, _: BoardInput, context: Context) -> Result<Answer<Board>, Failure> {
        let tasks = self.0.lock().clone();
        let titles = match context.locale().as_str() {
            "de" => ["Offen", "In Arbeit", "Erledigt"],
            _ => ["To do", "In progress", "Done"],
        };
        let column = |(id, title)| Column {
            id,
            title,
            count: tasks.iter().filter(|task| task.status == id).count(),
        };
        let states = [Status::Todo, Status::Doing, Status::Done];
        let columns: Vec<Column> = states.into_iter().zip(titles).map(column).collect();
        let open = tasks
            .iter()
            .filter(|task| task.status != Status::Done)
            .count();
        Ok(Answer::new(Board { columns })
            .text(format!(
                "The user sees the board; {open} tasks are not done."
            ))
            .meta("tasks", json!(tasks)))
    }
}

/// The write tool that the widget calls when a user moves a card. It is hidden from the model.
struct UpdateTask(Tasks);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    id: String,
    status: Status,
}

impl Tool for UpdateTask {
    type Input = Update;
    type Output = Task;

    fn descriptor(&self) -> ToolDescriptor {
        let text = "Moves a task to another column.";
        ToolDescriptor::new("update_task", "Move a task", text, ToolAnnotations::WRITES)
            .audience(ToolAudience::Widgets)
    }

    async fn call(&self, update: Update, _: Context) -> Result<Answer<Task>, Failure> {
        let changed = self
            .0
            .change(&update.id, |task| task.status = update.status)?;
        Ok(Answer::new(changed))
    }
}

/// The upload tool: it attaches a file from the conversation to a task.
struct AttachFile(Tasks);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Attachment {
    /// The task to attach it to.
    id: String,
    /// The file.
    file: FileParam,
}

impl Tool for AttachFile {
    type Input = Attachment;
    type Output = Task;

    fn descriptor(&self) -> ToolDescriptor {
        let text = "Use this when the user wants to keep a file with a task.";
        ToolDescriptor::new(
            "attach_file",
            "Attach a file",
            text,
            ToolAnnotations::WRITES,
        )
        .status("Attaching…", "Attached")
    }

    async fn call(&self, input: Attachment, _: Context) -> Result<Answer<Task>, Failure> {
        // A real app would fetch `input.file.download_url` here, which expires after a few minutes.
        let name = input.file.name.unwrap_or(input.file.id);
        let changed = self.0.change(&input.id, |task| task.files.push(name))?;
        Ok(Answer::new(changed))
    }
}

/// The widget, with its page compiled into the program. For development, set `KANBAN_WIDGET` to the path of
/// `board.html`: the page is then read from that file at every request.
fn widget() -> Widget {
    let [name, title] = ["board", "Task board"];
    let about = "A board of tasks in three columns, with cards to move.";
    match std::env::var_os("KANBAN_WIDGET") {
        Some(path) => Widget::from_file(name, title, about, path),
        None => Widget::new(name, title, about, include_str!("kanban/board.html")),
    }
    .border(true)
    .formerly("ui://widget/kanban.html")
}

pub(crate) fn board(tasks: &Tasks) -> AppBuilder {
    App::builder("kanban", "1.0.0")
        .title("Task board")
        .instructions("Look tasks up with list_tasks; show the board with show_board.")
        .locales(["en", "de"])
        .widget(widget())
        .tool(ListTasks(tasks.clone()))
        .tool(BoardTool(tasks.clone()))
        .tool(UpdateTask(tasks.clone()))
        .tool(AttachFile(tasks.clone()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = board(&Tasks::with_examples()).build()?;
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8123".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(http::serve(app, Default::default(), listener, Default::default()).await?)
}
