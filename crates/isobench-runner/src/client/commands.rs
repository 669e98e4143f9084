//! Executes a script's commands until one has to wait: for the server, or for time to pass.

use std::process::{Command as Process, Stdio};
use std::time::Duration;

use isobench_pgwire::{TransactionStatus, frontend};
use isobench_script::{
    Argument, CommandKind, EvalContext, Expr, Slot, Step, Store, Value, branch, debug_line,
    shell_command_line,
};

use super::pipeline::Pipeline;
use super::store::Rows;
use super::{Action, Client, Context, State};
use crate::job::Event;
use crate::spec::Protocol;

/// What a command leads to.
enum Next {
    /// The command at this index.
    Go(usize),
    /// Waiting.
    Stop(Action),
}

impl Client {
    /// Goes on with the script from the current command.
    pub(super) fn run_commands(&mut self, ctx: &mut Context<'_>) -> Action {
        let job = ctx.job;
        loop {
            let Some(command) = job.commands(self.script).get(self.command) else {
                return self.end_of_script(ctx);
            };
            self.command_began = ctx.now;
            let next = match &command.kind {
                CommandKind::Sql(_) => self.sql(ctx),
                CommandKind::Set { slot, expr } => self.evaluate(ctx, expr).and_then(|value| {
                    check_name(ctx, *slot)?;
                    self.variables.set(*slot, value);
                    Ok(Next::Go(self.command + 1))
                }),
                CommandKind::If(_) | CommandKind::Elif(_) | CommandKind::Else(_) | CommandKind::Endif => {
                    self.branch(ctx)
                }
                CommandKind::Sleep { duration, unit } => duration
                    .sleep_microseconds(*unit, &self.variables, &job.workload.symbols)
                    .map(|pause| self.sleep(ctx, Duration::from_micros(pause)))
                    .map_err(|error| error.to_string()),
                CommandKind::Shell { args } => self.shell(ctx, args).map(|_| Next::Go(self.command + 1)),
                CommandKind::SetShell { slot, args } => self.set_shell(ctx, *slot, args),
                CommandKind::StartPipeline => self.start_pipeline(ctx),
                CommandKind::SyncPipeline => self.sync_pipeline(ctx),
                CommandKind::EndPipeline => self.end_pipeline(ctx),
            };
            match next {
                Ok(Next::Go(command)) => {
                    if job.spec.per_command {
                        ctx.now = ctx.clock.now();
                        self.end_command(ctx);
                    }
                    self.command = command;
                }
                Ok(Next::Stop(action)) => return action,
                Err(message) => return self.command_failed(ctx, &message),
            }
        }
    }

    /// Records the time of a command that has ended well.
    pub(super) fn end_command(&self, ctx: &mut Context<'_>) {
        let (command, began) = (self.command, self.command_began);
        let now = ctx.now;
        if let Some(record) = self.record(ctx).commands.get_mut(command) {
            record.latency.record(now.since(began));
        }
    }

    fn sql(&mut self, ctx: &mut Context<'_>) -> Result<Next, String> {
        let Some(request) = ctx.job.program.request(self.script, self.command) else {
            return Err("not an SQL command".to_owned());
        };
        if self.pipeline.is_some() && request.store != Store::None {
            let name = ctx.job.command_kind(self.script, self.command);
            return Err(format!("\\{name} is not allowed in pipeline mode"));
        }
        let prepared = request.stays_prepared() && self.is_prepared(request.number);
        request.encode(&self.variables, prepared, ctx.out);
        if request.stays_prepared() && !prepared {
            // Taken for known at once, so that a pipeline doesn't prepare it twice; withdrawn if it fails.
            self.set_prepared(request.number, true);
            self.parsing.push(request.number);
        }
        self.may_commit |= request.may_commit(self.status);
        self.yielded = true;
        self.answered = 0;
        if request.store != Store::None {
            self.stored = Some(Box::new(Rows::new(request.store.clone())));
        }
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.push(self.command);
            return Ok(Next::Go(self.command + 1));
        }
        if !request.is_simple() {
            frontend::sync(ctx.out);
        }
        self.outstanding = 1;
        self.state = State::Replying;
        Ok(Next::Stop(Action::Receive))
    }

    fn sleep(&mut self, ctx: &Context<'_>, pause: Duration) -> Next {
        self.yielded = true;
        self.state = State::Sleeping;
        Next::Stop(Action::Wake(ctx.now.after(pause)))
    }

    /// Follows the arms of a conditional to the next command to execute.
    fn branch(&mut self, ctx: &Context<'_>) -> Result<Next, String> {
        let script = &ctx.job.workload.mix.scripts()[self.script].script;
        let mut step = Step::Next;
        loop {
            let at = self.command;
            let arm = self.with_expressions(ctx, |expressions| branch(script, at, step, expressions));
            match arm.map_err(|error| error.to_string())? {
                Some((next, Step::Next)) => return Ok(Next::Go(next)),
                Some((next, Step::Jump)) => (self.command, step) = (next, Step::Jump),
                None => return Ok(Next::Go(at)),
            }
        }
    }

    fn evaluate(&mut self, ctx: &Context<'_>, expr: &Expr) -> Result<Value, String> {
        self.with_expressions(ctx, |expressions| expr.eval(expressions)).map_err(|error| error.to_string())
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
            debug: &mut |text| report(Event::Debug(debug_line(script, command + 1, text))),
        })
    }

    fn set_shell(&mut self, ctx: &mut Context<'_>, slot: Slot, args: &[Argument]) -> Result<Next, String> {
        let output = self.shell(ctx, args)?;
        let number: i64 = output
            .trim()
            .parse()
            .map_err(|_| format!("shell command must return an integer (not \"{}\")", output.trim()))?;
        check_name(ctx, slot)?;
        self.variables.set(slot, Value::Int(number));
        Ok(Next::Go(self.command + 1))
    }

    /// Runs a program to its end and returns its first line. Other clients of the worker wait meanwhile, as in pgbench.
    fn shell(&mut self, ctx: &mut Context<'_>, args: &[Argument]) -> Result<String, String> {
        let line = shell_command_line(args, &self.variables, &ctx.job.workload.symbols)
            .map_err(|error| error.to_string())?;
        let output = Process::new("sh")
            .args(["-c", &line])
            .stdin(Stdio::inherit())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("could not launch shell command \"{line}\": {error}"))?;
        ctx.now = ctx.clock.now();
        if !output.status.success() {
            return Err(format!("shell command \"{line}\" failed ({})", output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    fn start_pipeline(&mut self, ctx: &Context<'_>) -> Result<Next, String> {
        if ctx.job.spec.protocol == Protocol::Simple {
            return Err("cannot use pipeline mode with the simple query protocol".to_owned());
        }
        if self.pipeline.is_some() {
            return Err("already in pipeline mode".to_owned());
        }
        self.pipeline = Some(Box::new(Pipeline::new()));
        Ok(Next::Go(self.command + 1))
    }

    /// Sends what the pipeline holds with a synchronisation point, and goes on without waiting.
    fn sync_pipeline(&mut self, ctx: &mut Context<'_>) -> Result<Next, String> {
        let Some(pipeline) = &mut self.pipeline else {
            return Err("not in pipeline mode".to_owned());
        };
        pipeline.push_sync();
        frontend::sync(ctx.out);
        self.outstanding += 1;
        Ok(Next::Go(self.command + 1))
    }

    /// Sends the rest of the pipeline and waits for all replies.
    fn end_pipeline(&mut self, ctx: &mut Context<'_>) -> Result<Next, String> {
        self.sync_pipeline(ctx)?;
        self.state = State::Replying;
        Ok(Next::Stop(Action::Receive))
    }

    fn end_of_script(&mut self, ctx: &mut Context<'_>) -> Action {
        if self.pipeline.is_some() {
            return self.script_left_open(ctx, "end of script reached with pipeline open");
        }
        if self.status != TransactionStatus::Idle {
            return self.script_left_open(
                ctx,
                "end of script reached without completing the last transaction; end the script with COMMIT or ROLLBACK",
            );
        }
        self.committed(ctx)
    }
}

fn check_name(ctx: &Context<'_>, slot: Slot) -> Result<(), String> {
    let symbols = &ctx.job.workload.symbols;
    if symbols.is_assignable(slot) {
        return Ok(());
    }
    Err(format!("invalid variable name: \"{}\"", symbols.name(slot)))
}
