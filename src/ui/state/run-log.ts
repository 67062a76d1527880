/** What a run has to tell, line by line, drawn from the engine's progress messages. Pure. */

import type { Progress } from '../../reports/job';
import { formatBytes, formatCount, formatCounted } from '../format/quantity';
import type { LogEntry } from './run-facts';

/** The lines a progress message adds after `before`, the message that came before it. */
export function progressLog(
  before: Omit<Progress, 'finished'> | null,
  now: Progress,
  at: number,
): LogEntry[] {
  const lines: LogEntry[] = [];
  const plain = (text: string) => lines.push({ at, tone: 'plain', text });
  if (before?.stage !== now.stage) plain(stageText(now));
  else if (now.stage !== 'merging' && now.item !== before.item && now.item !== '') plain(now.item);
  if (now.note !== undefined) lines.push({ at, tone: 'bad', text: now.note });
  for (const tensor of now.finished) {
    if (tensor.nonFinite > 0) {
      const text = `${tensor.name}: ${formatCounted(tensor.nonFinite, 'value')} not finite`;
      lines.push({ at, tone: 'bad', text });
    }
  }
  if (now.stage === 'merging' && tenth(now) > (before ? tenth(before) : 0)) {
    plain(
      `${formatCount(now.tensorsDone)} of ${formatCounted(now.tensors, 'tensor')}, ${formatBytes(now.bytesDone)}`,
    );
  }
  return lines;
}

/** What each stage is called in front of people. */
export const STAGE_TITLES: Readonly<Record<Progress['stage'], string>> = {
  planning: 'Planning',
  downloading: 'Downloading',
  hashing: 'Hashing inputs',
  checking: 'Checking what is there',
  writing: 'Models write their own text',
  calibrating: 'Measuring what the models use',
  searching: 'Searching for λ',
  measuring: 'Measuring whole models',
  merging: 'Merging',
};

function stageText(now: Progress): string {
  return now.item === '' ? STAGE_TITLES[now.stage] : `${STAGE_TITLES[now.stage]}: ${now.item}`;
}

function tenth(progress: Omit<Progress, 'finished'>): number {
  return progress.tensors === 0 ? 0 : Math.floor((progress.tensorsDone / progress.tensors) * 10);
}
