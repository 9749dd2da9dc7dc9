//! Jobs that a guide submits and gives up on the way.

use pollux_core::Input;
use pollux_model::Timestamp;

use super::{Coming, Member, World, member};
use crate::driver::job_id;
use crate::simulation::SimulationError;
use crate::simulation::guide::{Milestone, Order};
use crate::workload::Submission;

impl World<'_> {
    /// Does what the guide orders after a milestone, if there is a guide.
    pub(super) fn ask_guide(
        &mut self,
        now: Timestamp,
        index: usize,
        milestone: Milestone,
    ) -> Result<(), SimulationError> {
        let Some(guide) = &mut self.guide else { return Ok(()) };
        for order in guide.passed(now, index, milestone) {
            match order {
                Order::Submit(submission) => self.add(now, submission)?,
                Order::GiveUp(index) => self.give_up(now, index)?,
            }
        }
        Ok(())
    }

    /// A job that nobody knew of before.
    fn add(&mut self, now: Timestamp, mut submission: Submission) -> Result<(), SimulationError> {
        submission.at_secs = now.as_micros().div_ceil(1_000_000);
        let (at, index) = (Timestamp::from_secs(submission.at_secs), self.members.len());
        let mut new = member(&submission, self.profiles, self.adapts, self.options)?;
        let is_like = |other: &&Member| {
            (&other.submission.application, other.submission.batch)
                == (&submission.application, submission.batch)
        };
        new.foresight = self.members.iter().find(is_like).and_then(|other| other.foresight);
        let is_foreseen = new.foresight.is_some();
        self.members.push(new);
        if !self.adapts && !is_foreseen {
            self.foresight.clear();
            self.foresee();
        }
        self.n_open += 1;
        self.schedule(at, Coming::Submission(index));
        Ok(())
    }

    fn give_up(&mut self, now: Timestamp, index: usize) -> Result<(), SimulationError> {
        let Some(member) = self.members.get_mut(index) else { return Ok(()) };
        if member.given_up || member.completed.is_some() {
            return Ok(());
        }
        member.given_up = true;
        self.n_open -= 1;
        // One that is yet to come is never submitted.
        if self.driver.scheduler().job(job_id(index)).is_some() {
            self.tell(now, Input::JobCancelled(job_id(index)))?;
        }
        self.members[index].retire();
        Ok(())
    }
}
