/** May the recipe be merged now, and if not: why, and where to look. Pure; one answer for button, bar and tests. */
import { formatCounted } from '../format/quantity';
import { whyNoEngine } from './engine-summary';
import type { StudioFacts, Tab } from './facts';
import { whyNotOpen } from './opening';
import { recipeProblems } from './recipe-validation';
import { methodOf } from './studio';
import { TOOL_WORDS } from './tool-job';

export type MergeGate =
  | { open: true }
  | {
      open: false;
      why: string;
      /** What to do, where that is known. */
      remedy?: string;
      /** `wait` passes by itself, `fix` needs the person. */
      tone: 'wait' | 'fix';
      /** The tab that shows more. */
      tab?: Tab;
    };

export function mergeGate(facts: StudioFacts): MergeGate {
  const { engine, run, evaluation, generation, tool, recipe, models, plan, output } = facts;
  if (engine.status === 'failed') {
    return { open: false, tone: 'fix', why: whyNoEngine(engine), ...engineRemedy(engine) };
  }
  if (engine.status === 'starting') return { open: false, tone: 'wait', why: 'Starting the engine…' };
  if (run?.status === 'running') return { open: false, tone: 'wait', why: 'A merge is running.', tab: 'run' };
  if (run?.status === 'cancelling') return { open: false, tone: 'wait', why: 'Cancelling…', tab: 'run' };
  if (facts.elsewhere) return { open: false, tone: 'wait', why: 'A merge is running in another tab.' };
  if (evaluation.job)
    return { open: false, tone: 'wait', why: 'Models are being measured.', tab: 'evaluate' };
  if (generation.status !== 'idle') {
    return { open: false, tone: 'wait', why: 'Models are writing.', tab: 'evaluate' };
  }
  if (tool) {
    const { busy, tab } = TOOL_WORDS[tool.kind];
    return { open: false, tone: 'wait', why: busy, tab };
  }
  const { base, contributors } = recipe;
  const opening = base === null && contributors.length === 0 ? facts.opening.at(-1) : undefined;
  if (opening !== undefined) return { open: false, tone: 'wait', why: `Opening ${opening}…` };
  const closed = whyNotOpen(facts);
  if (closed) {
    const { why, remedy, wait } = closed;
    return { open: false, tone: wait ? 'wait' : 'fix', why, ...(remedy ? { remedy } : {}) };
  }
  const problem = recipeProblems(recipe, models, methodOf(recipe))[0];
  if (problem) return { open: false, tone: 'fix', why: problem.message, remedy: problem.remedy };
  if (plan.status === 'failed') {
    return { open: false, tone: 'fix', tab: 'plan', why: 'The plan failed.', ...hint(plan.error) };
  }
  if (!plan.facts) return { open: false, tone: 'wait', why: 'Planning…' };
  if (plan.status === 'ready' && !plan.facts.clean) {
    const errors = plan.facts.problems.filter((p) => p.severity === 'error').length;
    return { open: false, tone: 'fix', tab: 'plan', why: `The plan has ${formatCounted(errors, 'error')}.` };
  }
  const storage = engine.facts?.storage;
  if (output.kind === 'downloads' && storage && !storage.available) {
    return {
      open: false,
      tone: 'fix',
      tab: 'output',
      why: 'This browser offers no storage to keep the result in.',
      remedy: 'Leave private browsing, or save to a folder where the browser can.',
    };
  }
  return { open: true };
}

/** The message of an engine that stopped says so again; of one that did not start it says why. */
function engineRemedy({ facts, error }: StudioFacts['engine']): { remedy?: string } {
  return facts && error ? { remedy: error.hint } : hint(error);
}

function hint(error: { message: string; hint: string } | null): { remedy?: string } {
  return error ? { remedy: `${error.message} ${error.hint}` } : {};
}
