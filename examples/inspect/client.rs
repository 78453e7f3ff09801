//! The actions of an MCP client: connect, call, show the answer, close.

use std::io;

use landline::mcp::{CallOptions, Client, Context, LogMessage, Options};

use crate::args::{Job, Manner, Mcp};
use crate::print::{self, Answer, Failure};
use crate::raw::shown;
use crate::screen::{self, note};
use crate::{show, terminal};

/// Does what a job asks for; `true` says that all was well.
pub(crate) fn inspect(job: &Job, manner: &Manner, action: &Mcp) -> io::Result<bool> {
    let client = match options(job, manner).spawn(&job.spec) {
        Ok(client) => client,
        Err(error) => return print::answer(Err(error.into()), job.json),
    };
    let answer = act(&client, action).map_err(Failure::from);
    screen::erase();
    let all_well = print::answer(answer, job.json);
    client.close();
    let survived = client.connection().survived();
    if !survived.is_empty() {
        note(format_args!("survived: {survived}"));
    }
    all_well
}

fn act(client: &Client, action: &Mcp) -> landline::mcp::Result<Answer> {
    let watched = || CallOptions::new().progress(screen::progress);
    Ok(match action {
        Mcp::Info => show::info(client.server()),
        Mcp::Tools => show::tools(&client.tools()?),
        Mcp::Call(tool) => show::call(&client.call_tool_with(&tool.name, &tool.args, watched())?),
        Mcp::Resources => show::resources(&client.resources()?, &client.resource_templates()?),
        Mcp::Read(uri) => show::read(&client.read_resource_with(uri, watched())?),
        Mcp::Prompts => show::prompts(&client.prompts()?),
        Mcp::Prompt(prompt) => {
            show::prompt(&client.get_prompt_with(&prompt.name, &prompt.args, watched())?)
        }
    })
}

fn options(job: &Job, manner: &Manner) -> Options {
    let transport = landline::Options::new().on_stderr(|line| note(format_args!("stderr: {line}")));
    let mut options = Options::new("inspect", env!("CARGO_PKG_VERSION"))
        .transport(transport)
        .elicit_form(terminal::form)
        .elicit_url(terminal::url)
        .on_log(|_, message| log(message))
        .on_notification(|_, notification| {
            let params = shown(notification.params());
            note(format_args!(
                "notification: {}{params}",
                notification.method()
            ));
        });
    if !manner.roots.is_empty() {
        let roots = manner.roots.clone();
        options = options.roots(move |_: &Context| roots.clone());
    }
    if let Some(era) = manner.era {
        options = options.era(era);
    }
    if let Some(revision) = manner.revision {
        options = options.revision(revision);
    }
    if let Some(idle) = manner.idle {
        options = options.idle_timeout(idle);
    }
    if let Some(limit) = job.timeout {
        options = options.request_timeout(limit).connect_timeout(limit);
    }
    options
}

fn log(message: &LogMessage) {
    let level = message.level().map_or("?", |level| level.as_str());
    let logger = message
        .logger()
        .map_or(String::new(), |logger| format!(" {logger}"));
    let data = shown(message.data());
    note(format_args!("log: {level}{logger}:{data}"));
}
