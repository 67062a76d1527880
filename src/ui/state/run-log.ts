/** Log of a run, line by line, from the engine's progress messages. Pure. */

import { formatAbout, formatBytes, formatCount, formatCounted } from '../../formats/quantity';
import type { Progress } from '../../reports/job';
import type { LogEntry } from './runs';

/** The lines a progress message adds after `before`, the message that came before it. */
export function progressLog(
  before: Omit<Progress, 'finished'> | null,
  now: Progress,
  at: number,
): LogEntry[] {
  const lines: LogEntry[] = [];
  const plain = (text: string) => lines.push({ at, tone: 'plain', text });
  if (before?.phase !== now.phase) plain(stageText(now));
  else if (now.phase !== 'merging' && now.item !== before.item && now.item !== '') plain(now.item);
  if (now.note !== undefined) lines.push({ at, tone: 'bad', text: now.note });
  for (const tensor of now.finished) {
    if (tensor.nonFinite > 0) {
      const text = `${tensor.name}: ${formatCounted(tensor.nonFinite, 'value')} not finite`;
      lines.push({ at, tone: 'bad', text });
    }
  }
  if (now.phase === 'merging' && tenth(now) > (before ? tenth(before) : 0)) {
    plain(
      `${formatCount(now.tensorsDone)} of ${formatCounted(now.tensors, 'tensor')}, ${formatBytes(now.bytesDone)}`,
    );
  }
  return lines;
}

/** Title of each phase on screen. */
export const PHASE_TITLES: Readonly<Record<Progress['phase'], string>> = {
  planning: 'Planning',
  downloading: 'Downloading',
  hashing: 'Hashing inputs',
  checking: 'Checking what was kept',
  writing: 'Generating text',
  calibrating: 'Calibrating',
  searching: 'Tuning λ',
  comparing: 'Comparing',
  measuring: 'Measuring whole models',
  merging: 'Merging',
};

/** `step 2 of 4 · tuning λ · about 12 s left`: beside the name of the step, where there are several. */
export function runWords({ phaseNumber, phase, secondsLeft }: Omit<Progress, 'finished'>): string {
  return [
    ...(phaseNumber && phaseNumber.of > 1 ? [`step ${phaseNumber.at} of ${phaseNumber.of}`] : []),
    PHASE_TITLES[phase].toLowerCase(),
    ...(secondsLeft === null ? [] : [`${formatAbout(secondsLeft)} left`]),
  ].join(' · ');
}

/** The same for those who hear it, the name of the step included. */
export function spokenWords(progress: Omit<Progress, 'finished'>): string {
  return [...(progress.step ? [progress.step.name] : []), runWords(progress)].join(': ');
}

/** How far a merge is, over all of its steps, in [0, 1]. */
export function runShare({
  phaseNumber,
  step,
  counted,
  bytes,
  bytesDone,
}: Omit<Progress, 'finished'>): number {
  if (step?.share !== undefined) return step.share;
  const { done, total } = counted ?? { done: bytesDone, total: bytes };
  const within = total > 0 ? Math.min(1, done / total) : 0;
  return phaseNumber ? (phaseNumber.at - 1 + within) / phaseNumber.of : within;
}

function stageText(now: Progress): string {
  return now.item === '' ? PHASE_TITLES[now.phase] : `${PHASE_TITLES[now.phase]}: ${now.item}`;
}

function tenth(progress: Omit<Progress, 'finished'>): number {
  return progress.tensors === 0 ? 0 : Math.floor((progress.tensorsDone / progress.tensors) * 10);
}
