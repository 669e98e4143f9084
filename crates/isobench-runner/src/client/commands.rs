//! Executes a script's commands until one has to wait: for the server, or for time to pass.

use std::process::{Command as Process, Stdio};
use std::time::Duration;

use isobench_pgwire::{TransactionStatus, frontend};
use isobench_script::{
    Argument, Arrival, CommandKind, EvalContext, EvalError, Expr, Slot, Store, Value, branch, debug_line,
    shell_command_line,
};

use super::pipeline::Pipeline;
use super::state::{Client, ClientAction, ClientState, Context};
use super::store::StoredResults;
use crate::event::{AbortCause, ClientEvent, ClientStep, Unfinished};
use crate::program::Sending;
use crate::spec::Protocol;

/// The step after a command.
enum NextCommand {
    /// The command with this index.
    Go(usize),
    /// A wait.
    Stop(ClientAction),
}

/// The reason why a command ends its client.
enum CommandProblem {
    Evaluation(EvalError),
    Execution(String),
    Assignment(String),
    NotAllowed(String),
    Annotation(String),
}

fn not_allowed<T>(why: &str) -> Result<T, CommandProblem> {
    Err(CommandProblem::NotAllowed(why.to_owned()))
}

impl Client {
    /// Continues the script with the current command.
    pub(super) fn run_commands(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.walk(ctx, false)
    }

    /// Continues with the current command, whose statement has been prepared or whose level has
    /// been asked for.
    pub(super) fn resume_commands(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        self.walk(ctx, true)
    }

    /// Continues the script with the current command, which has already been traced if it is
    /// `resumed`.
    fn walk(&mut self, ctx: &mut Context<'_>, mut resumed: bool) -> ClientAction {
        let job = ctx.job;
        loop {
            let Some(command) = job.commands(self.script).get(self.command) else {
                return self.end_of_script(ctx);
            };
            self.command_began = ctx.now;
            if !std::mem::take(&mut resumed) && !matches!(command.kind, CommandKind::Sql(_)) {
                ctx.trace(self.id, || ClientStep::Command(self.script, self.command));
            }
            let next = match &command.kind {
                CommandKind::Sql(_) => self.sql(ctx),
                CommandKind::Set { slot, expr } => self.evaluate(ctx, expr).and_then(|value| {
                    check_name(ctx, "set", *slot).map_err(CommandProblem::Assignment)?;
                    self.variables.set(*slot, value);
                    Ok(NextCommand::Go(self.command + 1))
                }),
                CommandKind::If(_) | CommandKind::Elif(_) | CommandKind::Else(_) | CommandKind::Endif => {
                    self.branch(ctx)
                }
                CommandKind::Sleep { duration, unit } => duration
                    .sleep_microseconds(*unit, &self.variables, &job.workload.symbols)
                    .map(|pause| self.sleep(ctx, Duration::from_micros(pause)))
                    .map_err(|error| CommandProblem::Execution(format!("sleep: {error}"))),
                CommandKind::Shell { args } => self.shell(ctx, args).map_err(CommandProblem::Execution),
                CommandKind::SetShell { slot, args } => {
                    self.set_shell(ctx, *slot, args).map_err(CommandProblem::Execution)
                }
                CommandKind::StartPipeline => self.start_pipeline(ctx),
                CommandKind::SyncPipeline => self.sync_pipeline(ctx),
                CommandKind::EndPipeline => self.end_pipeline(ctx),
            };
            match next {
                Ok(NextCommand::Go(command)) => {
                    // Expressions take time, too. The clock is read only if durations are reported.
                    if job.spec.per_command {
                        ctx.now = ctx.clock.now();
                        self.end_command(ctx);
                    }
                    self.command = command;
                }
                Ok(NextCommand::Stop(action)) => return action,
                Err(problem) => {
                    let cause = match problem {
                        CommandProblem::Evaluation(why) => AbortCause::Evaluation(why),
                        CommandProblem::Execution(why) => AbortCause::Execution(why),
                        CommandProblem::Assignment(why) => AbortCause::Assignment(why),
                        CommandProblem::NotAllowed(why) => AbortCause::NotAllowed(why),
                        CommandProblem::Annotation(why) => AbortCause::Annotation(why),
                    };
                    return self.end_client(ctx, cause);
                }
            }
        }
    }

    /// Records the duration of a command that succeeded.
    pub(super) fn end_command(&self, ctx: &mut Context<'_>) {
        let (command, began) = (self.command, self.command_began);
        let now = ctx.now;
        if let Some(record) = self.record(ctx).commands.get_mut(command) {
            record.latency.record(now.since(began));
        }
    }

    fn sql(&mut self, ctx: &mut Context<'_>) -> Result<NextCommand, CommandProblem> {
        let Some(request) = ctx.job.program.request(self.script, self.command) else {
            return not_allowed("not an SQL command");
        };
        // By pgbench's rules a lost connection is noticed only when it is needed.
        if let Some(why) = self.lost.take() {
            self.state = ClientState::Replying;
            return Ok(NextCommand::Stop(self.on_lost(ctx, &why)));
        }
        if self.pipeline.is_some() && request.store != Store::None {
            let name = ctx.job.command_kind(self.script, self.command);
            return not_allowed(&format!("\\{name} is not allowed in pipeline mode"));
        }
        if self.is_to_be_asked(request) {
            return Ok(NextCommand::Stop(self.ask_level(ctx)));
        }
        let sending = match (request.stays_prepared(), self.is_prepared(request.number)) {
            (true, true) => Sending::Prepared,
            (true, false) if self.pipeline.is_none() => {
                return Ok(self.prepare(ctx, self.command));
            }
            // Inside a pipeline a reply can't be awaited. `start_pipeline` prepares only the
            // commands up to `\endpipeline`; others that a branch leads to are sent as text.
            (true, false) | (false, _) => Sending::Whole,
        };
        if let (Some(operations), Some(annotated)) = (&mut self.operations, &request.annotated) {
            operations
                .send(annotated, &self.variables, &ctx.job.workload.symbols)
                .map_err(CommandProblem::Annotation)?;
        }
        if let (Some(rows), Some(recording)) = (&mut self.rows, &ctx.job.recording) {
            rows.send(&request.seen, request.is_simple(), &self.variables, &mut ctx.chunk.numbers(recording));
        }
        ctx.trace(self.id, || ClientStep::Sending(request.label(&self.variables)));
        if ctx.job.spec.detail.variables {
            let variables = Box::new(self.variables.clone());
            (ctx.report)(ClientEvent::Sends(self.place(self.command), variables));
        }
        match self.snapshot_question(ctx, request) {
            Some(question) => {
                self.asking_snapshot = true;
                request.encode_after(question, &self.variables, sending, ctx.out);
            }
            None => request.encode(&self.variables, sending, ctx.out),
        }
        // From here on a lost connection may hide a commit, until the reply has come.
        self.may_commit |= request.may_commit(self.status);
        self.yielded = true;
        self.answered = 0;
        if request.store != Store::None {
            self.stored = Some(Box::new(StoredResults::new(request.store.clone())));
        }
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.push(self.command);
            return Ok(NextCommand::Go(self.command + 1));
        }
        if !request.is_simple() {
            frontend::sync(ctx.out);
        }
        Ok(NextCommand::Stop(self.await_reply(ctx)))
    }

    /// Waits for the reply to the request just sent.
    fn await_reply(&mut self, ctx: &Context<'_>) -> ClientAction {
        ctx.trace(self.id, || ClientStep::Receiving);
        self.outstanding += 1;
        self.state = ClientState::Replying;
        ClientAction::Receive
    }

    /// Prepares the statement of a command in a round trip of its own, so that preparing never
    /// counts as a command's latency.
    fn prepare(&mut self, ctx: &mut Context<'_>, command: usize) -> NextCommand {
        if let Some(request) = ctx.job.program.request(self.script, command) {
            ctx.trace(self.id, || ClientStep::Preparing(request.name()));
            request.prepare(ctx.out);
        }
        frontend::sync(ctx.out);
        self.yielded = true;
        self.answered = 0;
        self.outstanding = 1;
        self.state = ClientState::Preparing(command);
        NextCommand::Stop(ClientAction::Receive)
    }

    fn sleep(&mut self, ctx: &Context<'_>, pause: Duration) -> NextCommand {
        self.yielded = true;
        self.state = ClientState::Sleeping;
        NextCommand::Stop(ClientAction::Wake(ctx.now.after(pause)))
    }

    /// Counts the outcome of a condition, if the current command has one that was evaluated.
    fn count_branch(
        &self,
        ctx: &mut Context<'_>,
        kind: &CommandKind,
        arrival: Arrival,
        arm: Option<(usize, Arrival)>,
    ) {
        let evaluated = match kind {
            CommandKind::If(_) => true,
            CommandKind::Elif(_) => arrival == Arrival::Jump,
            _ => false,
        };
        let command = self.command;
        let branches = &mut self.record(ctx).branches;
        if evaluated && let Some(branch) = branches.iter_mut().find(|branch| branch.command == command) {
            branch.count(matches!(arm, Some((_, Arrival::Next))));
        }
    }

    /// Follows the arms of a conditional to the next command to execute.
    fn branch(&mut self, ctx: &mut Context<'_>) -> Result<NextCommand, CommandProblem> {
        let job = ctx.job;
        let script = &job.workload.mix.scripts()[self.script].script;
        let mut arrival = Arrival::Next;
        loop {
            let at = self.command;
            let arm = self.with_expressions(ctx, |expressions| branch(script, at, arrival, expressions));
            let arm = arm.map_err(CommandProblem::Evaluation)?;
            self.count_branch(ctx, &script.commands[at].kind, arrival, arm);
            match arm {
                Some((next, Arrival::Next)) => return Ok(NextCommand::Go(next)),
                Some((next, Arrival::Jump)) => {
                    (self.command, arrival) = (next, Arrival::Jump);
                    if let Some(CommandKind::Elif(_)) = script.commands.get(next).map(|command| &command.kind)
                    {
                        ctx.trace(self.id, || ClientStep::Command(self.script, next));
                    }
                }
                None => return Ok(NextCommand::Go(at)),
            }
        }
    }

    fn evaluate(&mut self, ctx: &Context<'_>, expr: &Expr) -> Result<Value, CommandProblem> {
        self.with_expressions(ctx, |expressions| expr.eval(expressions)).map_err(CommandProblem::Evaluation)
    }

    fn with_expressions<R>(
        &mut self,
        ctx: &Context<'_>,
        evaluate: impl FnOnce(&mut EvalContext<'_>) -> R,
    ) -> R {
        let (report, script, command) = (ctx.report, self.script, self.command);
        evaluate(&mut EvalContext {
            variables: &self.variables,
            names: &ctx.job.workload.symbols,
            rng: &mut self.functions,
            debug: &mut |text| report(ClientEvent::Debug(debug_line(script, command + 1, text))),
        })
    }

    /// Runs a program to its end. It blocks the other clients of the worker, as in pgbench.
    fn shell(&mut self, ctx: &mut Context<'_>, args: &[Argument]) -> Result<NextCommand, String> {
        let (command, mut process) = self.shell_command(ctx, args)?;
        let done = process.status();
        ctx.now = ctx.clock.now();
        match done {
            Ok(status) if status.success() => Ok(NextCommand::Go(self.command + 1)),
            _ => Err(format!("{}: could not launch shell command", program(&command))),
        }
    }

    /// Runs a program to its end and stores the integer in its first line.
    fn set_shell(
        &mut self,
        ctx: &mut Context<'_>,
        slot: Slot,
        args: &[Argument],
    ) -> Result<NextCommand, String> {
        let (command, mut process) = self.shell_command(ctx, args)?;
        let program = program(&command);
        let output = process.stdout(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
        ctx.now = ctx.clock.now();
        let output = output.map_err(|_| format!("{program}: could not launch shell command"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(line) = text.split_inclusive('\n').next() else {
            return Err(format!("{program}: could not read result of shell command"));
        };
        let number: i64 = line
            .trim()
            .parse()
            .map_err(|_| format!("{program}: shell command must return an integer (not \"{line}\")"))?;
        check_name(ctx, "setshell", slot)?;
        self.variables.set(slot, Value::Int(number));
        ctx.trace(self.id, || ClientStep::ShellValue(self.script, self.command, line.to_owned()));
        Ok(NextCommand::Go(self.command + 1))
    }

    /// Returns the command line with the variables' values, and a process ready to run it.
    fn shell_command(&self, ctx: &Context<'_>, args: &[Argument]) -> Result<(String, Process), String> {
        let line = shell_command_line(args, &self.variables, &ctx.job.workload.symbols)
            .map_err(|error| error.to_string())?;
        let mut process = Process::new("sh");
        process.args(["-c", &line]);
        Ok((line, process))
    }

    fn start_pipeline(&mut self, ctx: &mut Context<'_>) -> Result<NextCommand, CommandProblem> {
        if ctx.job.spec.protocol == Protocol::Simple {
            return not_allowed("cannot use pipeline mode with the simple query protocol");
        }
        if self.pipeline.is_some() {
            return not_allowed("already in pipeline mode");
        }
        let commands = ctx.job.commands(self.script).iter().enumerate().skip(self.command);
        for (index, _) in
            commands.take_while(|(_, command)| !matches!(command.kind, CommandKind::EndPipeline))
        {
            if let Some(request) = ctx.job.program.request(self.script, index)
                && request.stays_prepared()
                && !self.is_prepared(request.number)
            {
                return Ok(self.prepare(ctx, index));
            }
        }
        self.pipeline = Some(Box::new(Pipeline::new()));
        Ok(NextCommand::Go(self.command + 1))
    }

    /// Adds a synchronisation point to the pipeline, without waiting for its reply.
    fn sync_pipeline(&mut self, ctx: &mut Context<'_>) -> Result<NextCommand, CommandProblem> {
        let Some(pipeline) = &mut self.pipeline else {
            return not_allowed("not in pipeline mode");
        };
        pipeline.push_sync();
        frontend::sync(ctx.out);
        self.outstanding += 1;
        Ok(NextCommand::Go(self.command + 1))
    }

    /// Sends the rest of the pipeline and waits for all replies.
    fn end_pipeline(&mut self, ctx: &mut Context<'_>) -> Result<NextCommand, CommandProblem> {
        let Some(pipeline) = &mut self.pipeline else {
            return not_allowed("not in pipeline mode");
        };
        pipeline.push_sync();
        frontend::sync(ctx.out);
        Ok(NextCommand::Stop(self.await_reply(ctx)))
    }

    fn end_of_script(&mut self, ctx: &mut Context<'_>) -> ClientAction {
        if self.pipeline.is_some() {
            return self.end_client(ctx, AbortCause::Unfinished(Unfinished::Pipeline));
        }
        if self.status != TransactionStatus::Idle {
            // The client ends here: its next transaction would run inside this block.
            if ctx.job.spec.rules.counts_unfinished_block() {
                self.count_committed(ctx);
                return self.abort(ctx, self.command, AbortCause::Unfinished(Unfinished::Block));
            }
            return self.end_client(ctx, AbortCause::Unfinished(Unfinished::Block));
        }
        self.count_committed(ctx);
        self.leave_transaction(ctx)
    }
}

/// Returns the program that a command line calls.
fn program(line: &str) -> &str {
    line.split_ascii_whitespace().next().unwrap_or_default()
}

fn check_name(ctx: &Context<'_>, command: &str, slot: Slot) -> Result<(), String> {
    let symbols = &ctx.job.workload.symbols;
    if symbols.is_assignable(slot) {
        return Ok(());
    }
    Err(format!("{command}: invalid variable name: \"{}\"", symbols.name(slot)))
}
