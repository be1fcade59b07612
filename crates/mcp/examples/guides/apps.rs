use docent_mcp::{Answer, App, BuildError, Context, Failure, Tool, ToolAnnotations, ToolDescriptor, Widget};
use serde_json::json;

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Count { open: usize }

struct ShowBoard;
impl Tool for ShowBoard {
    type Input = ();
    type Output = Count;
    fn descriptor(&self) -> ToolDescriptor {
        let text = "Use this when the user wants to see the task board.";
        ToolDescriptor::new("show_board", "Show the board", text, ToolAnnotations::READ_ONLY)
            .widget("board")
            .status("Loading board…", "Board ready")
    }
    async fn call(&self, _: (), _: Context) -> Result<Answer<Count>, Failure> {
        let tasks = ["Paint the door", "Count the gulls"];
        Ok(Answer::new(Count { open: tasks.len() }) // the model and the widget read this,
            .text("The user sees the board.")       // the model this,
            .meta("tasks", json!(tasks)))           // and the widget alone this
    }
}

fn app() -> Result<App, BuildError> {
    let page = "<!doctype html><title>Board</title><script>/* … */</script>";
    App::builder("tasks", "1.0.0")
        .widget(Widget::new("board", "Task board", "A board with cards to move.", page).border(true))
        .tool(ShowBoard)
        .build()
}
