//! Rank 0: asks the agent, leads the steps, saves, reports.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pollux_agent::{Agent, GradientNorm, GradientSample, StepObservation, StepTiming};
use pollux_api::client::{AgentLink, Order as Wish};
use pollux_model::{BatchPlan, Timestamp};

use crate::checkpoint::Checkpoint;
use crate::environment::Environment;
use crate::exchange::{Members, Order, Part};
use crate::options::Options;
use crate::pace::{Pace, hold_until};
use crate::record::{Curve, Lines, StepRecord, say, warn};
use crate::replica::{PassTimes, Replica};
use crate::signals::Asked;
use crate::{Ended, TrainError};

/// Steps between two looks at the batch and at the accuracy aimed for.
const LOOK_EVERY: u64 = 50;

/// Where training stands, apart from model and agent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// Optimizer steps done.
    pub(crate) steps: u64,
    /// Samples consumed.
    pub(crate) position: u64,
}

/// Rank 0 at work.
pub(crate) struct Lead<'a> {
    pub(crate) options: &'a Options,
    pub(crate) environment: &'a Environment,
    pub(crate) asked: &'a Asked,
    pub(crate) replica: Replica,
    pub(crate) agent: Agent,
    pub(crate) members: Members,
    pub(crate) pace: Pace,
    pub(crate) link: Option<AgentLink>,
    pub(crate) curve: Option<Curve>,
    pub(crate) standing: Standing,
}

/// What changes while it leads.
struct Course {
    plan: BatchPlan,
    clock: Clock,
    lines: Lines,
    saved_at: Instant,
    /// The first step after a start is not like the others, and is not timed.
    warm: bool,
    /// Whether it was said that reports do not arrive.
    troubled: bool,
    next: Next,
}

/// What is to follow the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Step,
    Leave,
    /// The accuracy aimed for is reached.
    Finish,
}

impl Lead<'_> {
    /// Trains until the work is done or someone asks to leave.
    pub(crate) fn run(mut self) -> Result<Ended, TrainError> {
        let mut course = Course {
            plan: self.decide()?,
            clock: Clock::start(),
            lines: Lines::default(),
            saved_at: Instant::now(),
            warm: false,
            troubled: false,
            next: if self.reached_accuracy() { Next::Finish } else { Next::Step },
        };
        let placement = self.environment.placement;
        let (n_replicas, n_nodes) = (placement.n_replicas(), placement.n_nodes());
        say(&format!("begun: replicas {n_replicas} on {n_nodes} nodes, batch {}", course.plan.global().0));
        loop {
            if let Some(ended) = self.between_steps(&mut course)? {
                return Ok(ended);
            }
            match self.step(&mut course) {
                // The step was not applied: what stands is worth saving before the job fails or leaves.
                Err(TrainError::Exchange(lost)) => {
                    self.save(&mut course)?;
                    return if self.asked.to_leave() { Ok(Ended::Left) } else { Err(lost.into()) };
                }
                outcome => outcome?,
            }
        }
    }

    /// Ends, leaves or saves if it is time.
    fn between_steps(&mut self, course: &mut Course) -> Result<Option<Ended>, TrainError> {
        let mut save = course.saved_at.elapsed().as_secs_f64() >= self.options.checkpoint_every;
        for wish in self.link.iter().flat_map(AgentLink::take_orders) {
            match wish {
                Wish::Checkpoint => save = true,
                Wish::Stop { .. } if course.next == Next::Step => course.next = Next::Leave,
                Wish::Stop { .. } => {}
            }
        }
        let work_done = self.options.work().is_some_and(|work| self.agent.progress() >= work);
        let Standing { steps, .. } = self.standing;
        if work_done || course.next == Next::Finish {
            self.save(course)?;
            // All is saved: whoever does not hear it anymore changes nothing.
            let _ = self.members.order(Order::Finish);
            self.report(course, true);
            let accuracy = self.replica.accuracy();
            say(&format!("done: accuracy {accuracy:.4} after {steps} steps"));
            return Ok(Some(Ended::Done { accuracy, steps }));
        }
        if course.next == Next::Leave || self.asked.to_leave() {
            self.save(course)?;
            let _ = self.members.order(Order::Leave);
            self.report(course, true);
            say(&format!("left: step {steps}, progress {:.1}", self.agent.progress()));
            return Ok(Some(Ended::Left));
        }
        if save {
            self.save(course)?;
        }
        Ok(None)
    }

    /// One optimizer step of all replicas.
    fn step(&mut self, course: &mut Course) -> Result<(), TrainError> {
        let (plan, placement) = (course.plan, self.environment.placement);
        let (began, position) = (Instant::now(), self.standing.position);
        self.members.order(Order::Step { plan, position })?;
        let secs = self.pace.pass_secs(placement, plan);
        let (mut part, times) = self.replica.compute(plan, position, secs);
        self.members.sum(&mut part)?;
        let samples = plan.global().0 as f64;
        part.gradient.iter_mut().for_each(|value| *value /= samples);
        let factor = self.agent.learning_rate_factor();
        let rate = self.options.learning_rate * factor;
        self.members.update(rate, &part.gradient)?;
        self.replica.apply(rate, &part.gradient);
        hold_until(times.last_began, secs.last);
        let ended = Instant::now();

        self.standing = Standing { steps: self.standing.steps + 1, position: position + plan.global().0 };
        if part.asked {
            course.next = Next::Leave;
        }
        self.agent.observe(&StepObservation {
            gpu_type: self.environment.gpu_type.clone(),
            placement,
            plan,
            timing: course.warm.then(|| self.timing(times, ended)),
            gradient: gradient_sample(plan, &part),
        });
        let record = StepRecord {
            step: self.standing.steps,
            position,
            plan,
            placement,
            loss: part.loss / samples,
            factor,
            progress: self.agent.progress(),
            secs: (ended - began).as_secs_f64(),
            paced_secs: self.pace.step_secs(placement, plan),
        };
        course.lines.step(&record, || self.replica.accuracy());
        if let Some(curve) = &mut self.curve {
            curve.row(&record).map_err(TrainError::Curve)?;
        }
        self.after_step(course)
    }

    fn after_step(&mut self, course: &mut Course) -> Result<(), TrainError> {
        if !course.warm {
            course.warm = true;
            if let Some(link) = &self.link {
                link.training();
            }
        }
        self.report(course, false);
        let look = self.standing.steps.is_multiple_of(LOOK_EVERY);
        if look || self.agent.wants_decision() {
            course.plan = self.decide()?;
        }
        if look && self.reached_accuracy() {
            course.next = Next::Finish;
        }
        Ok(())
    }

    /// Wall-clock seconds of the step's parts, as any training loop would measure them.
    fn timing(&self, times: PassTimes, ended: Instant) -> StepTiming {
        let after_compute = (ended - times.last_computed).as_secs_f64();
        let alone = self.environment.placement.n_replicas() == 1;
        let (sync_secs, optimizer_secs) = if alone { (0.0, after_compute) } else { (after_compute, 0.0) };
        StepTiming {
            accum_secs: times.accum_secs,
            optim_secs: (ended - times.last_began).as_secs_f64(),
            sync_secs,
            optimizer_secs,
        }
    }

    fn decide(&mut self) -> Result<BatchPlan, TrainError> {
        let Environment { gpu_type, placement, .. } = self.environment;
        let decision = self.agent.decide(gpu_type, *placement);
        let n_replicas = placement.n_replicas();
        decision.map(|decision| decision.plan).ok_or(TrainError::NoBatch { n_replicas })
    }

    fn reached_accuracy(&self) -> bool {
        self.options.target_accuracy.is_some_and(|target| self.replica.accuracy() >= target)
    }

    /// Lets the agent learn and the scheduler know, if it is time, or in any case at the end.
    fn report(&mut self, course: &mut Course, last: bool) {
        let mut now = course.clock.now();
        if last {
            now += Duration::from_secs_f64(self.options.report_every);
        }
        let Some(report) = self.agent.poll(now) else { return };
        let Some(link) = &self.link else { return };
        link.report(&report);
        // Told once: training goes on without a scheduler, and the log has better things to say.
        match link.trouble() {
            Some(trouble) if !course.troubled => {
                warn(&format!("warning: reports do not arrive: {trouble}; training goes on"));
                course.troubled = true;
            }
            None => course.troubled = false,
            Some(_) => {}
        }
    }

    fn save(&mut self, course: &mut Course) -> Result<(), TrainError> {
        course.saved_at = Instant::now();
        if let Some(curve) = &mut self.curve {
            curve.flush().map_err(TrainError::Curve)?;
        }
        let Some(folder) = &self.environment.checkpoints else { return Ok(()) };
        let state = pollux_api::agent_state::to_json(self.agent.state());
        let checkpoint = Checkpoint {
            hidden: self.options.hidden,
            seed: self.options.seed,
            steps: self.standing.steps,
            position: self.standing.position,
            progress: self.agent.progress(),
            weights: self.replica.weights.clone(),
            momentum: self.replica.direction.clone(),
            agent: serde_json::from_str(&state).unwrap_or_default(),
        };
        checkpoint.save(folder)?;
        Ok(())
    }
}

/// What the parts of a step reveal of the noise; nothing where there is one part alone.
fn gradient_sample(plan: BatchPlan, part: &Part) -> Option<GradientSample> {
    if part.moments.count < 2 {
        return None;
    }
    let count = part.moments.count as f64;
    let small =
        GradientNorm { batch: count / part.moments.inverse_batch, sqr_norm: part.moments.sqr_norm / count };
    let sqr_norm = part.gradient.iter().map(|value| value * value).sum();
    Some(GradientSample::Pair { small, big: GradientNorm { batch: plan.global().0 as f64, sqr_norm } })
}

/// The wall clock's time at the start, then monotonic: an agent's state outlives the process, and time may not jump.
struct Clock {
    at_start: Timestamp,
    started: Instant,
}

impl Clock {
    fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at_start: Timestamp::ZERO + since_epoch, started: Instant::now() }
    }

    fn now(&self) -> Timestamp {
        self.at_start + self.started.elapsed()
    }
}
